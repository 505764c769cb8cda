/* The best way on from where the heads of two rows part: a few edits, or one jump, whichever the
 * longer run of matches behind it speaks for. Private to formats/diff/match.c. */
#ifndef BC_FORMATS_DIFF_MATCH_WAY_H
#define BC_FORMATS_DIFF_MATCH_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/diff/align.h"
#include "formats/diff/jump.h"
#include "formats/diff/match_row.h"

/* Looked at first, before all that may be. */
#define BC_WAY_NEAR_ENTRIES 256u
#define BC_WAY_NEAR_EDITS   64u

/* So many entries are searched wherever the rows part. All of a longer look-ahead are where they
 * part rarely: no more than BC_WAY_SEARCHES times for each entry. */
#define BC_WAY_ALWAYS   16384u
#define BC_WAY_SEARCHES 64u

/* So few that times tell apart what is alike. */
#define BC_WAY_TIME_EDITS 16u

struct bc_match_way {
	struct bc_align align; /* what was found */
	struct bc_jump_finder jumps;
	size_t lookahead;
	uint64_t spent; /* entries that were searched beyond BC_WAY_ALWAYS */
};

/* Returns 0, or -ENOMEM with nothing to free. */
int bc_match_way_init(struct bc_match_way *way, size_t lookahead) BC_MUST_CHECK;
void bc_match_way_free(struct bc_match_way *way);

/* Finds the way on from the heads of what is held, which is as much as may be; `time` is NULL where
 * times are not compared. Returns whether there is one; without hunks, if the heads' hashes are the
 * same after all. */
bool bc_match_way_find(struct bc_match_way *way, const struct bc_match_row *a,
	const struct bc_match_row *b, const struct bc_align_time *time);

/* The heads differ in their times alone: returns whether one jump explains that better than one
 * time that is another. */
bool bc_match_way_jump(struct bc_match_way *way, const struct bc_match_row *a,
	const struct bc_match_row *b, const struct bc_align_time *time);

#endif
