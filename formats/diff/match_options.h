/* Input of formats/diff/match.h: sources of entries, and options of the comparison. */
#ifndef BC_FORMATS_DIFF_MATCH_OPTIONS_H
#define BC_FORMATS_DIFF_MATCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/trace/entry.h"

struct bc_match_source {
	/* Returns 1 with at least one entry (valid until the next call), 0 at the end, or a
	 * negative errno. */
	int (*next)(void *context, const struct bc_entry **run, size_t *count);
	/* Reads the trace a second time, independently of next(), and passes each entry to take(),
	 * until it returns false. Returns 0, or -ENOTSUP if the trace can be read only once. NULL:
	 * it can't. */
	int (*again)(void *context, bool (*take)(void *to, const struct bc_entry *entry), void *to);
	void *context;
};

struct bc_match_options {
	uint64_t fields;  /* BC_FIELD_*; times are compared if BC_FIELD_TIME is set */
	uint64_t window;  /* ticks */
	size_t lookahead; /* maximum number of entries kept per trace; not 0 */
	/* Both times are of one clock: entries belong together if their times do. */
	bool is_same_clock;
	bool ignores_rest; /* of the longer trace, after the other one has ended */
	/* The clocks have unrelated origins: the first pair sets the offset. */
	bool is_relative;
};

#endif
