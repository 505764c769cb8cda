/* Finds the best alignment after the heads of two rows differ: a few edits, or one jump, whichever
 * is followed by the longer run of matches. Private to formats/diff/match.c. */
#ifndef BC_FORMATS_DIFF_MATCH_WAY_H
#define BC_FORMATS_DIFF_MATCH_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/diff/align.h"
#include "formats/diff/jump.h"
#include "formats/diff/match_row.h"

/* The first, cheap search. */
#define BC_WAY_NEAR_ENTRIES 256u
#define BC_WAY_NEAR_EDITS   64u

/* This many entries may be searched at every difference. A longer look-ahead is searched completely
 * only where differences are rare: each entry is examined BC_WAY_SEARCHES times on average at
 * most. */
#define BC_WAY_ALWAYS   16384u
#define BC_WAY_SEARCHES 64u

/* Up to this number of edits, times distinguish equal entries. */
#define BC_WAY_TIME_EDITS 16u

struct bc_match_way {
	struct bc_align align; /* the result */
	struct bc_jump_finder jumps;
	size_t lookahead;
	uint64_t spent; /* entries searched beyond BC_WAY_ALWAYS */
};

/* Returns 0, or -ENOMEM with nothing to free. */
int bc_match_way_init(struct bc_match_way *way, size_t lookahead) BC_MUST_CHECK;
void bc_match_way_free(struct bc_match_way *way);

/* Finds an alignment for the heads of the rows, which must be filled to the look-ahead. `time` is
 * NULL if times are not compared. Returns whether there is one. It has no hunks if the hashes of
 * the heads are equal. */
bool bc_match_way_find(struct bc_match_way *way, const struct bc_match_row *a,
	const struct bc_match_row *b, const struct bc_align_time *time);

/* The heads differ only in time. Returns whether a jump explains that better than a single
 * different time. */
bool bc_match_way_jump(struct bc_match_way *way, const struct bc_match_row *a,
	const struct bc_match_row *b, const struct bc_align_time *time);

#endif
