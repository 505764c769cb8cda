/* A stretch of two rows that holds the same entries in both, each within the window of its match,
 * in another order. Private to formats/diff/match.c. */
#ifndef BC_FORMATS_DIFF_MATCH_STRETCH_H
#define BC_FORMATS_DIFF_MATCH_STRETCH_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/diff/match_row.h"

/* Entries of one row that wait for their match, at most. */
#define BC_STRETCH_WAITING 256u

/* Indices of held entries. */
struct bc_match_waiting {
	size_t at[BC_STRETCH_WAITING];
	size_t count;
};

struct bc_match_stretch {
	struct bc_match_waiting a;
	struct bc_match_waiting b;
};

/* Whether the heads begin one: returns its length, 0 if not, or a negative errno. What of the rows
 * it looks at is held then. `stretch` need not be set. */
int64_t bc_match_stretch_find(struct bc_match_stretch *stretch, struct bc_match_row *a,
	struct bc_match_row *b, const struct bc_match_options *options,
	uint64_t skew) BC_MUST_CHECK;

#endif
