/* The terminal of buscap top, with curses. Only changes are sent to the terminal. A process can
 * have one screen at a time. */
#ifndef BC_CLI_LIVE_TOP_SCREEN_H
#define BC_CLI_LIVE_TOP_SCREEN_H

#include <stdbool.h>

#include "cli/live/top_grid.h"
#include "formats/base/must_check.h"

/* Results of bc_top_screen_key() other than characters. */
#define BC_TOP_KEY_NONE   (-1)
#define BC_TOP_KEY_HANGUP (-2) /* the terminal was closed */
#define BC_TOP_KEY_OTHER  (-3)

struct bc_top_screen;

/* Opens the screen on the terminal of these descriptors. Returns 0, -ENOMEM, or -ENOTTY if they are
 * not a terminal that can move the cursor. */
int bc_top_screen_open(struct bc_top_screen **opened, int in, int out) BC_MUST_CHECK;

/* Restores the terminal. NULL is allowed. */
void bc_top_screen_close(struct bc_top_screen *screen);

void bc_top_screen_size(const struct bc_top_screen *screen, unsigned *width, unsigned *height);

/* Updates the size after SIGWINCH. */
void bc_top_screen_resize(struct bc_top_screen *screen);

/* Shows a grid. */
void bc_top_screen_show(struct bc_top_screen *screen, const struct bc_top_grid *grid);

/* Sends everything with the next grid, not only changes: another program may have written to the
 * terminal. */
void bc_top_screen_redraw(struct bc_top_screen *screen);

/* Returns the next key without waiting. */
int bc_top_screen_key(struct bc_top_screen *screen);

#endif
