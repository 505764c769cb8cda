/* Finds the position after which two rows match for a long stretch. What comes before it (in one
 * row, in the other, or the same number of items in both) is the whole difference. In a program
 * that loops, many positions match for a short while, so the length of the match decides.
 *
 * The rows are those of formats/diff/align.h, with all the items known so far. */
#ifndef BC_FORMATS_DIFF_JUMP_H
#define BC_FORMATS_DIFF_JUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/diff/align.h"
#include "formats/diff/recur.h"

/* A run of this length is accepted without looking for a better one. */
#define BC_JUMP_LONG 4096u

/* A candidate position. */
struct bc_jump {
	size_t a;     /* items of the first row before the position */
	size_t b;     /* items of the second row before the position */
	size_t edits; /* unmatched items of both rows */
	size_t hunks; /* number of hunks that contain them */
	size_t run; /* matches after it, up to BC_JUMP_LONG; BC_JUMP_LONG if both rows end there */
	bool is_clock_kept;
};

struct bc_jump_finder {
	struct bc_recur a;
	struct bc_recur b;
	uint32_t *prefixes; /* Z values */
};

/* Allocates memory for rows of up to `items`. Returns 0, or -ENOMEM with nothing to free. */
int bc_jump_init(struct bc_jump_finder *finder, size_t items) BC_MUST_CHECK;
void bc_jump_free(struct bc_jump_finder *finder);

/* Sets run and is_clock_kept of a candidate; the other members must be set. `time` may be NULL.
 * Times after the position are compared with the current skew and with that of the first pair; the
 * longer run counts. */
void bc_jump_weigh(struct bc_jump *jump, const struct bc_align_row *a, const struct bc_align_row *b,
	const struct bc_align_time *time);

/* Whether one candidate is better than another: its run is longer, by more than what its additional
 * edits cost. */
bool bc_jump_is_better(const struct bc_jump *one, const struct bc_jump *other);

/* Searches for a better candidate than *best (whose run is 0 if there is none yet) and stores it
 * there. Considers candidates that skip items of one row only, or the same number in both.
 * `a_position` and `b_position` are the positions of the first items in the whole rows. Returns
 * whether one was found. */
bool bc_jump_find(struct bc_jump_finder *finder, const struct bc_align_row *a, uint64_t a_position,
	const struct bc_align_row *b, uint64_t b_position, const struct bc_align_time *time,
	struct bc_jump *best);

/* Continues the search with candidates that skip any number of items of both rows. */
bool bc_jump_find_any(const struct bc_jump_finder *finder, const struct bc_align_row *a,
	uint64_t a_position, const struct bc_align_row *b, const struct bc_align_time *time,
	struct bc_jump *best);

#endif
