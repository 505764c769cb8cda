/* The lines of buscap top's page that say something in phrases: a label, then as many phrases as
 * there is room for. */
#ifndef BC_CLI_TOP_TOP_FACT_H
#define BC_CLI_TOP_TOP_FACT_H

#include <stdbool.h>

#include "cli/client/status_lines.h"
#include "cli/top/top_grid.h"
#include "cli/top/top_state.h"

/* A line under way. */
struct bc_top_fact {
	struct bc_top_grid *grid;
	unsigned begin;
	unsigned x;
	unsigned y;
	unsigned sign; /* where it would be said that there is more */
	unsigned end;  /* the column behind the last that may be taken */
	const char *separator;
	bool is_full;
};

/* Begins at (x, y), with ", " between phrases. */
struct bc_top_fact bc_top_fact_start(
	struct bc_top_grid *grid, unsigned x, unsigned y, unsigned end);

/* Adds a phrase whole; where there is no room for it, a sign in its place, and no more after it.
 * The first is cut if need be. */
void bc_top_print(struct bc_top_fact *fact, enum bc_top_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The label at the beginning of a line, in less than `room` columns. */
void bc_top_write_label(struct bc_top_grid *grid, unsigned y, unsigned room, const char *label);

/* Draws a line of the status at (x, y), without its label. */
void bc_top_fact_draw(struct bc_top_grid *grid, unsigned x, unsigned y, enum bc_status_line_id line,
	const struct bc_top_state *state, const struct bc_top_now *now);

#endif
