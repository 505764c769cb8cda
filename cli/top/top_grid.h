/* A rectangle of characters with styles, on which a page is drawn before it goes to a screen or a
 * file. Nothing is ever drawn outside of it, and what is cut ends in a sign, an ellipsis.
 *
 * Texts are UTF-8. Where `is_utf8` is not set the grid holds ASCII alone, other characters become
 * '?'; nor does it hold what has no width or moves the cursor. How wide a character is says
 * wcwidth(), for which the caller has set the locale. */
#ifndef BC_CLI_TOP_TOP_GRID_H
#define BC_CLI_TOP_TOP_GRID_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BC_TOP_WIDTH_MAX  1000u
#define BC_TOP_HEIGHT_MAX 400u

enum bc_top_style {
	BC_TOP_PLAIN,
	BC_TOP_DIM,
	BC_TOP_BOLD,
	BC_TOP_TITLE,
	BC_TOP_GOOD,
	BC_TOP_WARN,
	BC_TOP_BAD,
	BC_TOP_GRAPH,
	BC_TOP_STYLES,
};

struct bc_top_cell {
	uint32_t code; /* 0: the second half of the wide character before it */
	uint8_t style; /* enum bc_top_style */
};

struct bc_top_grid {
	unsigned width;
	unsigned height;
	bool is_utf8;
	struct bc_top_cell *cells; /* by lines */
};

/* A blank grid, of at least one cell and at most BC_TOP_WIDTH_MAX x BC_TOP_HEIGHT_MAX: what is
 * asked for is brought into these bounds. Returns 0 or -ENOMEM. */
int bc_top_grid_open(
	struct bc_top_grid *grid, unsigned width, unsigned height, bool is_utf8) BC_MUST_CHECK;

/* All zero is allowed. */
void bc_top_grid_close(struct bc_top_grid *grid);

/* How many columns a text takes. */
unsigned bc_top_columns(const struct bc_top_grid *grid, const char *text);

/* Draws a text at (x, y) in at most `room` columns; one that is longer ends in the sign. Returns
 * the columns taken. */
unsigned bc_top_write(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned room,
	enum bc_top_style style, const char *text);

/* The same at the right end of the room, blanks before it. */
void bc_top_write_right(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned room,
	enum bc_top_style style, const char *text);

/* Draws one character of width 1. */
void bc_top_write_code(
	struct bc_top_grid *grid, unsigned x, unsigned y, enum bc_top_style style, uint32_t code);

/* All of it in one style. */
void bc_top_grid_restyle(struct bc_top_grid *grid, enum bc_top_style style);

/* The most bytes of a line in UTF-8, with its zero. */
#define BC_TOP_LINE_BYTES (4 * BC_TOP_WIDTH_MAX + 1)

/* A line as a string, without the blanks at its end. Returns its length. */
size_t bc_top_grid_line(const struct bc_top_grid *grid, unsigned y, char out[BC_TOP_LINE_BYTES]);

#endif
