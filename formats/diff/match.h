/* Compares two rows of entries and reports what is the same and what differs. Memory is bounded by
 * the look-ahead.
 *
 * Entries match if the selected fields are equal (formats/diff/compare.h) and their times differ by
 * at most a window of ticks. Within the window their order does not matter. Where the rows differ,
 * the entries that follow are searched for an alignment (formats/diff/align.h), so that an
 * insertion or omission is one difference and everything after it matches again.
 *
 * Clocks: a tick of B is compared with the tick of A plus the skew between the clocks, which is 0
 * at first. The skew is updated where a clock restarts; after a difference, if the following times
 * all agree on another skew; and where one time differs and those after it differ by the same
 * amount. So a single different delta is a single difference. */
#ifndef BC_FORMATS_DIFF_MATCH_H
#define BC_FORMATS_DIFF_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/diff/match_options.h"
#include "formats/trace/entry.h"

struct bc_match;

/* Receives all entries of both rows, each exactly once and in order. A callback that returns false
 * stops the comparison. */
struct bc_match_sink {
	void *context;
	/* a[i] and b[i] match. */
	bool (*same)(void *context, const struct bc_entry *a, const struct bc_entry *b, size_t n);
	/* Each of these entries has a match within the window, in a different order. */
	bool (*reordered)(void *context, const struct bc_entry *a, size_t a_count,
		const struct bc_entry *b, size_t b_count);
	/* These entries differ. Either one row has them at a place where the other has none, or
	 * they replace each other. Consecutive calls, without a call to same() or reordered()
	 * between them, form one difference. */
	bool (*differ)(void *context, const struct bc_entry *a, size_t a_count,
		const struct bc_entry *b, size_t b_count);
	/* From here on, the clock of B is ahead of A's by this number of ticks more than before
	 * (less, if negative). */
	void (*shifted)(void *context, int64_t ticks);
	/* No alignment was found within the look-ahead. The entries last reported as different are
	 * all that was examined; the comparison continues after them. */
	void (*lost)(void *context);
};

/* Returns 0 or -ENOMEM. Sources and sink are copied. */
int bc_match_open(struct bc_match **match, const struct bc_match_options *options,
	const struct bc_match_source *a, const struct bc_match_source *b,
	const struct bc_match_sink *sink) BC_MUST_CHECK;
void bc_match_close(struct bc_match *match);

/* Compares both rows. Returns 0 at the end, 1 if the sink stopped it, or a negative errno if a
 * source failed. */
int bc_match_run(struct bc_match *match) BC_MUST_CHECK;

/* The fields in which two entries differ, with times compared by the current skew. For use inside
 * the sink's callbacks. */
uint64_t bc_match_fields(
	const struct bc_match *match, const struct bc_entry *a, const struct bc_entry *b);

#endif
