/* Compares two traces and reports what is the same and what differs. Memory is bounded by the
 * look-ahead. docs/diff.md explains the method.
 *
 * Entries match if the selected fields are equal (cli/diff/compare.h) and so are their times.
 * Times are equal if they differ by at most a window of ticks, after correction for the offset
 * between the clocks, or if the same time has passed since the previous entry; then the offset has
 * changed. Traces on the same clock have no offset. */
#ifndef BC_CLI_DIFF_MATCH_H
#define BC_CLI_DIFF_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/diff/compare.h"
#include "formats/base/must_check.h"
#include "formats/trace/entry.h"

/* A trace to compare. */
struct bc_match_source {
	/* Sets *run to the next entries, valid until the next call. Returns how many; 0: the end.
	 */
	size_t (*next)(void *context, const struct bc_entry **run);
	/* Opens the trace a second time. Returns a context for next() that close() frees, or NULL
	 * if it can be read only once. */
	void *(*again)(void *context);
	void (*close)(void *again);
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

struct bc_match;

/* Receives or skips all entries of both traces, each exactly once. The entries of one trace come in
 * order, except that reordered entries come before the difference around them. A callback that
 * returns false stops the comparison. */
struct bc_match_sink {
	void *context;
	/* a[i] and b[i] match. */
	bool (*same)(void *context, const struct bc_entry *a, const struct bc_entry *b, size_t n);
	/* a and b match, and begin what next() returned last, at most n entries of each trace.
	 * Skips matches from them on in both sources: more than n, but not the last one. Returns
	 * how many; they are not received, and next() returns what follows. Or does nothing and
	 * returns 0. */
	size_t (*skip)(void *context, const struct bc_entry *a, const struct bc_entry *b, size_t n);
	/* This entry of A (or B) has a match within the window, in a different order. */
	void (*reordered)(void *context, bool is_a, const struct bc_entry *entry);
	/* These entries differ: they replace each other, or one trace has none here. Calls with no
	 * call to same() between them form one difference. */
	bool (*differ)(void *context, const struct bc_entry *a, size_t a_count,
		const struct bc_entry *b, size_t b_count);
	/* From here on, B's clock is ahead of A's by this many ticks more than before. */
	void (*shifted)(void *context, int64_t ticks);
	/* No match was found within the look-ahead. The entries last reported as different are all
	 * that was examined; the comparison continues after them. `can_retry` is false if a trace
	 * is a pipe, so that matches further away could not be searched. */
	void (*lost)(void *context, bool can_retry);
};

/* Returns 0 or -ENOMEM. Sources and sink are copied. */
int bc_match_open(struct bc_match **match, const struct bc_match_options *options,
	const struct bc_match_source *a, const struct bc_match_source *b,
	const struct bc_match_sink *sink) BC_MUST_CHECK;
void bc_match_close(struct bc_match *match);

/* Compares both traces. Returns false if the sink stopped it. */
bool bc_match_run(struct bc_match *match) BC_MUST_CHECK;

/* The fields in which two entries differ, times by the current skew. For the sink's callbacks. */
uint64_t bc_match_fields(
	const struct bc_match *match, const struct bc_entry *a, const struct bc_entry *b);

#endif
