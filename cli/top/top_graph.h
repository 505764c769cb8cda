/* Graphs over time, drawn with block characters. A column is one or more seconds. */
#ifndef BC_CLI_TOP_TOP_GRAPH_H
#define BC_CLI_TOP_TOP_GRAPH_H

#include "cli/top/top_grid.h"
#include "cli/top/top_state.h"

/* Returns the number of seconds per column for a graph with `width` columns. The graph covers at
 * least four minutes, and at most ten unless a column is one second. */
unsigned bc_top_graph_step(unsigned width);

/* Draws a series up to second `end` at (x, y), with `width` columns and `rows` rows. A column is
 * the mean of its seconds for rates, and the maximum for the buffer and for losses. A value above 0
 * is always distinguishable from 0; unknown seconds are blank. The full height is the highest
 * single second, or 1 for the buffer. Returns the highest second. */
double bc_top_graph_draw(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned width,
	unsigned rows, enum bc_top_style style, const struct bc_top_state *state,
	enum bc_top_series series, uint64_t end);

#endif
