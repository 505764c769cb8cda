/* Reads a logic analyser's csv as a state capture (formats/codec/capture.h): a column a channel, a
 * row a sample or a change. sigrok and DSView write comments first, one of which may name the
 * channels ("; Channels (2/2): CLK, D0") and one the rate; then, as Saleae, a row of names or of
 * units. A first column that is named Time or has a unit of time is the time of the row; otherwise
 * rows are samples, as far apart as the rate says, or numbered. */
#include "formats/codec/codecs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "formats/base/clock.h"
#include "formats/base/quantity.h"
#include "formats/base/text.h"
#include "formats/codec/capture.h"

struct capture_csv {
	struct bc_capture capture; /* first: bc_capture_traits() */
	bool has_failed;
	bool has_names; /* the columns are known */
	bool has_time;  /* in the first column */
	unsigned first; /* columns before those of channels */
	unsigned columns;
	uint64_t hz; /* rows per second; 0: unknown */
	uint64_t row;
};

static void csv_init(void *state, const struct bc_format_options *options)
{
	struct capture_csv *s = state;

	bc_capture_init(&s->capture, options);
}

/* Sets *cell to a cell without blanks and quotes. Returns the start of the next, after `end` if it
 * is the last. */
static const char *read_cell(const char *at, const char *end, struct bc_text *cell)
{
	const char *comma = memchr(at, ',', (size_t)(end - at));
	const char *last = comma != NULL ? comma : end;
	const char *next = last + 1;

	while (at < last && (bc_is_space(*at) || *at == '"'))
		at++;
	while (last > at && (bc_is_space(last[-1]) || last[-1] == '"'))
		last--;
	*cell = (struct bc_text){.at = at, .bytes = (uint32_t)(last - at)};
	return next;
}

static unsigned count_cells(const char *at, const char *end)
{
	struct bc_text cell;
	unsigned n = 0;

	for (; at <= end; n++)
		at = read_cell(at, end, &cell);
	return n;
}

/* Reads a number, or x. Returns false for other text. */
static bool read_value(struct bc_text cell, struct bc_signal *value)
{
	const char *end = cell.at + cell.bytes;
	const char *rest = cell.at;

	*value = (struct bc_signal){0, 0};
	if (cell.bytes == 1 && strchr("xXzZ", *cell.at) != NULL)
		value->unknown = UINT64_MAX;
	else if (cell.bytes > 2 && cell.at[0] == '0' && (cell.at[1] | 0x20) == 'x')
		return bc_hex_read(cell.at, end, &value->bits) == end;
	else
		return cell.bytes != 0 && bc_parse_decimal(&rest, &value->bits) && rest == end;
	return true;
}

/* The unit of a column of times: "Time [s]", "Time(ms)", "us"; of a bare "Time", seconds. */
static bool read_unit(struct bc_text cell, bool is_time, bc_fs *unit)
{
	char text[8] = "1";
	size_t n = 1;

	for (uint32_t i = is_time ? 4 : 0; i < cell.bytes && n < sizeof(text) - 1; i++)
		if (isalpha((uint8_t)cell.at[i]))
			text[n++] = cell.at[i];
	if (is_time && n == 1)
		text[n++] = 's';
	return bc_capture_read_time(unit, text, n);
}

static void declare_columns(struct capture_csv *s, const char *at, const char *end)
{
	struct bc_text cell;
	char name[256];

	for (unsigned i = 0; i < s->first; i++)
		at = read_cell(at, end, &cell);
	for (s->columns = 0; at <= end;) {
		at = read_cell(at, end, &cell);
		snprintf(name, sizeof(name), "%.*s", (int)cell.bytes, cell.at);
		bc_capture_declare(&s->capture, name, ++s->columns, 0, false);
	}
}

/* A comment, or sigrok-cli's line with the rate: "; Samplerate: 20 MHz". */
static void read_comment(struct capture_csv *s, const char *at, const char *end)
{
	const char *colon = memchr(at, ':', (size_t)(end - at));
	struct bc_text cell;
	char line[128];
	char err[BC_QUANTITY_ERROR_MAX];

	if (colon == NULL)
		return;
	snprintf(line, sizeof(line), "%.*s", (int)(colon - at), at);
	if (strcasestr(line, "channels (") != NULL)
		declare_columns(s, colon + 1, end);
	if (strcasestr(line, "samplerate") == NULL && strcasestr(line, "sample rate") == NULL)
		return;
	(void)read_cell(colon + 1, end, &cell);
	snprintf(line, sizeof(line), "%.*s", (int)cell.bytes, cell.at);
	if (!bc_quantity_read(&s->hz, BC_QUANTITY_COUNT, line, err, sizeof(err)))
		s->hz = 0;
}

/* The first line after the comments: names, units, or a row. */
static bool read_first(struct capture_csv *s, const char *at, const char *end)
{
	struct bc_capture *c = &s->capture;
	struct bc_text cell;
	bc_fs unit;

	(void)read_cell(at, end, &cell);
	bool is_time = cell.bytes >= 4 && strncasecmp(cell.at, "time", 4) == 0;
	s->first = s->columns == 0 ? is_time : count_cells(at, end) > s->columns;
	if (s->columns == 0)
		declare_columns(s, at, end);
	s->has_time = s->first != 0 && s->hz == 0 && read_unit(cell, is_time, &unit);
	if (is_time && s->hz == 0 && !s->has_time) {
		s->has_failed = true;
		return bc_fail(c->err, sizeof(c->err), "expected a unit of the times: Time [us]");
	}
	c->scale = s->has_time ? unit : s->hz != 0 ? BC_FS_PER_S / s->hz : 0;
	s->has_names = true;
	s->has_failed = !bc_capture_start(c);
	return !s->has_failed;
}

static bool read_row(struct capture_csv *s, struct bc_parse *p, const char *at, const char *end)
{
	struct bc_capture *c = &s->capture;
	bc_fs time = s->hz != 0 ? (bc_fs)s->row * BC_FS_PER_S / s->hz : s->row;
	unsigned cells = count_cells(at, end);
	struct bc_text cell = {at, 0};
	struct bc_signal value;

	s->row++;
	if (cells < s->first + s->columns)
		return bc_fail(c->err, sizeof(c->err), "the row has %u columns instead of %u",
			cells, s->first + s->columns);
	if (s->first != 0)
		at = read_cell(at, end, &cell);
	if (s->has_time && !bc_capture_read_number(&time, cell, c->scale))
		return bc_fail(c->err, sizeof(c->err), "expected a time");
	const char *first = at;
	for (unsigned i = 1; i <= s->columns; i++) {
		at = read_cell(at, end, &cell);
		if (bc_capture_uses(c, i) && !read_value(cell, &value))
			return bc_fail(c->err, sizeof(c->err),
				"column %u: expected 0, 1 or another number", s->first + i);
	}
	s->has_failed = !bc_capture_time(c, time);
	at = first;
	for (unsigned i = 1; i <= s->columns && !s->has_failed; i++) {
		at = read_cell(at, end, &cell);
		if (bc_capture_uses(c, i) && read_value(cell, &value))
			bc_capture_change(c, p, i, value);
	}
	return !s->has_failed;
}

static bool read_line(struct capture_csv *s, struct bc_parse *p, const char *at, const char *end)
{
	struct bc_capture *c = &s->capture;
	struct bc_text first;
	struct bc_signal value;
	bc_fs fs;

	(void)read_cell(at, end, &first);
	if (*bc_skip_spaces(at) == '\n')
		return true;
	if (*first.at == ';' || *first.at == '#' || strncmp(first.at, "META ", 5) == 0) {
		if (!s->has_names)
			read_comment(s, at, end);
		return true;
	}
	bool is_row = s->has_names || read_value(first, &value) ||
		      bc_capture_read_number(&fs, first, 1);
	s->has_failed = !s->has_names && is_row && s->columns == 0;
	if (s->has_failed)
		return bc_fail(
			c->err, sizeof(c->err), "expected a row with the names of the columns");
	return (s->has_names || read_first(s, at, end)) && (!is_row || read_row(s, p, at, end));
}

static enum bc_parse_end parse_csv(void *state, struct bc_parse *p)
{
	struct capture_csv *s = state;

	for (; p->at < p->end && !s->has_failed; p->number++) {
		const char *end = bc_line_end(p->at);
		if (!bc_parse_has_room(p))
			return BC_PARSE_FULL;
		if (!read_line(s, p, p->at, end))
			return bc_parse_bad(p, p->at, s->capture.err);
		p->at = end + 1;
	}
	p->at = p->end;
	return BC_PARSE_DONE;
}

bool bc_csv_capture_is(const char *layout)
{
	return strncmp(layout, "clock=", 6) == 0 || strstr(layout, ",clock=") != NULL;
}

static void get_notes(const void *state, struct bc_parse_notes *notes)
{
	const struct capture_csv *s = state;

	*notes = s->capture.notes;
}

const struct bc_parser bc_csv_capture_parser = {.state_bytes = sizeof(struct capture_csv),
	.init = csv_init,
	.check = bc_capture_check,
	.traits = bc_capture_traits,
	.parse = parse_csv,
	.notes = get_notes};
