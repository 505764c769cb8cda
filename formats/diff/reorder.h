/* Finds equal entries at about the same time in a different order. */
#ifndef BC_FORMATS_DIFF_REORDER_H
#define BC_FORMATS_DIFF_REORDER_H

#include <stddef.h>
#include <stdint.h>

#include "formats/diff/window.h"

/* Which entries of a window are without a partner: indices from its begin. */
struct bc_leftover {
	uint32_t *at;
	size_t count;
};

/* Pairs leftover entries of A and B that are equal, and whose times are if `skew` is added to those
 * of A. Sets is_taken for both, and changes the order of b_left. */
void bc_reorder_pair(const struct bc_match_options *options, const struct bc_window *a,
	const struct bc_leftover *a_left, const struct bc_window *b,
	const struct bc_leftover *b_left, uint64_t skew);

#endif
