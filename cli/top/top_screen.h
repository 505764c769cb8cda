/* The terminal of buscap top, by curses: a grid is put on it, of which only what has changed is
 * sent. There is one at a time. */
#ifndef BC_CLI_TOP_TOP_SCREEN_H
#define BC_CLI_TOP_TOP_SCREEN_H

#include <stdbool.h>

#include "cli/top/top_grid.h"
#include "formats/base/must_check.h"

/* Keys that are no character. */
#define BC_TOP_KEY_NONE  (-1)
#define BC_TOP_KEY_GONE  (-2) /* nobody is there to press one */
#define BC_TOP_KEY_OTHER (-3)

struct bc_top_screen;

/* Takes over the terminal of these descriptors. Returns 0; -ENOTTY when they are none, or one that
 * can't place the cursor; -ENOMEM. */
int bc_top_screen_open(struct bc_top_screen **opened, int in, int out) BC_MUST_CHECK;

/* Gives the terminal back as it was. NULL is allowed. */
void bc_top_screen_close(struct bc_top_screen *screen);

void bc_top_screen_size(const struct bc_top_screen *screen, unsigned *width, unsigned *height);

/* The terminal's size has changed, SIGWINCH said. */
void bc_top_screen_resize(struct bc_top_screen *screen);

/* What the grid holds is on the screen. */
void bc_top_screen_show(struct bc_top_screen *screen, const struct bc_top_grid *grid);

/* All of it anew with the next grid: something else may have written on the terminal. */
void bc_top_screen_renew(struct bc_top_screen *screen);

/* The next key pressed, without waiting. */
int bc_top_screen_key(struct bc_top_screen *screen);

#endif
