/* Reads csv: what buscap wrote (formats/codec/csv.c), by the names of its columns, and csv of other
 * programs, whose columns the user names:
 *
 *   csv:time:s=Time [s],addr=Address,type=RW    KEY[:FORM]=COLUMN, separated by commas
 *
 * What a trace may have is known from its header. A row with a line end in quotes is joined, up to
 * BC_LINE_MAX, before it is split. */
#include "formats/codec/codecs.h"

#include <stdio.h>
#include <string.h>

#include "formats/base/fast_text.h"
#include "formats/base/text.h"
#include "formats/codec/cells.h"

#define C(column) BC_COLUMN(BC_COLUMN_##column)

#define CSV_COLUMNS 1024
#define IGNORED     0xFF
#define KEYS        7

/* A column that the user names. */
struct key {
	uint8_t column;
	char form;
	struct bc_text name;
};

struct csv {
	struct bc_cells cells;
	const char *layout;
	struct key keys[KEYS];
	unsigned key_count;
	unsigned count; /* columns of the header; 0: not read yet */
	bool is_over;   /* the header can't be used */
	uint8_t columns[CSV_COLUMNS];
	uint64_t held_number; /* of the first line of the row in `held` */
	size_t held_bytes;
	char held[BC_LINE_MAX + BC_PARSE_PADDING];
};

/* Reads "KEY[:FORM]=COLUMN,...". A form is x, d, or 1 and more for a unit. */
static bool read_keys(struct csv *csv, const char *layout, char *err, size_t errlen)
{
	static const struct {
		const char *name;
		uint8_t column;
	} known[KEYS] = {{"time", BC_COLUMN_TICK}, {"tick", BC_COLUMN_TICK},
		{"addr", BC_COLUMN_ADDR}, {"type", BC_COLUMN_TYPE}, {"size", BC_COLUMN_SIZE},
		{"proc", BC_COLUMN_PROC}, {"data", BC_COLUMN_DATA}};
	uint64_t both = C(ADDR) | C(TYPE);
	uint64_t seen = 0;

	for (const char *at = layout, *next; at != NULL; at = next) {
		size_t bytes = strcspn(at, ",");
		size_t name = strcspn(at, "=,") + 1;
		struct bc_text key = {at, (uint32_t)strcspn(at, ":=,")};
		struct bc_text form = {at + key.bytes + 1, (uint32_t)(name - 2 - key.bytes)};
		struct key *to = &csv->keys[csv->key_count++];
		unsigned i = 0;

		next = at[bytes] == ',' ? at + bytes + 1 : NULL;
		while (i < KEYS && !bc_cells_is(key, known[i].name))
			i++;
		if (i == KEYS || name >= bytes)
			return bc_fail(err, errlen,
				"%.*s: expected time, tick, addr, type, size, "
				"proc or data, and =COLUMN",
				(int)bytes, at);
		*to = (struct key){known[i].column, 0, {at + name, (uint32_t)(bytes - name)}};
		for (unsigned u = 0; at[key.bytes] == ':' && u < BC_TIME_FORMS && i == 0; u++)
			if (bc_cells_is(form, bc_time_forms[u].name))
				to->form = (char)(u + 1);
		if (at[key.bytes] == ':' && form.bytes == 1 && strchr("xd", *form.at) != NULL &&
			to->column != BC_COLUMN_TYPE)
			to->form = *form.at;
		if (at[key.bytes] == ':' && to->form == 0)
			return bc_fail(err, errlen,
				"%.*s: expected x, d or, for time, one of s, ms, "
				"us, ns, ps",
				(int)name - 1, at);
		if ((seen & BC_COLUMN(to->column)) != 0)
			return bc_fail(err, errlen, "%.*s: given twice", (int)key.bytes, at);
		seen |= BC_COLUMN(to->column);
	}
	return (seen & both) == both || bc_fail(err, errlen, "addr= and type= are needed");
}

static bool check_csv(const char *layout, char *err, size_t errlen)
{
	struct csv csv = {0};

	return layout == NULL || read_keys(&csv, layout, err, errlen);
}

static void csv_init(void *state, const struct bc_format_options *options)
{
	struct csv *csv = state;
	char err[160];

	csv->layout = options->layout;
	if (csv->layout != NULL && !read_keys(csv, csv->layout, err, sizeof(err)))
		csv->key_count = 0; /* can't happen: check_csv() */
}

/* Reads a cell, and moves *at to the comma or newline after it. Quotes must enclose all of it. */
static bool read_csv_cell(struct bc_cells *c, const char **at, struct bc_text *cell)
{
	const char *p = *at;
	const char *first = bc_skip_spaces(p);
	size_t from = c->used;

	if (*first != '"') {
		while (*p != ',' && *p != '\n')
			p++;
		*cell = (struct bc_text){*at, (uint32_t)(p - *at)};
		cell->bytes -= *p == '\n' && p != *at && p[-1] == '\r';
		*at = p;
		return *p == ',' || p == c->row_end;
	}
	for (p = first + 1; p < c->row_end && (*p != '"' || *++p == '"'); p++)
		bc_cells_copy(c, *p);
	*cell = bc_cells_end_copy(c, from);
	*at = bc_skip_spaces(p);
	return p[-1] == '"' && (**at == ',' || *at == c->row_end);
}

/* Reports what is wrong with the header, and which columns it has. */
static bool fail_header(struct csv *csv, struct bc_parse *p, const char *row, const char *what)
{
	struct bc_cells *c = &csv->cells;

	csv->is_over = true;
	bc_message(c->what, sizeof(c->what), "%s; the columns are %.*s", what,
		(int)(bc_line_end(row) - row), row);
	p->bad = p->at;
	p->expected = c->what;
	return false;
}

/* The column with this name, or IGNORED. */
static unsigned column_of(struct csv *csv, struct bc_text name)
{
	for (unsigned i = 0; i < csv->key_count; i++) {
		struct key *key = &csv->keys[i];
		if (key->name.bytes == name.bytes &&
			memcmp(key->name.at, name.at, name.bytes) == 0) {
			csv->cells.form[key->column] = key->form;
			return key->column;
		}
	}
	for (unsigned i = 0; i < BC_COLUMNS && csv->layout == NULL; i++)
		if (bc_cells_is(name, bc_column_name((enum bc_column)i)))
			return i;
	return IGNORED;
}

static bool read_header(struct csv *csv, struct bc_parse *p, const char *row)
{
	struct bc_cells *c = &csv->cells;
	struct bc_text name;
	char what[100];

	c->columns = 0;
	for (const char *at = row;; at++) {
		if (csv->count == CSV_COLUMNS)
			return fail_header(csv, p, row, "more than 1,024 columns");
		if (!read_csv_cell(c, &at, &name))
			return fail_header(csv, p, row, "text next to a quoted name");
		unsigned column = column_of(csv, bc_cells_trim(name));
		uint64_t one = column < BC_COLUMNS ? BC_COLUMN(column) : 0;
		if ((c->columns & one) != 0)
			return fail_header(csv, p, row, "a column occurs twice");
		c->columns |= one;
		csv->columns[csv->count++] = (uint8_t)column;
		if (*at == '\n')
			break;
	}
	for (unsigned i = 0; i < csv->key_count; i++) {
		struct key *key = &csv->keys[i];
		snprintf(what, sizeof(what), "no column %.*s", (int)key->name.bytes, key->name.at);
		if (key->column >= BC_COLUMNS || (c->columns & BC_COLUMN(key->column)) == 0)
			return fail_header(csv, p, row, what);
	}
	return (bc_columns_traits(c->columns) & BC_KINDS) != 0 ||
	       fail_header(
		       csv, p, row, "no columns of buscap's; name them: csv:addr=NAME,type=NAME");
}

static bool read_row(struct csv *csv, struct bc_parse *p, const char *row)
{
	struct bc_cells *c = &csv->cells;
	struct bc_text cell;
	const char *at = row - 1;
	unsigned n = 0;

	c->has = 0;
	do {
		p->bad = ++at;
		if (n == csv->count)
			break;
		p->expected = "expected quotes around a whole cell";
		if (!read_csv_cell(c, &at, &cell))
			return false;
		if (csv->columns[n] != IGNORED || csv->layout == NULL)
			bc_cells_add(c, csv->columns[n], cell, p->bad);
		n++;
	} while (at != c->row_end);
	if (n == csv->count && at == c->row_end)
		return bc_cells_entry(c, p);
	p->bad = at;
	p->expected = c->what;
	snprintf(c->what, sizeof(c->what), "expected %u cells, as in the header", csv->count);
	return false;
}

/* True if a line ends within quotes, which begin a cell, or, if it `is_open`, before it. */
static bool ends_in_quotes(const char *at, const char *end, bool is_open)
{
	bool is_start = !is_open;
	const char *closed = NULL;

	for (; at < end; at++) {
		if (*at == '"' && is_open) {
			is_open = false;
			closed = at;
		} else if (*at == '"') { /* two within quotes are one */
			is_open = is_start || (closed != NULL && at == closed + 1);
		}
		is_start = !is_open && (*at == ',' || (is_start && bc_is_space(*at)));
	}
	return is_open;
}

/* Joins the lines of a row. Returns it when it is whole; else NULL, with p->expected if it never
 * is. */
static const char *join_lines(struct csv *csv, struct bc_parse *p, const char *newline)
{
	size_t bytes = (size_t)(newline - p->at) + 1;
	bool is_open = csv->held_bytes != 0;
	bool stays_open = ends_in_quotes(p->at, newline, is_open);

	p->expected = NULL;
	if (!stays_open && !is_open)
		return p->at;
	if (!is_open)
		csv->held_number = p->number;
	if (csv->held_bytes + bytes > BC_LINE_MAX) {
		csv->held_bytes = 0;
		snprintf(csv->cells.what, sizeof(csv->cells.what),
			"expected the end of the quoted text that begins in line %llu",
			(unsigned long long)csv->held_number);
		p->expected = csv->cells.what;
		p->bad = p->at;
		return NULL;
	}
	memcpy(csv->held + csv->held_bytes, p->at, bytes);
	csv->held_bytes += bytes;
	return stays_open ? NULL : csv->held;
}

static enum bc_parse_end parse_csv(void *state, struct bc_parse *p)
{
	struct csv *csv = state;
	struct bc_cells *c = &csv->cells;

	c->used = 0;
	for (; p->at < p->end; p->number++) {
		const char *newline = bc_line_end(p->at);
		if (!bc_parse_has_room(p) || c->used > BC_LINE_MAX)
			return BC_PARSE_FULL;
		const char *row = NULL;
		p->expected = NULL;
		if (!csv->is_over && (csv->held_bytes != 0 || *bc_skip_spaces(p->at) != '\n'))
			row = join_lines(csv, p, newline);
		if (p->expected != NULL)
			return BC_PARSE_BAD;
		if (row != NULL) {
			size_t count = p->count;
			c->row_end = row == p->at ? newline : row + csv->held_bytes - 1;
			csv->held_bytes = 0;
			bool is_good = csv->count == 0 ? read_header(csv, p, row)
						       : read_row(csv, p, row);
			if (row == csv->held)
				p->bad = p->at;
			if (!is_good)
				return BC_PARSE_BAD;
			/* Text of the entry is in `held`. */
			if (row == csv->held && p->count != count) {
				p->number++;
				p->at = newline + 1;
				return BC_PARSE_FULL;
			}
		}
		p->at = newline + 1;
	}
	return BC_PARSE_DONE;
}

static bc_traits csv_traits(void *state, const char *at, const char *end, bool *has_wall)
{
	struct csv *csv = state;
	struct bc_parse p = {.at = at};

	csv->cells.row_end = memchr(at, '\n', (size_t)(end - at));
	if (csv->cells.row_end != NULL && csv->cells.row_end - at < BC_LINE_MAX)
		(void)read_header(csv, &p, at);
	csv->count = 0; /* parse() reads it again, and reports what is wrong */
	csv->is_over = false;
	csv->cells.used = 0;
	*has_wall = (csv->cells.columns & C(TIME)) != 0;
	return bc_columns_traits(csv->cells.columns);
}

static void csv_notes(const void *state, struct bc_parse_notes *notes)
{
	const struct csv *csv = state;

	notes->ignored = csv->cells.ignored;
	notes->open_line = csv->held_bytes != 0 ? csv->held_number : 0;
}

const struct bc_parser bc_csv_parser = {.state_bytes = sizeof(struct csv),
	.init = csv_init,
	.check = check_csv,
	.traits = csv_traits,
	.reads_head = true,
	.parse = parse_csv,
	.notes = csv_notes};
