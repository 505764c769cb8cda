/* Lines of phrases on buscap top's page: a label, then as many phrases as fit. */
#ifndef BC_CLI_TOP_TOP_PHRASES_H
#define BC_CLI_TOP_TOP_PHRASES_H

#include <stdbool.h>

#include "cli/client/status_lines.h"
#include "cli/top/top_grid.h"
#include "cli/top/top_state.h"

/* A line being drawn. */
struct bc_top_phrases {
	struct bc_top_grid *grid;
	unsigned start;
	unsigned x;
	unsigned y;
	unsigned more_x; /* where the ellipsis would go */
	unsigned end;    /* the first column after the line */
	const char *separator;
	bool is_full;
};

/* Starts a line at (x, y), with ", " between phrases. */
struct bc_top_phrases bc_top_phrases_start(
	struct bc_top_grid *grid, unsigned x, unsigned y, unsigned end);

/* Adds a phrase. If it does not fit, draws an ellipsis instead and ignores all later phrases. The
 * first phrase is truncated instead. */
void bc_top_phrases_add(struct bc_top_phrases *phrases, enum bc_top_style style, const char *format,
	...) __attribute__((format(printf, 3, 4)));

/* Draws the label at the start of a line, in fewer than `width` columns. */
void bc_top_write_label(struct bc_top_grid *grid, unsigned y, unsigned width, const char *label);

/* Draws a line of the status at (x, y), without its label. */
void bc_top_phrases_draw_status(struct bc_top_grid *grid, unsigned x, unsigned y,
	enum bc_status_line_id line, const struct bc_top_state *state,
	const struct bc_top_now *now);

#endif
