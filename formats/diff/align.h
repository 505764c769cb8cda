/* Finds where two rows that part go on alike: the fewest insertions and deletions that lead there,
 * and, where those are many, the nearest place where both have a run of the same.
 *
 * The rows are given as numbers, one an item, that are the same for items that are the same. What
 * is found are hunks: runs of items, one of either row or of both, between which the rows match. */
#ifndef BC_FORMATS_DIFF_ALIGN_H
#define BC_FORMATS_DIFF_ALIGN_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most edits (an item inserted or deleted) that are looked through one by one. */
#define BC_ALIGN_EDITS 512u

#define BC_TICK_NONE UINT64_MAX

struct bc_align_row {
	const uint64_t *hashes;
	const uint64_t *ticks; /* with bc_align_time; BC_TICK_NONE of what has no time */
	size_t count;
	bool is_whole; /* nothing follows the last item */
};

/* Items match only if their times do: b = a + skew, to `window` ticks. */
struct bc_align_time {
	uint64_t skew;
	uint64_t window;
};

struct bc_hunk {
	size_t a; /* a_count items from here in the one row */
	size_t a_count;
	size_t b;
	size_t b_count;
};

struct bc_align {
	struct bc_hunk hunks[BC_ALIGN_EDITS];
	size_t count;
	/* Its own. */
	size_t items; /* of a row, at most */
	size_t slots;
	unsigned edits_max;
	int32_t *reach;  /* how far each number of edits leads, by diagonal */
	uint32_t *table; /* of runs in the first row */
	uint64_t *runs;
};

/* Whether an item of the one row matches one of the other; `time` may be NULL. */
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

/* Takes the memory for rows of at most `items`. Returns 0 or -ENOMEM, with nothing to free. */
int bc_align_init(struct bc_align *align, size_t items) BC_MUST_CHECK;
void bc_align_free(struct bc_align *align);

/* Looks for the fewest edits, `edits` (at most BC_ALIGN_EDITS) at most, behind which the rows go on
 * alike for a while: the more edits, the longer; or to both ends. `time` may be NULL. Returns true
 * with the hunks, in order; they are a way of the fewest edits, but where short matches lie between
 * long hunks, which are then one. */
bool bc_align_near(struct bc_align *align, const struct bc_align_row *a,
	const struct bc_align_row *b, unsigned edits, const struct bc_align_time *time);

/* After that has failed: what of the way of the most edits was worth it, if half the items on it
 * match; or the nearest run of the same in both; or what the rows' ends have in common. Returns
 * true with the hunks. */
bool bc_align_far(
	struct bc_align *align, const struct bc_align_row *a, const struct bc_align_row *b);

#endif
