/* The options of buscap diff. */
#ifndef BC_CLI_DIFF_DIFF_OPTIONS_H
#define BC_CLI_DIFF_DIFF_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/diff/diff_state.h"

/* Options that are not stored in struct bc_diff, because they are first checked against the
 * traces. */
struct bc_diff_wanted {
	struct bc_diff *diff;
	enum bc_format format_a; /* BC_FORMAT_UNKNOWN: detect by content */
	enum bc_format format_b;
	struct bc_reader_options reader_a;
	struct bc_reader_options reader_b;
	uint64_t only; /* classes; 0: all */
	uint64_t fields;
	uint64_t ignored;
	uint64_t window;
	bool is_relative;
	bool is_same_clock;
};

/* Reads the arguments into *wanted and `diff`, whose console must be set. Returns false if the
 * command must exit with *code: after an error or after printing help. */
bool bc_diff_read_options(struct bc_diff_wanted *wanted, struct bc_diff *diff, int argc,
	char **argv, enum bc_exit *code);

#endif
