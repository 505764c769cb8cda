/* Makes entries from the cells of tables that buscap wrote, or whose columns have the same names.
 *
 * A cell has the value whose text bc_column_cell() would write, so no name is listed twice. Any
 * order and subset of the columns will do if each entry has what its kind needs. Other columns are
 * ignored and counted. A cell that cannot be read makes its line malformed. */
#include "formats/codec/cells.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "formats/base/bytes.h"
#include "formats/base/fast_text.h"
#include "formats/base/text.h"

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
	[NAME] = "unknown word",
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

static bool fail(
	struct bc_cells *c, struct bc_parse *p, enum bc_column column, const char *expected)
{
	snprintf(c->what, sizeof(c->what), "%s: %s", bc_column_name(column), expected);
	p->bad = (c->has & BC_COLUMN(column)) != 0 ? c->in_line[column] : bc_line_end(p->at);
	p->expected = c->what;
	return false;
}

void bc_cells_add(struct bc_cells *c, unsigned column, struct bc_text cell, const char *in_line)
{
	bool is_read = column < BC_COLUMNS && (c->columns & BC_COLUMN(column)) != 0;

	c->ignored += !is_read && cell.bytes != 0;
	if (!is_read || cell.bytes == 0)
		return;
	c->has |= BC_COLUMN(column);
	c->cell[column] = cell;
	c->in_line[column] = in_line;
}

struct bc_text bc_cells_trim(struct bc_text text)
{
	for (; text.bytes != 0 && bc_is_space(*text.at); text.at++)
		text.bytes--;
	while (text.bytes != 0 && bc_is_space(text.at[text.bytes - 1]))
		text.bytes--;
	return text;
}

bool bc_cells_is(struct bc_text text, const char *other)
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
		if (bc_cells_is(text, name))
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
	return bc_cells_is(text, copy);
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
static bool read_cell(struct bc_cells *c, struct bc_entry *entry, enum bc_column column)
{
	const struct field *field = &fields[column];
	struct bc_text text = field->how < WORD ? bc_cells_trim(c->cell[column]) : c->cell[column];
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
static bool read_kind(struct bc_cells *c, struct bc_entry *entry)
{
	char name[32];

	entry->kind = (c->has & C(STEP)) != 0  ? BC_ENTRY_UOP
		      : (c->has & C(TAG)) != 0 ? BC_ENTRY_KERNEL
					       : BC_ENTRY_REFERENCE;
	if ((c->has & C(KIND)) == 0)
		return true;
	const struct bc_text text = bc_cells_trim(c->cell[BC_COLUMN_KIND]);
	for (unsigned i = 0; i <= BC_ENTRY_KINDS + BC_EVENT_NOTE; i++) {
		bool is_event = i == BC_ENTRY_EVENT || i >= BC_ENTRY_KINDS;
		entry->kind = is_event ? BC_ENTRY_EVENT : (uint8_t)i;
		entry->note.event.kind = i >= BC_ENTRY_KINDS ? (uint8_t)(i - BC_ENTRY_KINDS) : 0;
		*bc_cell_write(name, bc_column_cell(BC_COLUMN_KIND, entry, NULL)) = '\0';
		if (bc_cells_is(text, name))
			return true;
	}
	return false;
}

/* Completes what several columns determine. */
static bool finish_entry(struct bc_cells *c, struct bc_parse *p, struct bc_entry *entry)
{
	uint64_t has = c->has;
	uint32_t digits = (has & C(OPCODE)) != 0 ? bc_cells_trim(c->cell[BC_COLUMN_OPCODE]).bytes
						 : 0;

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

bool bc_cells_entry(struct bc_cells *c, struct bc_parse *p)
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
				column == BC_COLUMN_TYPE
					? "expected a type, such as read, W or MEMREAD"
				: column == BC_COLUMN_TICK && has_point(c->cell[column])
					? "a time with a fraction needs a unit, such as time:us="
					: what_is[fields[column].how]);
		entry->traits |= bc_column_field(column);
	}
	if (!finish_entry(c, p, entry))
		return false;
	p->count++;
	return true;
}

void bc_cells_copy(struct bc_cells *c, char byte)
{
	/* Only lines that are too long do not fit. */
	if (c->used < sizeof(c->text) - 1)
		c->text[c->used++] = byte;
}

struct bc_text bc_cells_end_copy(struct bc_cells *c, size_t from)
{
	struct bc_text text = {c->text + from, (uint32_t)(c->used - from)};

	c->text[c->used] = '\n';
	c->used += c->used < sizeof(c->text) - 1;
	return text;
}
