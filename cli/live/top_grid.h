/* A grid of styled characters, on which a page is drawn before it is shown or printed. Drawing is
 * clipped to the grid. Truncated text ends with an ellipsis.
 *
 * Texts are UTF-8. Characters without a width and control characters become '?', and without
 * `is_utf8` all characters that are not ASCII. wcwidth() determines the width of a character, so
 * the caller must set LC_CTYPE. */
#ifndef BC_CLI_LIVE_TOP_GRID_H
#define BC_CLI_LIVE_TOP_GRID_H

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
	struct bc_top_cell *cells; /* line by line */
};

/* Makes a blank grid. The size is limited to between 1 x 1 and BC_TOP_WIDTH_MAX x
 * BC_TOP_HEIGHT_MAX. Returns 0 or -ENOMEM. */
int bc_top_grid_open(
	struct bc_top_grid *grid, unsigned width, unsigned height, bool is_utf8) BC_MUST_CHECK;

/* A zeroed grid is allowed. */
void bc_top_grid_close(struct bc_top_grid *grid);

/* Returns the width of a text in columns. */
unsigned bc_top_columns(const struct bc_top_grid *grid, const char *text);

/* Draws a text at (x, y) in at most `max_width` columns. Returns the number of columns used. */
unsigned bc_top_write(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned max_width,
	enum bc_top_style style, const char *text);

/* Draws a text right-aligned in `max_width` columns. */
void bc_top_write_right(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned max_width,
	enum bc_top_style style, const char *text);

/* Draws one character of width 1. */
void bc_top_write_code(
	struct bc_top_grid *grid, unsigned x, unsigned y, enum bc_top_style style, uint32_t code);

/* Changes the style of all cells. */
void bc_top_grid_restyle(struct bc_top_grid *grid, enum bc_top_style style);

/* Maximum size of a line in UTF-8, with the null byte. */
#define BC_TOP_LINE_BYTES (4 * BC_TOP_WIDTH_MAX + 1)

/* Writes a line as a string without trailing spaces. Returns its length. */
size_t bc_top_grid_line(const struct bc_top_grid *grid, unsigned y, char out[BC_TOP_LINE_BYTES]);

/* ---- The terminal, with curses. Only changes are sent to it. A process can have one screen. */

/* Results of bc_top_screen_key() other than characters. */
#define BC_TOP_KEY_NONE   (-1)
#define BC_TOP_KEY_HANGUP (-2) /* the terminal was closed */
#define BC_TOP_KEY_RESIZE (-3) /* the window has another size */
#define BC_TOP_KEY_OTHER  (-4)

struct bc_top_screen;

/* Opens the screen on the terminal of these descriptors. Returns 0, -ENOMEM, or -ENOTTY if they are
 * not a terminal that can move the cursor. */
int bc_top_screen_open(struct bc_top_screen **opened, int in, int out) BC_MUST_CHECK;

/* Restores the terminal. NULL is allowed. */
void bc_top_screen_close(struct bc_top_screen *screen);

void bc_top_screen_size(const struct bc_top_screen *screen, unsigned *width, unsigned *height);

/* Shows a grid. */
void bc_top_screen_show(struct bc_top_screen *screen, const struct bc_top_grid *grid);

/* Sends everything with the next grid, not only changes: another program may have written there. */
void bc_top_screen_redraw(struct bc_top_screen *screen);

/* Returns the next key without waiting. */
int bc_top_screen_key(struct bc_top_screen *screen);

#endif
