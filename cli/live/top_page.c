/* The page of `buscap top`: from the state to a grid, for any width and height.
 *
 * The page is a column of items (enum item), each of which takes some lines or none. Lines are
 * allotted by importance, not by position, so a low screen keeps what matters; the tables get the
 * lines that are left. Within a line of phrases the same happens from left to right: what does not
 * fit becomes an ellipsis. Graphs have one column for a fixed number of seconds, whose boundaries
 * do not depend on the time, so that columns move left without changing. No page keeps anything. */
#include "cli/live/top_page.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/live/status.h"
#include "cli/live/top_grid.h"
#include "cli/live/top_state.h"
#include "cli/term/json_path.h"
#include "cli/term/text.h"

/* ---- Lines of phrases on buscap top's page: a label, then as many phrases as fit. */

/* A line being drawn. */
struct phrases {
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
static struct phrases start_phrases(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned end)
{
	return (struct phrases){.grid = grid,
		.start = x,
		.x = x,
		.y = y,
		.more_x = x,
		.end = end,
		.separator = ", "};
}

/* Width of the ellipsis, with a space. */
#define MORE_WIDTH 2u

/* Draws the ellipsis after the last phrase that leaves space for it, or at the end of the first. */
static void write_more(struct phrases *phrases)
{
	phrases->is_full = true;
	if (phrases->end < phrases->more_x + MORE_WIDTH) {
		bc_top_write_code(phrases->grid, phrases->end - 1, phrases->y, BC_TOP_DIM,
			phrases->grid->is_utf8 ? 0x2026 : '~');
		return;
	}
	for (unsigned x = phrases->more_x; x < phrases->end; x++)
		bc_top_write_code(phrases->grid, x, phrases->y, BC_TOP_PLAIN, ' ');
	bc_top_write(phrases->grid, phrases->more_x, phrases->y, MORE_WIDTH, BC_TOP_DIM,
		phrases->grid->is_utf8 ? " \u2026" : " ~");
}

/* Adds a phrase. If it does not fit, draws an ellipsis instead and ignores all later phrases. The
 * first phrase is truncated instead. */
__attribute__((format(printf, 3, 4))) static void add_phrase(
	struct phrases *phrases, enum bc_top_style style, const char *format, ...)
{
	char text[1200];
	va_list args;

	if (phrases->is_full)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	unsigned width = phrases->end > phrases->x ? phrases->end - phrases->x : 0;
	if (phrases->x == phrases->start) {
		phrases->x += bc_top_write(
			phrases->grid, phrases->x, phrases->y, width, style, text);
		phrases->more_x = phrases->x;
		return;
	}
	unsigned between = (unsigned)strlen(phrases->separator);
	unsigned columns = between + bc_top_columns(phrases->grid, text);
	/* The last phrase may use the space reserved for the ellipsis. */
	if (columns > width || phrases->end - phrases->more_x < MORE_WIDTH) {
		write_more(phrases);
		return;
	}
	bc_top_write(
		phrases->grid, phrases->x, phrases->y, width, BC_TOP_PLAIN, phrases->separator);
	bc_top_write(phrases->grid, phrases->x + between, phrases->y, width - between, style, text);
	phrases->x += columns;
	if (phrases->end - phrases->x >= MORE_WIDTH)
		phrases->more_x = phrases->x;
}

static void write_phrase(void *context, enum bc_tone tone, const char *phrase)
{
	static const enum bc_top_style styles[BC_TONES] = {[BC_TONE_PLAIN] = BC_TOP_PLAIN,
		[BC_TONE_GOOD] = BC_TOP_GOOD,
		[BC_TONE_WARN] = BC_TOP_WARN,
		[BC_TONE_BAD] = BC_TOP_BAD};

	add_phrase(context, styles[tone], "%s", phrase);
}

/* Draws a line of the status at (x, y), without its label. */
static void draw_status(struct bc_top_grid *grid, unsigned x, unsigned y,
	enum bc_status_line_id line, const struct bc_top_state *state, const struct bc_top_now *now)
{
	struct phrases phrases = start_phrases(grid, x, y, grid->width);
	const struct bc_status_writer writer = {.write = write_phrase,
		.context = &phrases,
		.is_brief = true,
		.now = now->wall,
		.lost_s_ago = state->lost_ns != 0 ? (double)(now->ns - state->lost_ns) / 1e9 : -1};

	bc_status_rows[line].write(state->status, &writer);
}

#define SHOWN_SECONDS 240u
#define EIGHTHS       8u

/* The seconds per column of a graph: it covers at least four minutes, and at most ten unless a
 * column is one second. */
static unsigned graph_step(unsigned width)
{
	static const unsigned steps[] = {1, 2, 5, 10, 15, 30, 60};
	const unsigned most = sizeof(steps) / sizeof(steps[0]) - 1;
	unsigned i = 0;

	while (i < most && steps[i] * width < SHOWN_SECONDS)
		i++;
	return steps[i];
}

struct bucket {
	bool is_known;
	double value;
	double highest;
};

static struct bucket bucket_of(
	const struct bc_top_state *state, enum bc_top_series series, uint64_t first, unsigned step)
{
	struct bucket bucket = {0};
	unsigned known = 0;
	double sum = 0;

	for (unsigned i = 0; i < step; i++) {
		const struct bc_top_second *second = bc_top_state_second(state, first + i);
		if (second == NULL)
			continue;
		known++;
		sum += second->values[series];
		bucket.highest = fmax(bucket.highest, second->values[series]);
	}
	bucket.is_known = known != 0;
	if (known != 0)
		bucket.value = series == BC_TOP_BUFFER || series == BC_TOP_LOST ? bucket.highest
										: sum / known;
	return bucket;
}

/* Returns the height of a column in eighths of a row: one for 0, at least two above 0. */
static unsigned eighths_of(double value, double full, unsigned rows)
{
	double all = (double)(rows * EIGHTHS);

	if (!(value > 0) || !(full > 0))
		return 1;
	return (unsigned)fmax(2, fmin(ceil(value / full * all), all));
}

static void draw_column(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned rows,
	enum bc_top_style style, unsigned eighths)
{
	static const char plain[EIGHTHS + 1] = " _.,-=+*#";

	for (unsigned row = rows; row-- != 0 && eighths != 0;) {
		unsigned part = eighths < EIGHTHS ? eighths : EIGHTHS;
		uint32_t code = grid->is_utf8 ? 0x2580 + part : (uint32_t)plain[part];
		bc_top_write_code(grid, x, y + row, style, code);
		eighths -= part;
	}
}

double bc_top_graph_draw(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned width,
	unsigned rows, enum bc_top_style style, const struct bc_top_state *state,
	enum bc_top_series series, uint64_t end)
{
	unsigned step = graph_step(width);
	/* Column boundaries are multiples of `step`, so columns move left but do not change. */
	uint64_t last = end / step;
	double highest = 0;

	for (unsigned i = 0; i < width && i <= last; i++) {
		struct bucket bucket = bucket_of(state, series, (last - i) * step, step);
		highest = fmax(highest, bucket.highest);
	}
	double full = series == BC_TOP_BUFFER ? 1 : highest;
	for (unsigned i = 0; i < width && i <= last; i++) {
		struct bucket bucket = bucket_of(state, series, (last - i) * step, step);
		if (bucket.is_known)
			draw_column(grid, x + width - 1 - i, y, rows,
				bucket.value > 0 ? style : BC_TOP_GRAPH,
				eighths_of(bucket.value, full, rows));
	}
	return highest;
}

#define VALUE_WIDTH 10u
#define NOTE_WIDTH  12u
#define GRAPH_MIN   5u

/* The screen's lines from top to bottom. */
enum item {
	ITEM_HEADER,
	ITEM_UNREACHABLE,
	ITEM_SOURCE,
	ITEM_BOARD,
	ITEM_RECORDING,
	ITEM_AMOUNTS,
	ITEM_FLIGHT,
	ITEM_DISK,
	ITEM_BUFFER,
	ITEM_LOST,
	ITEM_LEFT_OUT,
	ITEM_MORE,
	ITEM_SCALE, /* or a blank line */
	ITEM_SAMPLES,
	ITEM_RECORDS,
	ITEM_TO_DISK,
	ITEM_BUFFER_GRAPH,
	ITEM_LOST_GRAPH,
	ITEM_BLANK_TABLES,
	ITEM_TABLES,
	ITEM_KEYS,
	ITEMS,
};

/* The most important items first; the others are shown while there is space. The tables get their
 * minimum height here, and all remaining lines in the end. */
static const enum item by_importance[] = {
	ITEM_HEADER,
	ITEM_UNREACHABLE,
	ITEM_SAMPLES,
	ITEM_LOST,
	ITEM_DISK,
	ITEM_BUFFER,
	ITEM_KEYS,
	ITEM_AMOUNTS,
	ITEM_TO_DISK,
	ITEM_FLIGHT,
	ITEM_TABLES,
	ITEM_RECORDS,
	ITEM_BUFFER_GRAPH,
	ITEM_RECORDING,
	ITEM_BOARD,
	ITEM_SOURCE,
	ITEM_LOST_GRAPH,
	ITEM_BLANK_TABLES,
	ITEM_SCALE,
	ITEM_LEFT_OUT,
	ITEM_MORE,
};

_Static_assert(sizeof(by_importance) / sizeof(by_importance[0]) == ITEMS, "each item once");

/* Screens lower than this omit the last two items in favour of the tables. */
#define LOW_SCREEN 28u

/* At this height, the reason why the daemon is unreachable gets a separate line. */
#define UNREACHABLE_SCREEN 16u

/* At this height, graphs have more than one row. */
#define HIGH_SCREEN 40u

struct page {
	struct bc_top_grid *grid;
	const struct bc_top_state *state;
	const struct bc_top_view *view;
	const struct bc_top_now *now;
	unsigned label;        /* width of the labels */
	unsigned lines[ITEMS]; /* 0: omitted */
};

/* What an item shows, and when: */
static const struct {
	bool needs_status;
	bool needs_screen;
	bool needs_height;  /* not on a low screen */
	const char *object; /* needs this object in the status */
	/* A line of the status, plus 1; or a graph with this label. */
	unsigned status_line;
	const char *label;
	enum bc_top_series series;
} items[ITEMS] = {
	[ITEM_SOURCE] = {.needs_status = true, .status_line = BC_STATUS_SOURCE + 1},
	[ITEM_BOARD] = {.object = "source.board", .status_line = BC_STATUS_BOARD + 1},
	[ITEM_RECORDING] = {.object = "recording", .status_line = BC_STATUS_RECORDING + 1},
	[ITEM_AMOUNTS] = {.needs_status = true, .status_line = BC_STATUS_AMOUNTS + 1},
	[ITEM_FLIGHT] = {.object = "flight", .status_line = BC_STATUS_FLIGHT + 1},
	[ITEM_DISK] = {.needs_status = true, .status_line = BC_STATUS_DISK + 1},
	[ITEM_BUFFER] = {.object = "buffer", .status_line = BC_STATUS_BUFFER + 1},
	[ITEM_LOST] = {.needs_status = true, .status_line = BC_STATUS_LOST + 1},
	[ITEM_LEFT_OUT] = {.needs_height = true,
		.object = "counts.dropped",
		.status_line = BC_STATUS_LEFT_OUT + 1},
	[ITEM_MORE] = {.needs_status = true,
		.needs_height = true,
		.status_line = BC_STATUS_DAEMON + 1},
	[ITEM_SCALE] = {.needs_status = true},
	[ITEM_SAMPLES] = {.needs_status = true, .label = "samples/s", .series = BC_TOP_SAMPLES},
	[ITEM_RECORDS] = {.needs_status = true, .label = "records/s", .series = BC_TOP_RECORDS},
	[ITEM_TO_DISK] = {.needs_status = true, .label = "to disk/s", .series = BC_TOP_BYTES_OUT},
	[ITEM_BUFFER_GRAPH] = {.needs_status = true,
		.needs_screen = true,
		.label = "buffered",
		.series = BC_TOP_BUFFER},
	[ITEM_LOST_GRAPH] = {.needs_screen = true, .label = "lost/s", .series = BC_TOP_LOST},
	[ITEM_BLANK_TABLES] = {.needs_status = true},
	[ITEM_TABLES] = {.needs_status = true},
	[ITEM_KEYS] = {.needs_screen = true},
};

static bool has_left_out(const json_t *s)
{
	const json_t *dropped = bc_json_path(s, "counts.dropped");

	return (bc_json_path_count(dropped, "filtered") | bc_json_path_count(dropped, "invalid") |
		       bc_json_path_count(dropped, "idle")) != 0;
}

static unsigned graph_rows(const struct page *page, enum item item)
{
	if (!page->view->is_screen || page->view->height < HIGH_SCREEN)
		return 1;
	return item == ITEM_SAMPLES ? 4 : item == ITEM_LOST_GRAPH ? 1 : 2;
}

/* Returns the minimum number of lines of an item; 0: nothing to show. */
static unsigned lines_of(const struct page *page, enum item item)
{
	const json_t *s = page->state->status;
	bool is_screen = page->view->is_screen;

	if ((items[item].needs_status && s == NULL) || (items[item].needs_screen && !is_screen) ||
		(items[item].needs_height && is_screen && page->view->height < LOW_SCREEN) ||
		(items[item].object != NULL &&
			!json_is_object(bc_json_path(s, items[item].object))))
		return 0;
	if (item == ITEM_UNREACHABLE)
		return !page->state->is_unreachable              ? 0
		       : page->view->height < UNREACHABLE_SCREEN ? 1
								 : 2;
	if (item == ITEM_LEFT_OUT)
		return has_left_out(s);
	if (item == ITEM_TABLES)
		return BC_TOP_TABLES_MIN;
	return items[item].label != NULL ? graph_rows(page, item) : 1;
}

/* Assigns lines by importance. The tables get the rest. */
static void allot_lines(struct page *page)
{
	unsigned left = page->grid->height;

	for (unsigned i = 0; i < ITEMS; i++) {
		enum item item = by_importance[i];
		unsigned lines = lines_of(page, item);
		page->lines[item] = lines <= left ? lines : 0;
		left -= page->lines[item];
	}
	if (page->lines[ITEM_TABLES] == 0)
		page->lines[ITEM_BLANK_TABLES] = 0;
	else
		page->lines[ITEM_TABLES] += left;
}

/* ---- the lines */

static void draw_clock(const struct page *page)
{
	struct tm tm = {0};
	char text[32];

	gmtime_r(&page->now->wall, &tm);
	strftime(text, sizeof(text), page->view->is_paused ? "paused  %T UTC" : "%T UTC", &tm);
	if (page->grid->width >= 60)
		bc_top_write_right(page->grid, page->grid->width - 20, 0, 20,
			page->view->is_paused ? BC_TOP_WARN : BC_TOP_PLAIN, text);
}

static enum bc_top_style state_style(const json_t *s)
{
	if (bc_status_is_stuck(s) || bc_json_member_is(s, "state", "failed"))
		return BC_TOP_BAD;
	if (bc_json_member_is(s, "state", "recording") ||
		bc_json_member_is(s, "state", "replaying"))
		return BC_TOP_GOOD;
	return BC_TOP_WARN;
}

static void draw_header(const struct page *page)
{
	const json_t *s = page->state->status;
	bool has_clock = page->grid->width >= 60;
	struct phrases phrases = start_phrases(
		page->grid, 0, 0, has_clock ? page->grid->width - 20 : page->grid->width);
	char state[32];
	char text[BC_HUMANIZE_MAX];

	phrases.separator = "  ";
	if (page->grid->width >= 30)
		add_phrase(&phrases, BC_TOP_TITLE, "buscap top");
	if (page->state->is_unreachable)
		add_phrase(&phrases, BC_TOP_BAD, "no daemon");
	else
		add_phrase(&phrases, state_style(s), "%s%s",
			bc_safe_text(state, sizeof(state), bc_json_path_text(s, "state")),
			bc_status_is_stuck(s) ? ", disk stuck" : "");
	if (page->view->is_paused && !has_clock)
		add_phrase(&phrases, BC_TOP_WARN, "paused");
	if (s != NULL)
		add_phrase(&phrases, BC_TOP_PLAIN, "up %s",
			bc_status_seconds(text, bc_json_path_number(s, "uptime_seconds")));
	draw_clock(page);
}

static void draw_unreachable(const struct page *page, unsigned y)
{
	const struct bc_top_state *state = page->state;
	struct phrases phrases = start_phrases(page->grid, 0, y, page->grid->width);
	struct tm tm = {0};
	char since[32];
	char age[BC_HUMANIZE_MAX];

	if (state->status != NULL) {
		gmtime_r(&state->status_wall, &tm);
		strftime(since, sizeof(since), "%T UTC", &tm);
		add_phrase(&phrases, BC_TOP_BAD, "no status since %s (%s)", since,
			bc_status_seconds(age, (double)(page->now->ns - state->status_ns) / 1e9));
	}
	add_phrase(&phrases, BC_TOP_BAD, "reconnecting");
	if (page->lines[ITEM_UNREACHABLE] > 1)
		phrases = start_phrases(page->grid, 0, y + 1, page->grid->width);
	add_phrase(&phrases, BC_TOP_PLAIN, "%s", state->err);
}

static void draw_keys(const struct page *page)
{
	struct phrases phrases = start_phrases(
		page->grid, 0, page->grid->height - 1, page->grid->width);

	phrases.separator = "   ";
	add_phrase(&phrases, BC_TOP_DIM, "q quit");
	add_phrase(&phrases, BC_TOP_DIM, page->view->is_paused ? "p resume" : "p pause");
	add_phrase(&phrases, BC_TOP_DIM, "s order: %s", page->view->is_by_name ? "name" : "share");
	add_phrase(&phrases, BC_TOP_DIM, "? keys");
}

static unsigned graph_width(const struct page *page)
{
	unsigned taken = page->label + VALUE_WIDTH + 2;

	if (page->grid->width >= 60)
		taken += NOTE_WIDTH + 1;
	if (!page->view->is_screen || page->grid->width < taken + GRAPH_MIN)
		return 0;
	return page->grid->width - taken;
}

static void draw_scale(const struct page *page, unsigned y)
{
	unsigned width = graph_width(page);
	unsigned step = graph_step(width);
	char span[BC_HUMANIZE_MAX];
	char text[100];

	if (width == 0)
		return;
	snprintf(text, sizeof(text), "last %s, %u s per column",
		bc_humanize_time(span, step * width), step);
	if (bc_top_columns(page->grid, text) <= width)
		bc_top_write(page->grid, page->label + VALUE_WIDTH + 2, y, width, BC_TOP_DIM, text);
}

static void print_value(char out[BC_HUMANIZE_MAX], enum bc_top_series series, double value)
{
	if (series == BC_TOP_BYTES_OUT)
		bc_humanize_bytes(out, value);
	else if (series == BC_TOP_BUFFER)
		snprintf(out, BC_HUMANIZE_MAX, "%.0f %%", value * 100);
	else
		bc_humanize_rate(out, value);
}

/* Draws the current value, its graph and its maximum. */
static void draw_rate(const struct page *page, unsigned y, unsigned rows, enum bc_top_series series)
{
	unsigned x = page->label;
	unsigned width = graph_width(page);
	char text[BC_HUMANIZE_MAX];
	char note[BC_HUMANIZE_MAX + 8];
	const struct bc_top_second *now = bc_top_state_second(
		page->state, page->state->status_ns / 1000000000);
	bool is_bad = series == BC_TOP_LOST && now != NULL && now->values[series] > 0;

	if (now != NULL)
		print_value(text, series, now->values[series]);
	else
		strcpy(text, "unknown");
	bc_top_write_right(page->grid, x, y, VALUE_WIDTH, is_bad ? BC_TOP_BAD : BC_TOP_BOLD, text);
	if (width == 0)
		return;
	x += VALUE_WIDTH + 2;
	/* The graph ends when the latest status came, or now if unreachable. */
	uint64_t end_ns = page->state->is_unreachable ? page->now->ns : page->state->status_ns;
	double most = bc_top_graph_draw(page->grid, x, y, width, rows,
		series == BC_TOP_LOST ? BC_TOP_BAD : BC_TOP_GRAPH, page->state, series,
		end_ns / 1000000000);
	if (page->grid->width < 60)
		return;
	print_value(text, series, most);
	snprintf(note, sizeof(note), "max %s", text);
	bc_top_write_right(
		page->grid, page->grid->width - NOTE_WIDTH, y, NOTE_WIDTH, BC_TOP_DIM, note);
}

/* Draws the label at the start of a line, in fewer than `width` columns. */
static void draw_label(const struct page *page, unsigned y, const char *label)
{
	if (page->label != 0)
		bc_top_write(page->grid, 0, y, page->label - 1, BC_TOP_DIM, label);
}

static void draw_item(const struct page *page, enum item item, unsigned y)
{
	unsigned rows = page->lines[item];

	if (items[item].status_line != 0) {
		enum bc_status_line_id line = items[item].status_line - 1;
		if (item != ITEM_AMOUNTS || page->lines[ITEM_RECORDING] == 0)
			draw_label(page, y, bc_status_rows[line].label);
		draw_status(page->grid, page->label, y, line, page->state, page->now);
	} else if (items[item].label != NULL) {
		draw_label(page, y, items[item].label);
		draw_rate(page, y, rows, items[item].series);
	} else if (item == ITEM_SCALE) {
		draw_scale(page, y);
	} else if (item == ITEM_TABLES) {
		bc_top_tables_draw(page->grid, y, rows, page->state, page->view->is_by_name);
	}
}

static void draw_help(const struct page *page)
{
	static const char *const lines[] = {
		"q  quits",
		"p  pauses the display; it catches up when you",
		"   resume",
		"s  sorts the tables by share, or by name and",
		"   address",
		"?  shows these keys; any key returns",
		"",
		"Rates, buffer and losses: the last second, a",
		"graph of the last minutes, and the highest",
		"second. Types and processors: the last 10 s.",
		"Pages: about the last half minute.",
	};

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		bc_top_write(page->grid, page->grid->width >= 50 ? 2 : 0, i + 2, page->grid->width,
			BC_TOP_PLAIN, lines[i]);
}

int bc_top_page_draw(struct bc_top_grid *grid, const struct bc_top_state *state,
	const struct bc_top_view *view, const struct bc_top_now *now)
{
	int rc = bc_top_grid_open(grid, view->width, view->height, view->is_utf8);
	struct page page = {.grid = grid,
		.state = state,
		.view = view,
		.now = now,
		.label = view->width >= 33 ? 11 : view->width / 3};
	unsigned y = 0;

	if (rc != 0)
		return rc;
	allot_lines(&page);
	for (enum item item = 0; item < ITEMS && !view->is_help; item++) {
		if (page.lines[item] != 0)
			draw_item(&page, item, y);
		y += page.lines[item];
	}
	if (view->is_help)
		draw_help(&page);
	if (state->is_unreachable && !view->is_help)
		bc_top_grid_restyle(grid, BC_TOP_DIM);
	draw_header(&page);
	if (page.lines[ITEM_UNREACHABLE] != 0)
		draw_unreachable(&page, 1);
	if (page.lines[ITEM_KEYS] != 0)
		draw_keys(&page);
	return 0;
}
