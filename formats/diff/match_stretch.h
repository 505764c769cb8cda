/* Finds a stretch that has the same entries in both rows, in a different order, each within the
 * window of its match. Private to formats/diff/match.c. */
#ifndef BC_FORMATS_DIFF_MATCH_STRETCH_H
#define BC_FORMATS_DIFF_MATCH_STRETCH_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/diff/match_row.h"

/* Maximum number of unmatched entries per row. */
#define BC_STRETCH_WAITING 256u

/* Indices of unmatched entries. */
struct bc_match_waiting {
	size_t at[BC_STRETCH_WAITING];
	size_t count;
};

struct bc_match_stretch {
	struct bc_match_waiting a;
	struct bc_match_waiting b;
};

/* Returns the length of a stretch that starts at the heads, 0 if there is none, or a negative
 * errno. The entries examined are kept in the rows. `stretch` need not be initialized. */
int64_t bc_match_stretch_find(struct bc_match_stretch *stretch, struct bc_match_row *a,
	struct bc_match_row *b, const struct bc_match_options *options,
	uint64_t skew) BC_MUST_CHECK;

#endif
