/* Goes through two rows of entries side by side and tells what of them is the same and what isn't,
 * in memory bounded by how far it may look ahead.
 *
 * Entries match when the chosen fields are equal (formats/diff/compare.h) and their times lie at
 * most a window of ticks apart. Within that window they may stand in any order. Where the rows
 * part, a way on is looked for among the entries that follow (formats/diff/align.h), so that what
 * was inserted or left out is one difference and all behind it matches again.
 *
 * Clocks: a tick of B is compared with the tick of A plus the skew between them, 0 at first. It is
 * set anew where a clock starts over, behind a difference if the times that follow all lie as far
 * off, and where a time differs and those behind it by as much: one delta that differs is one
 * difference. */
#ifndef BC_FORMATS_DIFF_MATCH_H
#define BC_FORMATS_DIFF_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/diff/match_options.h"
#include "formats/trace/entry.h"

struct bc_match;

/* Is told of all entries of both rows, each once and in their order. What returns false ends it. */
struct bc_match_sink {
	void *context;
	/* a[i] and b[i] match. */
	bool (*same)(void *context, const struct bc_entry *a, const struct bc_entry *b, size_t n);
	/* Each of these has its match within the window, in another order. */
	bool (*reordered)(void *context, const struct bc_entry *a, size_t a_count,
		const struct bc_entry *b, size_t b_count);
	/* These stand where the others do, or where none of the other row do: n and n entries, n
	 * and none, or n and m. Calls without one of the others between them are one difference. */
	bool (*differ)(void *context, const struct bc_entry *a, size_t a_count,
		const struct bc_entry *b, size_t b_count);
	/* From here on B's clock is so many ticks further ahead, or behind, than it was. */
	void (*shifted)(void *context, int64_t ticks);
	/* Nothing was found within the look-ahead where both go on alike: what was told to differ
	 * last is all that was looked at, and it goes on behind that. */
	void (*lost)(void *context);
};

/* Returns 0 or -ENOMEM. Sources and sink are copied. */
int bc_match_open(struct bc_match **match, const struct bc_match_options *options,
	const struct bc_match_source *a, const struct bc_match_source *b,
	const struct bc_match_sink *sink) BC_MUST_CHECK;
void bc_match_close(struct bc_match *match);

/* Goes through both. Returns 0 at the end, 1 when the sink ended it, or the negative errno of a
 * source. */
int bc_match_run(struct bc_match *match) BC_MUST_CHECK;

/* Which fields of two entries differ, their times by what is known of the clocks now. For the sink
 * while it is called. */
uint64_t bc_match_fields(
	const struct bc_match *match, const struct bc_entry *a, const struct bc_entry *b);

#endif
