/* The page of buscap top: what is known of the daemon, laid out for a width and a height. The
 * screen, the output without a terminal and the tests share it. docs/top.md says what each figure
 * is.
 *
 * Where there is little room the less important lines are left out, and of a line the phrases at
 * its end; a phrase or a name that is cut ends in a sign. */
#ifndef BC_CLI_TOP_TOP_PAGE_H
#define BC_CLI_TOP_TOP_PAGE_H

#include "cli/top/top_grid.h"
#include "cli/top/top_state.h"
#include "formats/base/must_check.h"

struct bc_top_view {
	unsigned width;
	unsigned height;
	bool is_utf8;
	bool is_screen; /* there is a history to draw, and there are keys */
	bool is_paused;
	bool is_by_name; /* the order of the tables */
	bool is_help;    /* the keys are shown in place of the page */
};

/* Lays the page out into a grid that is opened here, and the caller's to close. Returns 0 or
 * -ENOMEM. */
int bc_top_page_draw(struct bc_top_grid *grid, const struct bc_top_state *state,
	const struct bc_top_view *view, const struct bc_top_now *now) BC_MUST_CHECK;

#endif
