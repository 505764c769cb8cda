/* Reads ndjson: what buscap wrote (formats/codec/ndjson.c), by the names of its keys.
 *
 * What a trace may have is known from the keys of the first block, before its first entry. Values
 * of other keys in later lines are ignored and counted. */
#include "formats/codec/codecs.h"

#include <string.h>

#include "formats/base/fast_text.h"
#include "formats/codec/cells.h"
#include "formats/codec/format.h"

#define C(column) BC_COLUMN(BC_COLUMN_##column)

/* Writes a character of an escape: a byte up to U+00FF, which is how such bytes are written that
 * are not UTF-8; else UTF-8. */
static void copy_character(struct bc_cells *c, uint32_t code)
{
	if (code > 0xFFFF) {
		bc_cells_copy(c, (char)(0xF0 | code >> 18));
		bc_cells_copy(c, (char)(0x80 | (code >> 12 & 0x3F)));
	} else if (code > 0x7FF) {
		bc_cells_copy(c, (char)(0xE0 | code >> 12));
	}
	if (code > 0x7FF)
		bc_cells_copy(c, (char)(0x80 | (code >> 6 & 0x3F)));
	else if (code > 0xFF)
		bc_cells_copy(c, (char)(0xC0 | code >> 6));
	bc_cells_copy(c, (char)(code > 0xFF ? 0x80 | (code & 0x3F) : code));
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
static bool read_escape(struct bc_cells *c, const char **at)
{
	static const char from[] = "\"\\/bfnrt";
	static const char to[] = "\"\\/\b\f\n\r\t";
	char letter = *++*at;
	const char *known = letter != '\0' ? strchr(from, letter) : NULL;

	++*at;
	if (known != NULL)
		bc_cells_copy(c, to[known - from]);
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
static bool read_string(struct bc_cells *c, const char **at, struct bc_text *text)
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
				bc_cells_copy(c, *p++);
			else if (!read_escape(c, &p))
				return false;
		}
		*text = bc_cells_end_copy(c, from);
	}
	*at = p + (*p == '"');
	return *p == '"';
}

/* Passes over an object or array. */
static bool skip_nested(struct bc_cells *c, const char **at)
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
static bool read_value(struct bc_cells *c, const char **at, struct bc_text *text)
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
static bool read_object(struct bc_cells *c, struct bc_parse *p)
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
		bc_cells_add(c, key.bytes != 0 ? column : BC_COLUMNS, value, begin);
		p->bad = at = bc_skip_spaces(at);
	} while (*at == ',');
	p->expected = "expected a comma, or } at the end of the line";
	return *at == '}' && *bc_skip_spaces(at + 1) == '\n';
}

static bc_traits ndjson_traits(void *state, const char *at, const char *end, bool *has_wall)
{
	struct bc_cells *c = state;
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
	struct bc_cells *c = state;
	bool has_wall;

	if (c->columns == 0)
		(void)ndjson_traits(c, p->at, p->end, &has_wall);
	c->used = 0;
	for (; p->at < p->end; p->number++) {
		if (!bc_parse_has_room(p) || c->used > BC_LINE_MAX)
			return BC_PARSE_FULL;
		if (*bc_skip_spaces(p->at) != '\n' && !(read_object(c, p) && bc_cells_entry(c, p)))
			return BC_PARSE_BAD;
		p->at = bc_line_end(p->at) + 1;
	}
	return BC_PARSE_DONE;
}

static void ndjson_notes(const void *state, struct bc_parse_notes *notes)
{
	notes->ignored = ((const struct bc_cells *)state)->ignored;
}

const struct bc_parser bc_ndjson_parser = {.state_bytes = sizeof(struct bc_cells),
	.traits = ndjson_traits,
	.reads_head = true,
	.parse = parse_ndjson,
	.notes = ndjson_notes};
