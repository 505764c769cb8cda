/* The options that say what of a trace is wanted, and the filter that they make. */
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
	bool from_is_relative; /* filter.from_ns counts from the beginning of the trace */
	bool to_is_relative;
	char selection[512]; /* what was asked for, as "addr=1000-1fff type=MEMREAD"; cut off if
			      * long
			      */
};

void bc_filter_args_init(struct bc_filter_args *args);

/* Each takes the value in optarg, of the option named `option`, and returns false after a complaint
 * that names both. An option is given once, but for --type and --proc, which add up. */
bool bc_filter_args_numbers(
	struct bc_filter_args *args, const struct bc_console *console, const char *option);
bool bc_filter_args_ticks(
	struct bc_filter_args *args, const struct bc_console *console, const char *option);
bool bc_filter_args_epochs(
	struct bc_filter_args *args, const struct bc_console *console, const char *option);
bool bc_filter_args_from(
	struct bc_filter_args *args, const struct bc_console *console, const char *option);
bool bc_filter_args_to(
	struct bc_filter_args *args, const struct bc_console *console, const char *option);
bool bc_filter_args_addr(
	struct bc_filter_args *args, const struct bc_console *console, const char *option);
bool bc_filter_args_type(
	struct bc_filter_args *args, const struct bc_console *console, const char *option);
bool bc_filter_args_proc(
	struct bc_filter_args *args, const struct bc_console *console, const char *option);

/* The times of day, once the beginning of the trace is known. */
void bc_filter_args_start(struct bc_filter_args *args, int64_t wall_ns);

/* Whether a trace has what is asked for; complains of what it lacks. */
bool bc_filter_args_check(const struct bc_filter_args *args, const struct bc_trace *trace);

#endif
