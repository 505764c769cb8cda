/* Lines over time, drawn of block characters: one column is one or more seconds. */
#ifndef BC_CLI_TOP_TOP_GRAPH_H
#define BC_CLI_TOP_TOP_GRAPH_H

#include "cli/top/top_grid.h"
#include "cli/top/top_state.h"

/* How many seconds a column of a graph `width` wide stands for: so many that it shows the last four
 * minutes at least, and not more than ten. */
unsigned bc_top_graph_step(unsigned width);

/* Draws the latest seconds of a line, up to second `end`, at (x, y), `width` columns wide and
 * `rows` high. A rate's column is the mean of its seconds, of the buffer and of losses the highest;
 * what is not 0 is seen to be not 0, and where nothing is known it is blank. The full height is the
 * highest single second, which is returned, of the buffer all of it. */
double bc_top_graph_draw(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned width,
	unsigned rows, enum bc_top_style style, const struct bc_top_state *state,
	enum bc_top_line line, uint64_t end);

#endif
