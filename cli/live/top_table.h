/* The tables of bus traffic: types, processors, hottest pages. */
#ifndef BC_CLI_LIVE_TOP_TABLE_H
#define BC_CLI_LIVE_TOP_TABLE_H

#include "cli/live/top_grid.h"
#include "cli/live/top_state.h"

/* Minimum height of the tables: a heading, titles, three rows. */
#define BC_TOP_TABLES_MIN 5u

/* Draws the tables on `lines` lines starting at `y`, side by side if the grid is wide enough. Shows
 * the rows with the largest shares, sorted by share, or by name and address. */
void bc_top_tables_draw(struct bc_top_grid *grid, unsigned y, unsigned lines,
	const struct bc_top_state *state, bool is_by_name);

/* Returns the number of lines that the tables need to show all rows at this width. */
unsigned bc_top_tables_height(unsigned width, const struct bc_top_state *state);

#endif
