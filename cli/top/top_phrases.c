#include "cli/top/top_phrases.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct bc_top_phrases bc_top_phrases_start(
	struct bc_top_grid *grid, unsigned x, unsigned y, unsigned end)
{
	return (struct bc_top_phrases){.grid = grid,
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
static void write_more(struct bc_top_phrases *phrases)
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

void bc_top_phrases_add(
	struct bc_top_phrases *phrases, enum bc_top_style style, const char *format, ...)
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

void bc_top_write_label(struct bc_top_grid *grid, unsigned y, unsigned width, const char *label)
{
	if (width != 0)
		bc_top_write(grid, 0, y, width - 1, BC_TOP_DIM, label);
}

static enum bc_top_style style_of(enum bc_tone tone)
{
	static const enum bc_top_style styles[] = {[BC_TONE_PLAIN] = BC_TOP_PLAIN,
		[BC_TONE_GOOD] = BC_TOP_GOOD,
		[BC_TONE_WARN] = BC_TOP_WARN,
		[BC_TONE_BAD] = BC_TOP_BAD};

	return styles[tone];
}

static void write_phrase(void *context, enum bc_tone tone, const char *phrase)
{
	bc_top_phrases_add(context, style_of(tone), "%s", phrase);
}

void bc_top_phrases_draw_status(struct bc_top_grid *grid, unsigned x, unsigned y,
	enum bc_status_line_id line, const struct bc_top_state *state, const struct bc_top_now *now)
{
	struct bc_top_phrases phrases = bc_top_phrases_start(grid, x, y, grid->width);
	const struct bc_status_writer writer = {.write = write_phrase,
		.context = &phrases,
		.is_brief = true,
		.now = now->wall,
		.lost_s_ago = state->lost_ns != 0 ? (double)(now->ns - state->lost_ns) / 1e9 : -1};

	bc_status_write_line(state->status, line, &writer);
}
