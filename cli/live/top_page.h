/* Lays out the page of buscap top for a width and a height. Used for the screen, for output without
 * a terminal, and in tests. docs/top.md explains the figures.
 *
 * If there is little space, less important lines are omitted, and so are the phrases at the end of
 * a line. Truncated phrases and names end with an ellipsis. */
#ifndef BC_CLI_LIVE_TOP_PAGE_H
#define BC_CLI_LIVE_TOP_PAGE_H

#include "cli/live/top_grid.h"
#include "cli/live/top_state.h"
#include "formats/base/must_check.h"

/* ---- Graphs over time, drawn with block characters. A column is one or more seconds. */

/* Draws a series up to second `end` at (x, y), with `width` columns and `rows` rows. A column is
 * the mean of its seconds for rates, and the maximum for the buffer and for losses. A value above 0
 * is always distinguishable from 0; unknown seconds are blank. The full height is the highest
 * single second, or 1 for the buffer. Returns the highest second. */
double bc_top_graph_draw(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned width,
	unsigned rows, enum bc_top_style style, const struct bc_top_state *state,
	enum bc_top_series series, uint64_t end);

/* ---- The tables of bus traffic: types, processors, hottest pages. cli/live/top_table.c */

/* Minimum height of the tables: a heading, titles, three rows. */
#define BC_TOP_TABLES_MIN 5u

/* Draws the tables on `lines` lines starting at `y`, side by side if the grid is wide enough. Shows
 * the rows with the largest shares, sorted by share, or by name and address. */
void bc_top_tables_draw(struct bc_top_grid *grid, unsigned y, unsigned lines,
	const struct bc_top_state *state, bool is_by_name);

/* Returns the number of lines that the tables need to show all rows at this width. */
unsigned bc_top_tables_height(unsigned width, const struct bc_top_state *state);

/* ---- The page. */

struct bc_top_view {
	unsigned width;
	unsigned height;
	bool is_utf8;
	bool is_screen; /* draw graphs and the line of keys */
	bool is_paused;
	bool is_by_name; /* sort the tables by name */
	bool is_help;    /* show the keys instead of the page */
};

/* Opens the grid, which the caller closes, and draws the page. Returns 0 or -ENOMEM. */
int bc_top_page_draw(struct bc_top_grid *grid, const struct bc_top_state *state,
	const struct bc_top_view *view, const struct bc_top_now *now) BC_MUST_CHECK;

#endif
