/* Aligns two rows after a difference: finds the smallest number of insertions and deletions after
 * which the rows match again or, if that number is large, the nearest place where both have an
 * equal run.
 *
 * A row is given as one hash per item. Equal items must have equal hashes. The result is a list of
 * hunks: runs of items of one row or of both. Between hunks the rows match. */
#ifndef BC_FORMATS_DIFF_ALIGN_H
#define BC_FORMATS_DIFF_ALIGN_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of edits (an item inserted or deleted) for the exact search. */
#define BC_ALIGN_EDITS 512u

#define BC_TICK_NONE UINT64_MAX

struct bc_align_row {
	const uint64_t *hashes;
	const uint64_t *ticks; /* only for bc_align_time; BC_TICK_NONE for an item without a time */
	size_t count;
	bool is_whole; /* the row ends after the last item */
};

/* Items match only if their times do, too: b = a + skew, give or take `window` ticks. */
struct bc_align_time {
	uint64_t skew;
	uint64_t window;
};

struct bc_hunk {
	size_t a; /* a_count items of the first row from this index */
	size_t a_count;
	size_t b;
	size_t b_count;
};

struct bc_align {
	struct bc_hunk hunks[BC_ALIGN_EDITS];
	size_t count;
	/* Private. */
	size_t items; /* maximum length of a row */
	size_t slots;
	unsigned edits_max;
	int32_t *reach;  /* furthest position by number of edits and diagonal */
	uint32_t *table; /* runs in the first row */
	uint64_t *runs;
};

/* Whether an item of the first row matches one of the second. `time` may be NULL. */
static inline bool bc_align_is_match(const struct bc_align_row *a, size_t x,
	const struct bc_align_row *b, size_t y, const struct bc_align_time *time)
{
	if (a->hashes[x] != b->hashes[y])
		return false;
	if (time == NULL)
		return true;
	uint64_t apart = b->ticks[y] - a->ticks[x] - time->skew;
	if (apart <= time->window || 0 - apart <= time->window)
		return true;
	return a->ticks[x] == BC_TICK_NONE && b->ticks[y] == BC_TICK_NONE;
}

/* Allocates memory for rows of up to `items`. Returns 0, or -ENOMEM with nothing to free. */
int bc_align_init(struct bc_align *align, size_t items) BC_MUST_CHECK;
void bc_align_free(struct bc_align *align);

/* Finds the smallest number of edits (up to `edits`, at most BC_ALIGN_EDITS) after which the rows
 * match for a while, or to both ends. The more edits, the more matches are required. `time` may be
 * NULL. Returns true with the hunks in order. Hunks separated by only a few matches are joined;
 * apart from that, the number of edits is minimal. */
bool bc_align_near(struct bc_align *align, const struct bc_align_row *a,
	const struct bc_align_row *b, unsigned edits, const struct bc_align_time *time);

/* Call after bc_align_near() has failed. Uses the furthest position of its search if half the items
 * before it match; otherwise the nearest equal run of both rows; otherwise the common end of the
 * rows. Returns true with the hunks. */
bool bc_align_far(
	struct bc_align *align, const struct bc_align_row *a, const struct bc_align_row *b);

#endif
