/* The grid on which a page of `buscap top` is drawn, and the terminal that shows it.
 *
 * A cell has one character and a style. A wide character takes two cells; the code of the second is
 * 0. Invariant: a cell with code 0 follows a wide character, which bc_top_write_code() keeps true
 * by blanking the other half of a wide character that it overwrites. Clipping happens only here:
 * the callers may write anywhere.
 *
 * The screen hands the grid to curses in runs of one style, and curses sends only changes. */
#include "cli/live/top_grid.h"

#include <errno.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>
#include <wchar.h>

#include "formats/base/utf8.h"

#undef columns /* a macro of term.h */

#define ELLIPSIS 0x2026u

int bc_top_grid_open(struct bc_top_grid *grid, unsigned width, unsigned height, bool is_utf8)
{
	width = width == 0 ? 1 : width < BC_TOP_WIDTH_MAX ? width : BC_TOP_WIDTH_MAX;
	height = height == 0 ? 1 : height < BC_TOP_HEIGHT_MAX ? height : BC_TOP_HEIGHT_MAX;
	*grid = (struct bc_top_grid){.width = width, .height = height, .is_utf8 = is_utf8};
	grid->cells = calloc((size_t)width * height, sizeof(*grid->cells));
	if (grid->cells == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < (size_t)width * height; i++)
		grid->cells[i].code = ' ';
	return 0;
}

void bc_top_grid_close(struct bc_top_grid *grid)
{
	free(grid->cells);
	*grid = (struct bc_top_grid){0};
}

/* Returns the next character as it is drawn, and advances *text. *width is 1 or 2. */
static uint32_t next_drawn(const struct bc_top_grid *grid, const char **text, unsigned *width)
{
	const uint8_t *at = (const uint8_t *)*text;
	uint32_t bytes = bc_utf8_bytes(at, strnlen(*text, 4));
	uint32_t code = bytes != 0 ? bc_utf8_code(at, bytes) : '?';

	*text += bytes != 0 ? bytes : 1;
	int columns = grid->is_utf8 || code < 0x80 ? wcwidth((wchar_t)code) : -1;

	if (columns != 1 && columns != 2) {
		code = '?';
		columns = 1;
	}
	*width = (unsigned)columns;
	return code;
}

unsigned bc_top_columns(const struct bc_top_grid *grid, const char *text)
{
	unsigned columns = 0;
	unsigned width;

	while (*text != '\0') {
		next_drawn(grid, &text, &width);
		columns += width;
	}
	return columns;
}

void bc_top_write_code(
	struct bc_top_grid *grid, unsigned x, unsigned y, enum bc_top_style style, uint32_t code)
{
	if (x >= grid->width || y >= grid->height)
		return;
	struct bc_top_cell *cell = &grid->cells[(size_t)y * grid->width + x];
	/* If this overwrites half of a wide character, clear the other half. */
	if (x != 0 && cell->code == 0)
		cell[-1].code = ' ';
	if (x + 1 < grid->width && cell[1].code == 0)
		cell[1].code = ' ';
	*cell = (struct bc_top_cell){.code = code, .style = (uint8_t)style};
}

unsigned bc_top_write(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned max_width,
	enum bc_top_style style, const char *text)
{
	unsigned taken = 0;

	if (x >= grid->width || y >= grid->height)
		return 0;
	if (max_width > grid->width - x)
		max_width = grid->width - x;
	bool is_cut = bc_top_columns(grid, text) > max_width;
	unsigned end = is_cut && max_width != 0 ? max_width - 1 : max_width;
	while (*text != '\0') {
		unsigned width;
		uint32_t code = next_drawn(grid, &text, &width);
		if (taken + width > end)
			break;
		bc_top_write_code(grid, x + taken, y, style, code);
		if (width == 2)
			bc_top_write_code(grid, x + taken + 1, y, style, 0);
		taken += width;
	}
	if (is_cut && max_width != 0)
		bc_top_write_code(grid, x + taken++, y, style, grid->is_utf8 ? ELLIPSIS : '~');
	return taken;
}

void bc_top_write_right(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned max_width,
	enum bc_top_style style, const char *text)
{
	unsigned columns = bc_top_columns(grid, text);

	if (x < grid->width && max_width > grid->width - x)
		max_width = grid->width - x;
	unsigned left = columns < max_width ? max_width - columns : 0;
	bc_top_write(grid, x + left, y, max_width - left, style, text);
}

void bc_top_grid_restyle(struct bc_top_grid *grid, enum bc_top_style style)
{
	for (size_t i = 0; i < (size_t)grid->width * grid->height; i++)
		grid->cells[i].style = (uint8_t)style;
}

size_t bc_top_grid_line(const struct bc_top_grid *grid, unsigned y, char out[BC_TOP_LINE_BYTES])
{
	const struct bc_top_cell *cells = grid->cells + (size_t)y * grid->width;
	unsigned columns = grid->width;
	char *p = out;
	mbstate_t state = {0};

	while (columns != 0 && cells[columns - 1].code == ' ')
		columns--;
	for (unsigned x = 0; x < columns; x++)
		if (cells[x].code != 0)
			p += wcrtomb(p, (wchar_t)cells[x].code, &state);
	*p = '\0';
	return (size_t)(p - out);
}

/* ---- the screen */

struct bc_top_screen {
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

/* curses requires streams. Returns one of a copy, so that fclose() leaves the caller's open. */
static FILE *open_copy(int fd, const char *mode)
{
	int copy = dup(fd);
	FILE *stream = copy >= 0 ? fdopen(copy, mode) : NULL;

	if (stream == NULL && copy >= 0)
		close(copy);
	return stream;
}

int bc_top_screen_open(struct bc_top_screen **opened, int in, int out)
{
	sigset_t resize;

	if (!isatty(in) || !isatty(out) || !can_move_cursor(out))
		return -ENOTTY;
	struct bc_top_screen *screen = calloc(1, sizeof(*screen));
	if (screen == NULL)
		return -ENOMEM;
	screen->in = open_copy(in, "r");
	screen->out = open_copy(out, "w");
	/* curses asks for the size before it catches this. */
	sigemptyset(&resize);
	sigaddset(&resize, SIGWINCH);
	sigprocmask(SIG_BLOCK, &resize, NULL);
	if (screen->in != NULL && screen->out != NULL)
		screen->curses = newterm(NULL, screen->out, screen->in);
	sigprocmask(SIG_UNBLOCK, &resize, NULL);
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
	if (screen->out != NULL)
		fclose(screen->out);
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
	struct pollfd pollfd = {.fd = fileno(screen->in), .events = POLLIN};
	int key = getch();

	if (key == KEY_RESIZE)
		return BC_TOP_KEY_RESIZE;
	if (key == ERR) {
		bool is_ready = poll(&pollfd, 1, 0) > 0;
		return is_ready && (pollfd.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0
			       ? BC_TOP_KEY_HANGUP
			       : BC_TOP_KEY_NONE;
	}
	return key > 0 && key < 0x80 ? key : BC_TOP_KEY_OTHER;
}
