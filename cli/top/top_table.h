/* The tables of what is on the bus: by type, by processor, the hottest pages. */
#ifndef BC_CLI_TOP_TOP_TABLE_H
#define BC_CLI_TOP_TOP_TABLE_H

#include "cli/top/top_grid.h"
#include "cli/top/top_state.h"

/* The fewest lines that the tables want: a heading, their titles, three rows. */
#define BC_TOP_TABLES_LEAST 5u

/* Draws them on `lines` lines from `y` on, side by side where the grid is wide enough. The rows
 * with the largest shares are drawn, in the order of their shares, or by name and address. */
void bc_top_tables_draw(struct bc_top_grid *grid, unsigned y, unsigned lines,
	const struct bc_top_state *state, bool is_by_name);

/* How many lines they need to show all that is known, in such a width. */
unsigned bc_top_tables_wanted(unsigned width, const struct bc_top_state *state);

#endif
