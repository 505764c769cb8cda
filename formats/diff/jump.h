/* Finds the one place where two rows that part go on alike for long: what stands before it in the
 * one row, or in the other, or as much in both, is the whole difference. Where a program loops,
 * many places look right for a short while; here it is the length that counts.
 *
 * The rows are those of formats/diff/align.h, and hold as much as is known of what follows. */
#ifndef BC_FORMATS_DIFF_JUMP_H
#define BC_FORMATS_DIFF_JUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/diff/align.h"
#include "formats/diff/recur.h"

/* What matches for so long needs no comparison with other ways. */
#define BC_JUMP_LONG 4096u

/* A way on. */
struct bc_jump {
	size_t a;     /* items of the one row that stand before the place */
	size_t b;     /* and of the other */
	size_t edits; /* items of either row that match nothing on the way */
	size_t hunks; /* in which these stand */
	size_t run;   /* matches behind it, BC_JUMP_LONG at most, which it is where both rows end */
	bool is_clock_kept;
};

struct bc_jump_finder {
	struct bc_recur a;
	struct bc_recur b;
	uint32_t *prefixes; /* how far each place of a row is like its beginning */
};

/* Takes the memory for rows of at most `items`. Returns 0 or -ENOMEM, with nothing to free. */
int bc_jump_init(struct bc_jump_finder *finder, size_t items) BC_MUST_CHECK;
void bc_jump_free(struct bc_jump_finder *finder);

/* Sets run and is_clock_kept of a way whose other members are set. `time` may be NULL. Times behind
 * it match by the clocks as they are, or by what the first pair says of them: the longer. */
void bc_jump_weigh(struct bc_jump *jump, const struct bc_align_row *a, const struct bc_align_row *b,
	const struct bc_align_time *time);

/* Whether the one way is a better explanation than the other: it matches for longer, and that by
 * more than what it leaves out in excess is worth. */
bool bc_jump_is_better(const struct bc_jump *one, const struct bc_jump *other);

/* Looks for a better way than *best, which has run 0 if there is none yet, and puts it there: one
 * that leaves out items of one row alone, or as many of both. `a_position` and `b_position` are
 * those of the first items in all of the rows. Returns whether there was one. */
bool bc_jump_find(struct bc_jump_finder *finder, const struct bc_align_row *a, uint64_t a_position,
	const struct bc_align_row *b, uint64_t b_position, const struct bc_align_time *time,
	struct bc_jump *best);

/* The same behind that, among ways that leave out any number of either. */
bool bc_jump_find_any(const struct bc_jump_finder *finder, const struct bc_align_row *a,
	uint64_t a_position, const struct bc_align_row *b, const struct bc_align_time *time,
	struct bc_jump *best);

#endif
