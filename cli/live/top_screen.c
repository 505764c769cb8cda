#include "cli/live/top_screen.h"

#include <errno.h>
#include <ncurses.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>
#include <wchar.h>

struct bc_top_screen {
	int in_fd;
	int out_fd;
	FILE *in;
	FILE *out;
	SCREEN *curses;
	attr_t attrs[BC_TOP_STYLES];
	short pairs[BC_TOP_STYLES];
};

/* Without colours, or with $NO_COLOR, styles differ by attributes only. */
static void set_styles(struct bc_top_screen *screen)
{
	static const short colours[BC_TOP_STYLES] = {[BC_TOP_GOOD] = COLOR_GREEN,
		[BC_TOP_WARN] = COLOR_YELLOW,
		[BC_TOP_BAD] = COLOR_RED,
		[BC_TOP_GRAPH] = COLOR_CYAN};
	static const attr_t attrs[BC_TOP_STYLES] = {[BC_TOP_DIM] = A_DIM,
		[BC_TOP_BOLD] = A_BOLD,
		[BC_TOP_TITLE] = A_BOLD,
		[BC_TOP_WARN] = A_BOLD,
		[BC_TOP_BAD] = A_BOLD};
	const char *no_colour = getenv("NO_COLOR");
	bool has_colours = (no_colour == NULL || *no_colour == '\0') && has_colors() &&
			   start_color() == OK && use_default_colors() == OK;

	for (int style = 0; style < (int)BC_TOP_STYLES; style++) {
		screen->attrs[style] = attrs[style];
		if (colours[style] != 0 && has_colours &&
			init_pair((short)style, colours[style], -1) == OK)
			screen->pairs[style] = (short)style;
	}
	if (!has_colours)
		screen->attrs[BC_TOP_BAD] |= A_REVERSE;
}

static bool can_move_cursor(int out)
{
	int error;

	if (setupterm(NULL, out, &error) != OK)
		return false;
	bool can = cursor_address != NULL && clear_screen != NULL;
	del_curterm(cur_term);
	return can;
}

int bc_top_screen_open(struct bc_top_screen **opened, int in, int out)
{
	if (!isatty(in) || !isatty(out) || !can_move_cursor(out))
		return -ENOTTY;
	struct bc_top_screen *screen = calloc(1, sizeof(*screen));
	if (screen == NULL)
		return -ENOMEM;
	/* curses requires streams. Duplicate the descriptors, so that fclose() leaves the caller's
	 * open. */
	screen->in_fd = dup(in);
	screen->out_fd = dup(out);
	screen->in = screen->in_fd >= 0 ? fdopen(screen->in_fd, "r") : NULL;
	screen->out = screen->out_fd >= 0 ? fdopen(screen->out_fd, "w") : NULL;
	if (screen->in != NULL && screen->out != NULL)
		screen->curses = newterm(NULL, screen->out, screen->in);
	if (screen->curses == NULL) {
		bc_top_screen_close(screen);
		return -ENOMEM;
	}
	set_term(screen->curses);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	leaveok(stdscr, TRUE);
	set_styles(screen);
	*opened = screen;
	return 0;
}

void bc_top_screen_close(struct bc_top_screen *screen)
{
	if (screen == NULL)
		return;
	if (screen->curses != NULL) {
		endwin();
		delscreen(screen->curses);
	}
	if (screen->in != NULL)
		fclose(screen->in);
	else if (screen->in_fd >= 0)
		close(screen->in_fd);
	if (screen->out != NULL)
		fclose(screen->out);
	else if (screen->out_fd >= 0)
		close(screen->out_fd);
	free(screen);
}

void bc_top_screen_size(const struct bc_top_screen *screen, unsigned *width, unsigned *height)
{
	int x = getmaxx(stdscr);
	int y = getmaxy(stdscr);

	(void)screen;
	*width = x > 0 ? (unsigned)x : 1;
	*height = y > 0 ? (unsigned)y : 1;
}

void bc_top_screen_resize(struct bc_top_screen *screen)
{
	struct winsize size;

	if (ioctl(screen->out_fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
		return;
	if (resizeterm(size.ws_row, size.ws_col) == OK)
		bc_top_screen_redraw(screen);
}

void bc_top_screen_redraw(struct bc_top_screen *screen)
{
	(void)screen;
	clearok(stdscr, TRUE);
}

void bc_top_screen_show(struct bc_top_screen *screen, const struct bc_top_grid *grid)
{
	wchar_t run[BC_TOP_WIDTH_MAX];

	erase();
	for (unsigned y = 0; y < grid->height; y++) {
		const struct bc_top_cell *cells = grid->cells + (size_t)y * grid->width;
		for (unsigned x = 0; x < grid->width;) {
			unsigned start = x;
			int n = 0;
			/* Collect characters of one style, without second halves of wide ones. */
			for (; x < grid->width && cells[x].style == cells[start].style; x++)
				if (cells[x].code != 0)
					run[n++] = (wchar_t)cells[x].code;
			attr_set(screen->attrs[cells[start].style],
				screen->pairs[cells[start].style], NULL);
			mvaddnwstr((int)y, (int)start, run, n);
		}
	}
	attr_set(A_NORMAL, 0, NULL);
	refresh();
}

int bc_top_screen_key(struct bc_top_screen *screen)
{
	struct pollfd pollfd = {.fd = screen->in_fd, .events = POLLIN};
	int key = getch();

	while (key == KEY_RESIZE) /* inserted by resizeterm(), not a key */
		key = getch();
	if (key == ERR) {
		bool is_ready = poll(&pollfd, 1, 0) > 0;
		return is_ready && (pollfd.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0
			       ? BC_TOP_KEY_HANGUP
			       : BC_TOP_KEY_NONE;
	}
	return key > 0 && key < 0x80 ? key : BC_TOP_KEY_OTHER;
}
