/* The value of an entry in each column of csv and ndjson, and text for JSON. This is the general
 * path, for entries of any kind; both printers have a faster one for plain references. */
#include "formats/codec/columns.h"

#include <string.h>

#include "formats/base/utf8.h"
#include "formats/trace/parser.h"

#define ANY   BC_KINDS
#define REF   BC_TRAIT_REFERENCE
#define INS   BC_TRAIT_INSTRUCTION
#define UOP   BC_TRAIT_UOP
#define REG   BC_TRAIT_REGISTER
#define EVENT BC_TRAIT_EVENT

static const struct column {
	const char *name;
	uint32_t kinds;
	uint32_t needs;
} columns[BC_COLUMNS] = {
#define ROW(column, name, kinds, needs, how, member) {#name, kinds, needs},
	BC_COLUMN_LIST(ROW)
#undef ROW
};

const char *bc_column_name(enum bc_column column)
{
	return columns[column].name;
}

uint64_t bc_columns_of_trace(const struct bc_format_options *options)
{
	bc_traits traits = options->source_traits;
	uint32_t kinds = traits & BC_KINDS;
	uint64_t set = 0;

	for (unsigned i = 0; i < BC_COLUMNS; i++) {
		const struct column *column = &columns[i];
		if ((kinds & column->kinds) != 0 &&
			(column->needs == 0 || (traits & column->needs) != 0))
			set |= BC_COLUMN(i);
	}
	if (!options->source_has_wall)
		set &= ~BC_COLUMN(BC_COLUMN_TIME);
	return (kinds & (kinds - 1)) != 0 ? set : set & ~BC_COLUMN(BC_COLUMN_KIND);
}

bc_traits bc_column_field(enum bc_column column)
{
	return column != BC_COLUMN_TIME ? columns[column].needs & BC_FIELDS : 0;
}

bc_traits bc_columns_traits(uint64_t set)
{
	bc_traits traits = 0;

	for (unsigned i = 0; i < BC_COLUMNS; i++) {
		const struct column *column = &columns[i];
		if ((set & BC_COLUMN(i)) == 0)
			continue;
		traits |= (column->kinds & (column->kinds - 1)) == 0 ? column->kinds : 0;
		traits |= (column->needs & (column->needs - 1)) == 0 ? column->needs : 0;
	}
	traits |= (traits & EVENT) != 0 ? REF : 0;
	traits |= (traits & REF) != 0 ? BC_TYPES & ~(bc_traits)BC_TRAIT_P6 : 0;
	return traits | ((traits & BC_TRAIT_KERNEL) != 0 ? BC_TRAIT_LETTER : 0);
}

uint64_t bc_columns_of_kind(unsigned kind)
{
	uint32_t trait = (uint32_t)BC_TRAIT_REFERENCE << kind;
	uint64_t set = 0;

	for (unsigned i = 0; i < BC_COLUMNS; i++)
		if ((columns[i].kinds & trait) != 0)
			set |= BC_COLUMN(i);
	return set;
}

/* A header row has all columns of a trace, in the order of the list. */
bool bc_columns_begin_csv(const uint8_t *head, size_t bytes)
{
	uint64_t set = 0;

	for (unsigned i = 0; i < BC_COLUMNS; i++) {
		size_t n = strlen(columns[i].name);
		if (n >= bytes || memcmp(head, columns[i].name, n) != 0 ||
			strchr(",\r\n", head[n]) == NULL)
			continue;
		set |= BC_COLUMN(i);
		if (head[n] != ',')
			return set ==
			       bc_columns_of_trace(&(struct bc_format_options){
				       .source_traits = bc_columns_traits(set),
				       .source_has_wall = (set & BC_COLUMN(BC_COLUMN_TIME)) != 0});
		head += n + 1;
		bytes -= n + 1;
	}
	return false;
}

bool bc_columns_begin_ndjson(const uint8_t *head, size_t bytes)
{
	static const char start[] = "{\"kind\":\"";
	static const char number[] = "\",\"number\":";
	size_t n = strlen(start);

	return bytes >= n && memcmp(head, start, n) == 0 &&
	       memmem(head + n, bytes - n < 32 ? bytes - n : 32, number, strlen(number)) != NULL;
}

static const struct bc_cell empty = {.kind = BC_CELL_EMPTY};

static struct bc_cell hex_cell(uint64_t number, unsigned digits)
{
	return (struct bc_cell){.kind = BC_CELL_HEX, .number = number, .digits = (uint8_t)digits};
}

static struct bc_cell word_cell(const char *word)
{
	return (struct bc_cell){.kind = BC_CELL_WORD, .at = word, .bytes = (uint32_t)strlen(word)};
}

static struct bc_cell text_cell(struct bc_text text)
{
	return (struct bc_cell){.kind = text.bytes != 0 ? BC_CELL_TEXT : BC_CELL_EMPTY,
		.at = text.at,
		.bytes = text.bytes};
}

/* A capability, "(1|dc5f|8000)", is text. */
static struct bc_cell bits_cell(struct bc_text text)
{
	struct bc_cell cell = text_cell(text);

	if (cell.kind == BC_CELL_TEXT && *text.at != '(')
		cell.kind = BC_CELL_BITS;
	return cell;
}

static const char *kind_name(const struct bc_entry *entry)
{
	static const char *const names[BC_ENTRY_KINDS] = {
		[BC_ENTRY_REFERENCE] = "reference",
		[BC_ENTRY_INSTRUCTION] = "instruction",
		[BC_ENTRY_UOP] = "uop",
		[BC_ENTRY_REGISTER] = "register",
		[BC_ENTRY_KERNEL] = "kernel",
		[BC_ENTRY_LINE] = "line",
	};

	return entry->kind != BC_ENTRY_EVENT ? names[entry->kind]
					     : bc_event_kind_name(entry->note.event.kind);
}

static struct bc_cell type_cell(const struct bc_entry *entry)
{
	const char *name = bc_ref_type_name(entry->type);

	return name != NULL ? word_cell(name) : hex_cell(entry->type, 2);
}

static struct bc_cell name_cell(enum bc_column column, const struct bc_entry *entry)
{
	static const char *const effects[] = {[BC_EFFECT_EXECUTED] = "executed",
		[BC_EFFECT_SKIPPED] = "skipped",
		[BC_EFFECT_FETCHFAIL] = "fetchfail"};

	switch (column) {
	case BC_COLUMN_KIND:
		return word_cell(kind_name(entry));
	case BC_COLUMN_UNIT:
		return word_cell(bc_unit_name(entry->unit));
	case BC_COLUMN_TYPE:
		return type_cell(entry);
	case BC_COLUMN_EFFECT:
		return word_cell(effects[entry->instruction.effect]);
	case BC_COLUMN_CAUSE:
		return word_cell(bc_gap_cause_name(entry->note.event.cause));
	default:
		return (struct bc_cell){.kind = BC_CELL_FLAG, .number = entry->note.event.exact};
	}
}

/* True if the entry has a value in a column of its kind. */
static bool has_value(enum bc_column column, const struct bc_entry *entry)
{
	bool is_gap = entry->kind == BC_ENTRY_EVENT && entry->note.event.kind == BC_EVENT_GAP;
	bool has_time = (entry->traits & BC_TRAIT_TIME) != 0;

	switch (column) {
	case BC_COLUMN_TICK:
		return has_time || entry->kind == BC_ENTRY_EVENT;
	case BC_COLUMN_UNIT:
		return has_time && entry->unit != BC_UNIT_TICK;
	case BC_COLUMN_DELTA:
		return entry->has_delta && entry->delta != BC_TIME_NONE;
	case BC_COLUMN_ID:
		return entry->instruction.has_id;
	case BC_COLUMN_OPCODE:
		return entry->instruction.digits != 0;
	case BC_COLUMN_CAUSE:
	case BC_COLUMN_LOST:
	case BC_COLUMN_EXACT:
		return is_gap;
	case BC_COLUMN_DURATION_NS:
		return is_gap && entry->note.event.duration_ns != 0;
	case BC_COLUMN_LINE:
		return !entry->is_continued;
	default:
		return (bc_column_field(column) & ~entry->traits) == 0;
	}
}

/* How many digits a hexadecimal value has at least. */
static unsigned digits_of(enum bc_column column, const struct bc_entry *entry)
{
	switch (column) {
	case BC_COLUMN_DATA: /* as many as the data has bytes, if the size is known */
		return entry->size <= 8 ? 2 * entry->size : 0;
	case BC_COLUMN_BYTE_ENABLES:
	case BC_COLUMN_CONTROL:
		return 2;
	case BC_COLUMN_OPCODE:
		return entry->instruction.digits;
	default:
		return 0;
	}
}

static struct bc_cell wall_cell(const struct bc_entry *entry, const struct bc_moment *moment)
{
	int64_t wall_ns;

	return bc_entry_wall(entry, moment, &wall_ns)
		       ? (struct bc_cell){.kind = BC_CELL_TIME, .number = (uint64_t)wall_ns}
		       : empty;
}

/* The cell of a member, by how it is read (cells.c). */
#define CELL_DECIMAL(column, member) ((struct bc_cell){.kind = BC_CELL_DECIMAL, .number = (member)})
#define CELL_SIGNED(column, member) \
	((struct bc_cell){.kind = BC_CELL_SIGNED, .number = (uint64_t)(member)})
#define CELL_HEX(column, member)    hex_cell((member), digits_of((column), entry))
#define CELL_BUS(column, member)    hex_cell(bc_be32(member), 0)
#define CELL_UNREAD(column, member) name_cell((column), entry)
#define CELL_NAME(column, member)   name_cell((column), entry)
#define CELL_CHARACTER(column, member) \
	text_cell((struct bc_text){.at = &(member), .bytes = (member) != '\0'})
#define CELL_WALL(column, member) wall_cell(entry, moment)
#define CELL_WORD(column, member) text_cell(member)
#define CELL_TEXT(column, member) text_cell(member)
#define CELL_NOTE(column, member) text_cell(member)
#define CELL_BITS(column, member) bits_cell(member)

struct bc_cell bc_column_cell(
	enum bc_column column, const struct bc_entry *entry, const struct bc_moment *moment)
{
	if (!has_value(column, entry))
		return empty;
	switch (column) {
#define CASE(column, name, kinds, needs, how, member) \
	case BC_COLUMN_##column:                      \
		return CELL_##how(BC_COLUMN_##column, entry->member);
		BC_COLUMN_LIST(CASE)
#undef CASE
	default:
		return empty;
	}
}

char *bc_cell_write(char *out, struct bc_cell cell)
{
	switch ((enum bc_cell_kind)cell.kind) {
	case BC_CELL_DECIMAL:
		return bc_write_decimal(out, cell.number);
	case BC_CELL_SIGNED:
		return bc_write_signed(out, (int64_t)cell.number);
	case BC_CELL_HEX:
		*out++ = '0';
		*out++ = 'x';
		return bc_write_hex_padded(out, cell.number, cell.digits);
	case BC_CELL_FLAG:
		return stpcpy(out, cell.number != 0 ? "true" : "false");
	case BC_CELL_TIME:
		return bc_write_time_row(out, &(struct bc_time_row){0}, (int64_t)cell.number);
	case BC_CELL_BITS:
		out = BC_WRITE_LITERAL(out, "0x");
		return mempcpy(out, cell.at, cell.bytes);
	case BC_CELL_WORD:
		return mempcpy(out, cell.at, cell.bytes);
	default:
		return out;
	}
}

/* Maximum output for all cells other than text, with the keys of all columns. */
#define FIXED_BYTES 4096
#define ESCAPED     6

_Static_assert(BC_PRINT_MAX >= 2 * ESCAPED * BC_LINE_MAX + FIXED_BYTES,
	"the longest line fits, whole and in its parts");
_Static_assert(BC_LINE_MAX >= BC_CHUNK_TEXT_BYTES, "so does the longest text of an event");

void bc_type_words(struct bc_type_word words[BC_REF_TYPES])
{
	for (unsigned type = 0; type < BC_REF_TYPES; type++) {
		const char *name = bc_ref_type_name(type);
		char code[32] = "0x";
		if (name == NULL) {
			bc_write_hex8(code + 2, (uint8_t)type);
			name = code;
		}
		size_t bytes = strnlen(name, sizeof(words[type].text));
		memset(words[type].text, 0, sizeof(words[type].text));
		memcpy(words[type].text, name, bytes);
		words[type].bytes = (uint8_t)bytes;
	}
}

/* ---- json text */

/* How to write a byte of a string. 0: unchanged; 'u': as \u00XX; 'm': it may start a UTF-8
 * sequence; any other: this character after a backslash. */
static char json_escape(uint8_t byte)
{
	static const char controls[32] = "uuuuuuuubtnufruuuuuuuuuuuuuuuuuu";

	if (byte < 32)
		return controls[byte];
	if (byte >= 0x7F)
		return byte == 0x7F ? 'u' : 'm';
	if (byte == '"')
		return '"';
	return byte == '\\' ? '\\' : '\0';
}

static char *write_escaped(char *out, uint8_t byte)
{
	out = BC_WRITE_LITERAL(out, "\\u00");
	return bc_write_hex8(out, byte);
}

char *bc_json_write_text(char *out, struct bc_text text)
{
	const uint8_t *at = (const uint8_t *)text.at;
	uint32_t left = text.bytes;

	*out++ = '"';
	while (left != 0) {
		char how = json_escape(*at);
		uint32_t n = 1;
		if (how == '\0') {
			*out++ = (char)*at;
		} else if (how == 'm' && (n = bc_utf8_bytes(at, left)) != 0) {
			if (at[0] == 0xC2 && at[1] < 0xA0) /* a control character */
				out = write_escaped(out, at[1]);
			else
				out = mempcpy(out, at, n);
		} else if (how == 'm' || how == 'u') {
			out = write_escaped(out, *at);
			n = 1;
		} else {
			*out++ = '\\';
			*out++ = how;
		}
		at += n;
		left -= n;
	}
	*out++ = '"';
	return out;
}
