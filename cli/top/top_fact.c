#include "cli/top/top_fact.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct bc_top_fact bc_top_fact_start(struct bc_top_grid *grid, unsigned x, unsigned y, unsigned end)
{
	return (struct bc_top_fact){
		.grid = grid, .begin = x, .x = x, .y = y, .sign = x, .end = end, .separator = ", "};
}

/* The sign that there is more. */
#define MORE_WIDTH 2u

/* Puts it behind the last phrase that leaves room for it, or at the end of the first. */
static void write_more(struct bc_top_fact *fact)
{
	fact->is_full = true;
	if (fact->end < fact->sign + MORE_WIDTH) {
		bc_top_write_code(fact->grid, fact->end - 1, fact->y, BC_TOP_DIM,
			fact->grid->is_utf8 ? 0x2026 : '~');
		return;
	}
	for (unsigned x = fact->sign; x < fact->end; x++)
		bc_top_write_code(fact->grid, x, fact->y, BC_TOP_PLAIN, ' ');
	bc_top_write(fact->grid, fact->sign, fact->y, MORE_WIDTH, BC_TOP_DIM,
		fact->grid->is_utf8 ? " \u2026" : " ~");
}

void bc_top_print(struct bc_top_fact *fact, enum bc_top_style style, const char *format, ...)
{
	char text[1200];
	va_list args;

	if (fact->is_full)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	unsigned room = fact->end > fact->x ? fact->end - fact->x : 0;
	if (fact->x == fact->begin) {
		fact->x += bc_top_write(fact->grid, fact->x, fact->y, room, style, text);
		fact->sign = fact->x;
		return;
	}
	unsigned between = (unsigned)strlen(fact->separator);
	unsigned columns = between + bc_top_columns(fact->grid, text);
	/* The last phrase may take the place of the sign, which then isn't needed. */
	if (columns > room || fact->end - fact->sign < MORE_WIDTH) {
		write_more(fact);
		return;
	}
	bc_top_write(fact->grid, fact->x, fact->y, room, BC_TOP_PLAIN, fact->separator);
	bc_top_write(fact->grid, fact->x + between, fact->y, room - between, style, text);
	fact->x += columns;
	if (fact->end - fact->x >= MORE_WIDTH)
		fact->sign = fact->x;
}

void bc_top_write_label(struct bc_top_grid *grid, unsigned y, unsigned room, const char *label)
{
	if (room != 0)
		bc_top_write(grid, 0, y, room - 1, BC_TOP_DIM, label);
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
	bc_top_print(context, style_of(tone), "%s", phrase);
}

void bc_top_fact_draw(struct bc_top_grid *grid, unsigned x, unsigned y, enum bc_status_line_id line,
	const struct bc_top_state *state, const struct bc_top_now *now)
{
	struct bc_top_fact fact = bc_top_fact_start(grid, x, y, grid->width);
	const struct bc_status_writer writer = {.write = write_phrase,
		.context = &fact,
		.is_brief = true,
		.now = now->wall,
		.lost_s_ago = state->lost_ns != 0 ? (double)(now->ns - state->lost_ns) / 1e9 : -1};

	bc_status_write_line(&state->status, line, &writer);
}
