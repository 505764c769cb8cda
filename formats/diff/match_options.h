/* What formats/diff/match.h is given: where entries come from, and how they are compared. */
#ifndef BC_FORMATS_DIFF_MATCH_OPTIONS_H
#define BC_FORMATS_DIFF_MATCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/trace/entry.h"

struct bc_match_source {
	/* The next entries, valid until the next call: returns 1 with at least one, 0 at the end,
	 * or a negative errno. */
	int (*next)(void *context, const struct bc_entry **run, size_t *count);
	void *context;
};

struct bc_match_options {
	uint64_t fields;  /* BC_FIELD_*: with BC_FIELD_TIME, times are compared */
	uint64_t window;  /* ticks */
	size_t lookahead; /* entries of either row that are held, at most; not 0 */
	/* The clocks' origins have nothing to do with each other: the first pair sets the skew. */
	bool is_relative;
};

#endif
