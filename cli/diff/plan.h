/* Which entries of the windows of two traces match: by their contents, or by their times.
 * cli/diff/match.h reports it. */
#ifndef BC_CLI_DIFF_PLAN_H
#define BC_CLI_DIFF_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/diff/align.h"
#include "cli/diff/window.h"
#include "formats/base/must_check.h"

struct bc_plan {
	const struct bc_match_options *options; /* the owner's, and the windows */
	const struct bc_window *a;
	const struct bc_window *b;
	uint64_t skew; /* of B's clock against A's; the owner sets it */
	/* The result: blocks of matches, as indices from the start of the windows, and the ends of
	 * the entries for which it is known what matches. */
	struct bc_block *blocks;
	size_t count;
	size_t a_stop;
	size_t b_stop;
	size_t matched; /* entries of each window that have a match, also beyond these ends */
	/* Private. */
	struct bc_align *align;
	struct bc_block *parts;
	uint64_t *a_keys;
	uint64_t *b_keys;
};

/* Returns 0, or -ENOMEM with nothing to free. The options and windows must outlive the plan. */
int bc_plan_init(struct bc_plan *plan, const struct bc_match_options *options,
	const struct bc_window *a, const struct bc_window *b) BC_MUST_CHECK;
void bc_plan_free(struct bc_plan *plan);

/* Aligns the first n entries of A and k of B, of which there are not 0, by their contents. Returns
 * whether it is sure enough how the traces go on; if not, more entries are needed. At the last try,
 * with the largest windows, there won't be more: false only if nothing matches. */
bool bc_plan_align(struct bc_plan *plan, size_t n, size_t k, bool is_last_try) BC_MUST_CHECK;

/* Aligns them by their times, on the same clock. The ends are where more entries are needed;
 * returns false if that is at once. */
bool bc_plan_join(struct bc_plan *plan, size_t n, size_t k) BC_MUST_CHECK;

#endif
