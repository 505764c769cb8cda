#include "cli/live/top_grid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "formats/base/utf8.h"

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

/* Decodes a character and advances *text. Each byte that is not UTF-8 becomes '?'. */
static uint32_t decode_char(const char **text)
{
	const uint8_t *at = (const uint8_t *)*text;
	uint32_t bytes = bc_utf8_bytes(at, strnlen(*text, 4));

	*text += bytes != 0 ? bytes : 1;
	return bytes != 0 ? bc_utf8_code(at, bytes) : '?';
}

/* Returns the next character as it is drawn. *width is 1 or 2. */
static uint32_t next_drawn(const struct bc_top_grid *grid, const char **text, unsigned *width)
{
	uint32_t code = decode_char(text);
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

	if (x >= grid->width)
		return;
	if (max_width > grid->width - x)
		max_width = grid->width - x;
	if (columns < max_width)
		bc_top_write(grid, x + max_width - columns, y, columns, style, text);
	else
		bc_top_write(grid, x, y, max_width, style, text);
}

void bc_top_grid_restyle(struct bc_top_grid *grid, enum bc_top_style style)
{
	for (size_t i = 0; i < (size_t)grid->width * grid->height; i++)
		grid->cells[i].style = (uint8_t)style;
}

static char *encode_char(char *out, uint32_t code)
{
	if (code < 0x80) {
		*out++ = (char)code;
	} else if (code < 0x800) {
		*out++ = (char)(0xC0 | code >> 6);
		*out++ = (char)(0x80 | (code & 0x3F));
	} else if (code < 0x10000) {
		*out++ = (char)(0xE0 | code >> 12);
		*out++ = (char)(0x80 | (code >> 6 & 0x3F));
		*out++ = (char)(0x80 | (code & 0x3F));
	} else {
		*out++ = (char)(0xF0 | code >> 18);
		*out++ = (char)(0x80 | (code >> 12 & 0x3F));
		*out++ = (char)(0x80 | (code >> 6 & 0x3F));
		*out++ = (char)(0x80 | (code & 0x3F));
	}
	return out;
}

size_t bc_top_grid_line(const struct bc_top_grid *grid, unsigned y, char out[BC_TOP_LINE_BYTES])
{
	const struct bc_top_cell *cells = grid->cells + (size_t)y * grid->width;
	unsigned columns = grid->width;
	char *p = out;

	while (columns != 0 && cells[columns - 1].code == ' ')
		columns--;
	for (unsigned x = 0; x < columns; x++)
		if (cells[x].code != 0)
			p = encode_char(p, cells[x].code);
	*p = '\0';
	return (size_t)(p - out);
}
