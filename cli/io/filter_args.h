/* The options that select part of a trace, and the filter built from them. */
#ifndef BC_CLI_IO_FILTER_ARGS_H
#define BC_CLI_IO_FILTER_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/trace.h"
#include "cli/term/console.h"
#include "formats/trace/filter.h"

struct bc_filter_args {
	struct bc_filter filter;
	bool has_numbers;
	bool has_ticks;
	bool has_epochs;
	struct bc_span tick_range; /* of --ticks */
	bool has_from;
	bool has_to;
	bool has_from_tick; /* --from @TICK */
	bool has_to_tick;
	uint64_t from_tick;
	uint64_t to_tick;      /* exclusive */
	bool from_is_relative; /* filter.from_ns is relative to the start of the trace */
	bool to_is_relative;
	char selection[512]; /* the options: "addr=1000-1fff type=MEMREAD"; without those that don't
				fit */
};

void bc_filter_args_init(struct bc_filter_args *args);

/* Parses the value in `optarg` of an option: --records, --ticks, --epoch, --from, --to, --addr (or
 * "address", an operand), --type or --proc. On an invalid value it prints an error that names both,
 * and returns false. Only
 * --type and --proc may be repeated; their values are combined. */
bool bc_filter_args_option(
	struct bc_filter_args *args, const struct bc_console *console, const char *option);

/* Makes relative times absolute, now that the time of the trace's first record is known. */
void bc_filter_args_start(struct bc_filter_args *args, int64_t wall_ns);

/* Returns true if the trace's format has the fields that are selected by; otherwise prints an error
 * that names the missing one. */
bool bc_filter_args_check(const struct bc_filter_args *args, const struct bc_trace *trace);

#endif
