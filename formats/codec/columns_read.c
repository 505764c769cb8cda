/* Reads csv and ndjson: what buscap wrote, by the names of its columns (formats/codec/columns.h),
 * and csv of other programs, whose columns the user names:
 *
 *   csv:time:s=Time [s],addr=Address,type=RW    KEY[:FORM]=COLUMN, separated by commas
 *
 * A line is first split into cells, one for each column that is read; both formats then make the
 * entry from these in the same way. A cell has the value whose text bc_column_cell() would write,
 * so no name is listed twice. Any order and subset of the columns will do if each entry has what
 * its kind needs. Other columns are ignored and counted. A cell that cannot be read makes its line
 * malformed. A row with a line end in quotes is joined, up to BC_LINE_MAX, before it is split.
 *
 * What a trace may have is known before its first entry: of csv from the header, of ndjson from the
 * keys of the first block. Values of other columns in later lines are ignored and counted, too. */
#include "formats/codec/codecs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "formats/base/bytes.h"
#include "formats/base/fast_text.h"
#include "formats/base/text.h"
#include "formats/codec/columns.h"
#include "formats/codec/format.h"

enum how {
	UNREAD, /* with the kind */
	DECIMAL,
	SIGNED,
	HEX,
	BUS,  /* HEX, of 32 bits in big-endian order */
	NAME, /* the value for which this text is written */
	CHARACTER,
	WALL, /* a time of day */
	WORD, /* text without blanks */
	TEXT, /* of one line */
	NOTE, /* any */
	BITS, /* TEXT after 0x */
};

static const char *const what_is[] = {[DECIMAL] = "expected a decimal number that fits",
	[SIGNED] = "expected a decimal number that fits",
	[HEX] = "expected a hexadecimal number that fits",
	[BUS] = "expected a hexadecimal number of at most 32 bits",
	[NAME] = "expected a word that buscap writes here",
	[CHARACTER] = "expected one character",
	[WALL] = "expected a time of day as buscap writes it",
	[WORD] = "expected a word without blanks",
	[TEXT] = "expected text of one line",
	[NOTE] = "expected text of at most 4,096 bytes",
	[BITS] = "expected text of one line"};

static const struct field {
	uint8_t how;
	uint16_t at; /* of the member of an entry */
	uint16_t bytes;
} fields[BC_COLUMNS] = {
#define ROW(column, name, kinds, needs, how, member) \
	{how, offsetof(struct bc_entry, member), sizeof(((struct bc_entry *)0)->member)},
	BC_COLUMN_LIST(ROW)
#undef ROW
};

#define C(column) BC_COLUMN(BC_COLUMN_##column)

/* What an entry of each kind cannot do without. */
static const uint64_t needed[BC_ENTRY_KINDS] = {
	[BC_ENTRY_REFERENCE] = C(TYPE) | C(ADDR),
	[BC_ENTRY_INSTRUCTION] = C(EFFECT) | C(ADDR),
	[BC_ENTRY_UOP] = BC_COLUMN(BC_COLUMN_MICRO + 1) - C(STEP),
	[BC_ENTRY_REGISTER] = C(REGISTER) | C(VALUE),
	[BC_ENTRY_KERNEL] = C(TAG) | C(TICK),
};

/* ---- entries from cells */

struct cells {
	uint64_t columns; /* of the trace; others are ignored */
	uint64_t ignored;
	uint64_t number; /* of the previous entry */
	bool has_number;
	uint64_t has; /* columns that have a cell in this line */
	struct bc_text cell[BC_COLUMNS];
	const char *in_line[BC_COLUMNS]; /* where they are in the line */
	char form[BC_COLUMNS]; /* x, d, or a unit: see read_keys(); 0: as buscap writes it */
	const char *row_end;   /* the newline of a row of csv */
	char what[160];
	size_t used; /* of `text`, for the entries of this block */
	char text[2 * BC_LINE_MAX + BC_COLUMNS];
};

static bool fail(struct cells *c, struct bc_parse *p, enum bc_column column, const char *expected)
{
	snprintf(c->what, sizeof(c->what), "%s: %s", bc_column_name(column), expected);
	p->bad = (c->has & BC_COLUMN(column)) != 0 ? c->in_line[column] : bc_line_end(p->at);
	p->expected = c->what;
	return false;
}

static void add_cell(struct cells *c, unsigned column, struct bc_text cell, const char *in_line)
{
	bool is_read = column < BC_COLUMNS && (c->columns & BC_COLUMN(column)) != 0;

	c->ignored += !is_read && cell.bytes != 0;
	if (!is_read || cell.bytes == 0)
		return;
	c->has |= BC_COLUMN(column);
	c->cell[column] = cell;
	c->in_line[column] = in_line;
}

static struct bc_text trim(struct bc_text text)
{
	for (; text.bytes != 0 && bc_is_space(*text.at); text.at++)
		text.bytes--;
	while (text.bytes != 0 && bc_is_space(text.at[text.bytes - 1]))
		text.bytes--;
	return text;
}

static bool is_text(struct bc_text text, const char *other)
{
	return strlen(other) == text.bytes && strncasecmp(text.at, other, text.bytes) == 0;
}

static void store(struct bc_entry *entry, const struct field *field, uint64_t value)
{
	void *at = (char *)entry + field->at;

	if (field->bytes == 1)
		*(uint8_t *)at = (uint8_t)value;
	else if (field->bytes == 2)
		*(uint16_t *)at = (uint16_t)value;
	else if (field->bytes == 4)
		*(uint32_t *)at = (uint32_t)value;
	else
		*(uint64_t *)at = value;
}

/* A number may always be hexadecimal, with 0x. The byte after the text must not be a digit. */
static bool read_number(struct bc_text text, bool is_hex, unsigned bytes, uint64_t *value)
{
	const char *at = text.at;

	if (text.bytes > 2 && at[0] == '0' && (at[1] | 0x20) == 'x') {
		is_hex = true;
		at += 2;
	}
	return (is_hex ? bc_parse_hex(&at, value) : bc_parse_decimal(&at, value)) &&
	       at == text.at + text.bytes && (bytes == 8 || *value >> bytes * 8 == 0);
}

/* Finds the value for which the columns have this text. */
static bool read_name(struct bc_entry *entry, enum bc_column column, struct bc_text text)
{
	unsigned most = column == BC_COLUMN_TYPE     ? BC_REF_TYPES
			: column == BC_COLUMN_UNIT   ? BC_UNITS
			: column == BC_COLUMN_CAUSE  ? BC_GAP_CAUSES
			: column == BC_COLUMN_EFFECT ? BC_EFFECT_FETCHFAIL + 1
						     : 2;
	char name[128];

	for (unsigned value = 0; value < most; value++) {
		store(entry, &fields[column], value);
		*bc_cell_write(name, bc_column_cell(column, entry, NULL)) = '\0';
		if (is_text(text, name))
			return true;
	}
	int type = column == BC_COLUMN_TYPE ? bc_ref_type_usual(text) : -1;
	entry->type = type >= 0 ? (uint16_t)type : entry->type;
	return type >= 0;
}

/* Reads a time of day, as bc_rfc3339_write() writes it. */
static bool read_wall(struct bc_text text, int64_t *ns)
{
	char copy[BC_RFC3339_BYTES] = "";
	struct tm tm = {0};
	int fraction = 0;
	int end = 0;

	snprintf(copy, sizeof(copy), "%.*s", (int)text.bytes, text.at);
	sscanf(copy, "%5d-%2d-%2dT%2d:%2d:%2d.%9dZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		&tm.tm_hour, &tm.tm_min, &tm.tm_sec, &fraction, &end);
	tm.tm_year -= 1900;
	tm.tm_mon--;
	int64_t seconds = timegm(&tm);
	if (end == 0 || __builtin_mul_overflow(seconds, 1000000000, ns) ||
		__builtin_add_overflow(*ns, fraction, ns))
		return false;
	bc_rfc3339_write(copy, *ns);
	return is_text(text, copy);
}

/* Reads a time, rounded to ns or ps. A long double holds 64 bits exactly. */
static bool read_time(struct bc_text text, const struct bc_time_form *form, struct bc_entry *entry)
{
	char copy[64];
	char *end;

	snprintf(copy, sizeof(copy), "%.*s", (int)text.bytes, text.at);
	long double value = strtold(copy, &end);
	for (unsigned i = 0; i < form->digits; i++)
		value *= 10;
	bool is_good = (uint8_t)(*copy - '0') <= 9 && end == copy + text.bytes && value < 0x1p63L;
	entry->tick = is_good ? (uint64_t)(value + 0.5L) : 0;
	entry->unit = form->unit;
	return is_good;
}

static bool read_text(struct bc_entry *entry, const struct field *field, struct bc_text text)
{
	if (field->how == BITS && text.bytes > 2 && memcmp(text.at, "0x", 2) == 0) {
		text.at += 2;
		text.bytes -= 2;
	}
	for (uint32_t i = 0; i < text.bytes && field->how != NOTE; i++)
		if (text.at[i] == '\n' || (field->how == WORD && (uint8_t)text.at[i] <= ' '))
			return false;
	memcpy((char *)entry + field->at, &text, sizeof(text));
	if (field->how == NOTE)
		entry->note.event.text_bytes = (uint16_t)text.bytes;
	return field->how != NOTE || text.bytes <= BC_CHUNK_TEXT_BYTES;
}

/* Sets the value of a column. Text is taken as it is, other cells without blanks around them. */
static bool read_cell(struct cells *c, struct bc_entry *entry, enum bc_column column)
{
	const struct field *field = &fields[column];
	struct bc_text text = field->how < WORD ? trim(c->cell[column]) : c->cell[column];
	char form = c->form[column];
	bool is_hex = form != 0 ? form == 'x' : field->how == HEX || field->how == BUS;
	const char *at = text.at;
	uint64_t value = 0;
	int64_t number = 0;

	if (form > 0 && form <= (char)BC_TIME_FORMS)
		return read_time(text, &bc_time_forms[form - 1], entry);
	switch ((enum how)field->how) {
	case DECIMAL:
	case HEX:
		if (!read_number(text, is_hex, field->bytes, &value))
			return false;
		store(entry, field, value);
		return true;
	case BUS:
		if (!read_number(text, is_hex, sizeof(uint32_t), &value))
			return false;
		bc_write_be32(entry->sample, (uint32_t)value);
		return true;
	case SIGNED:
		if (!bc_parse_signed(&at, &number) || at != text.at + text.bytes ||
			(field->bytes == 4 && (number < INT32_MIN || number > INT32_MAX)))
			return false;
		store(entry, field, (uint64_t)number);
		return true;
	case NAME:
		return read_name(entry, column, text);
	case CHARACTER:
		*((char *)entry + field->at) = *text.at;
		return text.bytes == 1 && *text.at > ' ' && *text.at <= '~';
	case WALL:
		entry->has_wall = true;
		return read_wall(text, &entry->wall_ns);
	default:
		return read_text(entry, field, text);
	}
}

/* Finds the kind: given, or, as in a trace with only one, by what only entries of a kind have. */
static bool read_kind(struct cells *c, struct bc_entry *entry)
{
	char name[32];

	entry->kind = (c->has & C(STEP)) != 0  ? BC_ENTRY_UOP
		      : (c->has & C(TAG)) != 0 ? BC_ENTRY_KERNEL
					       : BC_ENTRY_REFERENCE;
	if ((c->has & C(KIND)) == 0)
		return true;
	const struct bc_text text = trim(c->cell[BC_COLUMN_KIND]);
	for (unsigned i = 0; i <= BC_ENTRY_KINDS + BC_EVENT_NOTE; i++) {
		bool is_event = i == BC_ENTRY_EVENT || i >= BC_ENTRY_KINDS;
		entry->kind = is_event ? BC_ENTRY_EVENT : (uint8_t)i;
		entry->note.event.kind = i >= BC_ENTRY_KINDS ? (uint8_t)(i - BC_ENTRY_KINDS) : 0;
		*bc_cell_write(name, bc_column_cell(BC_COLUMN_KIND, entry, NULL)) = '\0';
		if (is_text(text, name))
			return true;
	}
	return false;
}

/* Completes what several columns determine. */
static bool finish_entry(struct cells *c, struct bc_parse *p, struct bc_entry *entry)
{
	uint64_t has = c->has;
	uint32_t digits = (has & C(OPCODE)) != 0 ? trim(c->cell[BC_COLUMN_OPCODE]).bytes : 0;

	if (entry->kind == BC_ENTRY_REFERENCE) {
		/* Only BYU has memory types without samples. An unknown delta is BC_TIME_NONE. */
		entry->has_delta = (c->columns & C(DELTA)) != 0 && (has & C(ATTR)) != 0 &&
				   (has & BC_COLUMNS_SAMPLE) == 0;
		if (entry->has_delta && (has & C(DELTA)) == 0)
			entry->delta = BC_TIME_NONE;
		if (entry->type == BC_REF_LETTER && (has & C(LETTER)) == 0)
			return fail(c, p, BC_COLUMN_TYPE, "expected a letter with it");
		if ((has & BC_COLUMNS_SAMPLE) != 0 && (~has & BC_COLUMNS_SAMPLE) != 0)
			return fail(c, p, BC_COLUMN_BUS_ADDR, "expected the whole sample");
	} else if (entry->kind == BC_ENTRY_INSTRUCTION && (has & C(OPCODE)) != 0) {
		entry->instruction.digits = (uint8_t)(digits > 2 ? digits - 2 : digits);
		if (digits > 2 + 16)
			return fail(c, p, BC_COLUMN_OPCODE, what_is[HEX]);
	} else if (entry->kind == BC_ENTRY_KERNEL) {
		entry->letter = *entry->kernel.tag.at;
		entry->traits |= BC_TRAIT_LETTER;
	} else if (entry->kind == BC_ENTRY_EVENT) {
		entry->traits = 0;
		if (entry->tick >= BC_TICK_END)
			return fail(c, p, BC_COLUMN_TICK, "expected a tick below 2^63");
	} else if (entry->kind == BC_ENTRY_LINE) {
		entry->words = entry->line;
	}
	if (entry->kind == BC_ENTRY_INSTRUCTION)
		entry->instruction.has_id = (has & C(ID)) != 0;
	/* What a line depends on is not known: of a part of the trace, its fields are printed. */
	if (entry->kind != BC_ENTRY_LINE && (has & C(LINE)) != 0)
		entry->dependence = BC_LINE_CONTINUES;
	entry->is_continued = (c->columns & ~has & C(LINE)) != 0 && c->has_number &&
			      c->number == entry->number && entry->kind != BC_ENTRY_EVENT;
	c->has_number = true;
	c->number = entry->number;
	return true;
}

static bool has_point(struct bc_text text)
{
	return memchr(text.at, '.', text.bytes) != NULL;
}

/* Makes the next entry from the cells of the line at p->at. */
static bool make_entry(struct cells *c, struct bc_parse *p)
{
	struct bc_entry *entry = &p->entries[p->count];

	memset(entry, 0, sizeof(*entry));
	entry->number = p->number;
	if (!read_kind(c, entry))
		return fail(c, p, BC_COLUMN_KIND, "expected a kind, such as reference or gap");
	bool is_gap = entry->kind == BC_ENTRY_EVENT && entry->note.event.kind == BC_EVENT_GAP;
	uint64_t missing = (is_gap ? C(CAUSE) | C(LOST) : needed[entry->kind]) & ~c->has;
	if (missing != 0)
		return fail(c, p, (enum bc_column)__builtin_ctzll(missing), "expected a value");
	uint64_t left = c->has & bc_columns_of_kind(entry->kind) & ~C(KIND);
	for (; left != 0; left &= left - 1) {
		enum bc_column column = (enum bc_column)__builtin_ctzll(left);
		if (!read_cell(c, entry, column))
			return fail(c, p, column,
				column == BC_COLUMN_TICK && has_point(c->cell[column])
					? "a time with a fraction needs a unit, such as time:us="
					: what_is[fields[column].how]);
		entry->traits |= bc_column_field(column);
	}
	if (!finish_entry(c, p, entry))
		return false;
	p->count++;
	return true;
}

/* Copies a byte to c->text. end_copy() ends the text in a newline, so that a number ends there. */
static void copy_byte(struct cells *c, char byte)
{
	/* Only lines that are too long do not fit. */
	if (c->used < sizeof(c->text) - 1)
		c->text[c->used++] = byte;
}

static struct bc_text end_copy(struct cells *c, size_t from)
{
	struct bc_text text = {c->text + from, (uint32_t)(c->used - from)};

	c->text[c->used] = '\n';
	c->used += c->used < sizeof(c->text) - 1;
	return text;
}

/* ---- csv */

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
	struct cells cells;
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
		while (i < KEYS && !is_text(key, known[i].name))
			i++;
		if (i == KEYS || name >= bytes)
			return bc_fail(err, errlen,
				"%.*s: expected time, tick, addr, type, size, "
				"proc or data, and =COLUMN",
				(int)bytes, at);
		*to = (struct key){known[i].column, 0, {at + name, (uint32_t)(bytes - name)}};
		for (unsigned u = 0; at[key.bytes] == ':' && u < BC_TIME_FORMS && i == 0; u++)
			if (is_text(form, bc_time_forms[u].name))
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
static bool read_csv_cell(struct cells *c, const char **at, struct bc_text *cell)
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
		copy_byte(c, *p);
	*cell = end_copy(c, from);
	*at = bc_skip_spaces(p);
	return p[-1] == '"' && (**at == ',' || *at == c->row_end);
}

/* Reports what is wrong with the header, and which columns it has. */
static bool fail_header(struct csv *csv, struct bc_parse *p, const char *row, const char *what)
{
	struct cells *c = &csv->cells;

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
		if (is_text(name, bc_column_name((enum bc_column)i)))
			return i;
	return IGNORED;
}

static bool read_header(struct csv *csv, struct bc_parse *p, const char *row)
{
	struct cells *c = &csv->cells;
	struct bc_text name;
	char what[100];

	c->columns = 0;
	for (const char *at = row;; at++) {
		if (csv->count == CSV_COLUMNS)
			return fail_header(csv, p, row, "more than 1,024 columns");
		if (!read_csv_cell(c, &at, &name))
			return fail_header(csv, p, row, "text next to a quoted name");
		unsigned column = column_of(csv, trim(name));
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
	struct cells *c = &csv->cells;
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
			add_cell(c, csv->columns[n], cell, p->bad);
		n++;
	} while (at != c->row_end);
	if (n == csv->count && at == c->row_end)
		return make_entry(c, p);
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
	struct cells *c = &csv->cells;

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

/* ---- ndjson */

/* Writes a character of an escape: a byte up to U+00FF, which is how such bytes are written that
 * are not UTF-8; else UTF-8. */
static void copy_character(struct cells *c, uint32_t code)
{
	if (code > 0xFFFF) {
		copy_byte(c, (char)(0xF0 | code >> 18));
		copy_byte(c, (char)(0x80 | (code >> 12 & 0x3F)));
	} else if (code > 0x7FF) {
		copy_byte(c, (char)(0xE0 | code >> 12));
	}
	if (code > 0x7FF)
		copy_byte(c, (char)(0x80 | (code >> 6 & 0x3F)));
	else if (code > 0xFF)
		copy_byte(c, (char)(0xC0 | code >> 6));
	copy_byte(c, (char)(code > 0xFF ? 0x80 | (code & 0x3F) : code));
}

/* Reads the four digits after \u. Returns a number above 0xFFFF if there are fewer. */
static uint32_t read_unit(const char *at)
{
	uint32_t code = 0;

	for (unsigned i = 0; i < 4; i++) {
		if (bc_hex_value[(uint8_t)at[i]] > 15)
			return UINT32_MAX;
		code = code << 4 | bc_hex_value[(uint8_t)at[i]];
	}
	return code;
}

/* Reads an escape, and moves *at past it. Returns false if it is not one. */
static bool read_escape(struct cells *c, const char **at)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	char letter = *++*at;
	const char *known = letter != '\0' ? strchr(from, letter) : NULL;

	++*at;
	if (known != NULL)
		copy_byte(c, to[known - from]);
	if (letter != 'u')
		return known != NULL;
	uint32_t code = read_unit(*at);
	uint32_t low;
	*at += code <= 0xFFFF ? 4 : 0;
	if (code >= 0xD800 && code < 0xDC00 && (*at)[0] == '\\' && (*at)[1] == 'u' &&
		(low = read_unit(*at + 2)) >= 0xDC00 && low < 0xE000) {
		*at += 6;
		code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
	} else if (code > 0xFFFF || (code >= 0xD800 && code < 0xE000)) {
		return false;
	}
	copy_character(c, code);
	return true;
}

/* Reads a string from its first quote, and moves *at past it, or to what is wrong. */
static bool read_string(struct cells *c, const char **at, struct bc_text *text)
{
	const char *p = ++*at;
	size_t from = c->used;

	while ((uint8_t)*p >= ' ' && *p != '"' && *p != '\\')
		p++;
	*text = (struct bc_text){*at, (uint32_t)(p - *at)};
	if (*p == '\\') {
		memcpy(c->text + from, text->at, text->bytes);
		c->used += text->bytes;
		while ((uint8_t)*p >= ' ' && *p != '"') {
			*at = p;
			if (*p != '\\')
				copy_byte(c, *p++);
			else if (!read_escape(c, &p))
				return false;
		}
		*text = end_copy(c, from);
	}
	*at = p + (*p == '"');
	return *p == '"';
}

/* Passes over an object or array. */
static bool skip_nested(struct cells *c, const char **at)
{
	struct bc_text text;
	size_t used = c->used;
	unsigned depth = 0;

	c->ignored++;
	do {
		char first = **at;
		if (first == '\n' || (first == '"' && !read_string(c, at, &text)))
			return false;
		depth += first == '{' || first == '[';
		depth -= first == '}' || first == ']';
		*at += first != '"';
		c->used = used;
	} while (depth != 0);
	return true;
}

/* Reads a value, and moves *at past it. *text is empty for null, and for one with parts. */
static bool read_value(struct cells *c, const char **at, struct bc_text *text)
{
	const char *begin = *at;

	*text = (struct bc_text){begin, 0};
	if (*begin == '"')
		return read_string(c, at, text);
	if (*begin == '{' || *begin == '[')
		return skip_nested(c, at);
	while (strchr(",]}\" \t\r\n", **at) == NULL)
		++*at;
	text->bytes = (uint32_t)(*at - begin);
	if (text->bytes == 4 && memcmp(begin, "null", 4) == 0)
		text->bytes = 0;
	return *at != begin;
}

/* Reads the object in the line at p->at to cells. */
static bool read_object(struct cells *c, struct bc_parse *p)
{
	const char *at = bc_skip_spaces(p->at);
	struct bc_text key;
	struct bc_text value;
	unsigned column = 0;

	c->has = 0;
	p->bad = at;
	p->expected = "expected an object, as {\"kind\":\"reference\", ...}";
	if (*at != '{')
		return false;
	do {
		p->bad = at = bc_skip_spaces(at + 1);
		p->expected = "expected a key in quotes, and a colon";
		if (*at != '"' || !read_string(c, &at, &key) || *(at = bc_skip_spaces(at)) != ':')
			return false;
		const char *begin = at = bc_skip_spaces(at + 1);
		bool is_value = read_value(c, &at, &value);
		p->bad = at;
		p->expected = "expected a value that ends in this line";
		if (!is_value)
			return false;
		/* Keys usually have the order of the columns. */
		for (unsigned n = 0; n < BC_COLUMNS; n++, column = (column + 1) % BC_COLUMNS) {
			const char *name = bc_column_name((enum bc_column)column);
			if (strlen(name) == key.bytes && memcmp(name, key.at, key.bytes) == 0)
				break;
			if (n + 1 == BC_COLUMNS)
				key.bytes = 0;
		}
		p->bad = begin;
		p->expected = "expected each key once";
		if (key.bytes != 0 && (c->has & BC_COLUMN(column)) != 0)
			return false;
		add_cell(c, key.bytes != 0 ? column : IGNORED, value, begin);
		p->bad = at = bc_skip_spaces(at);
	} while (*at == ',');
	p->expected = "expected a comma, or } at the end of the line";
	return *at == '}' && *bc_skip_spaces(at + 1) == '\n';
}

static bc_traits ndjson_traits(void *state, const char *at, const char *end, bool *has_wall)
{
	struct cells *c = state;
	struct bc_parse p = {.at = at};
	uint64_t seen = 0;

	c->columns = UINT64_MAX;
	for (; p.at < end; p.at = bc_line_end(p.at) + 1) {
		c->used = 0;
		if (bc_line_end(p.at) - p.at < BC_LINE_MAX)
			seen |= read_object(c, &p) ? c->has : 0;
	}
	bc_traits traits = bc_columns_traits(seen);
	/* What occurs later in traces that have these. */
	if ((traits & BC_TRAIT_EVENT) != 0 && (seen & C(TYPE)) == 0)
		traits |= bc_format_info(BC_FORMAT_SEGMENT)->traits;
	if ((seen & (C(LINE) | C(UNIT) | C(EFFECT) | C(REGISTER))) != 0)
		traits |= bc_format_info(BC_FORMAT_TARMAC)->traits;
	traits |= (seen & C(SPACE)) != 0 ? BC_TRAIT_LETTER : 0;
	traits |= (seen & (C(ATTR) | C(BUS_ADDR))) == C(ATTR) ? BC_TRAIT_P6 : 0;
	*has_wall = (seen & C(TIME)) != 0;
	c->columns = seen | bc_columns_of_trace(&(struct bc_format_options){
				    .source_traits = traits, .source_has_wall = *has_wall});
	c->ignored = 0;
	return traits;
}

static enum bc_parse_end parse_ndjson(void *state, struct bc_parse *p)
{
	struct cells *c = state;
	bool has_wall;

	if (c->columns == 0)
		(void)ndjson_traits(c, p->at, p->end, &has_wall);
	c->used = 0;
	for (; p->at < p->end; p->number++) {
		if (!bc_parse_has_room(p) || c->used > BC_LINE_MAX)
			return BC_PARSE_FULL;
		if (*bc_skip_spaces(p->at) != '\n' && !(read_object(c, p) && make_entry(c, p)))
			return BC_PARSE_BAD;
		p->at = bc_line_end(p->at) + 1;
	}
	return BC_PARSE_DONE;
}

static void ndjson_notes(const void *state, struct bc_parse_notes *notes)
{
	notes->ignored = ((const struct cells *)state)->ignored;
}

const struct bc_parser bc_ndjson_parser = {.state_bytes = sizeof(struct cells),
	.traits = ndjson_traits,
	.reads_head = true,
	.parse = parse_ndjson,
	.notes = ndjson_notes};
