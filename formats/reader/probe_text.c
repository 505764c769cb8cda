#include "formats/reader/probe_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/fail.h"
#include "formats/base/fast_parse.h"
#include "formats/base/utf8.h"
#include "formats/trace/parser.h"

#define ENTRIES 256u

/* Allow a few malformed lines, and times that go back: a file may be cut, contain other lines, or
 * consist of two. */
#define MALFORMED_PER_256 8u

/* More of them may be damaged: blank, with a control character, or the last line of the file. A
 * last line without anything that can be printed doesn't count. */
#define DAMAGED_PER_256 64u

/* So many of the other lines are typical of the format, and of those of modelled kinds. */
#define TYPICAL_PER_256 160u

/* In text, at most one byte in this many is a control character. */
#define BYTES_PER_CONTROL 32u

static bool is_control(uint8_t byte)
{
	return byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
}

bool bc_is_text(const uint8_t *head, size_t bytes)
{
	size_t controls = 0;

	for (size_t i = 0; i < bytes; i++)
		controls += is_control(head[i]);
	/* One alone may be in a short text, but a binary record of few bytes has more. */
	return bytes != 0 &&
	       (controls <= bytes / BYTES_PER_CONTROL || (controls == 1 && bytes >= 16));
}

/* Whether the numbers of a list are hexadecimal addresses: one has a digit from a to f, or begins
 * with 0x. Without one, they are if there are few, not all have one digit, and nearly all are
 * multiples of 4 but do not all end in 0; of decimal numbers, less than half are, or they are
 * round. */
#define DISTINCT_MAX  16u
#define ADDRESS_LEAST 0x10u

struct hex_check {
	uint64_t distinct[DISTINCT_MAX];
	unsigned used; /* DISTINCT_MAX + 1: more */
	uint64_t numbers;
	uint64_t odd; /* those that are no multiples of 4 */
	uint64_t highest;
	bool has_letter;
	bool has_unround; /* a number whose last digit is not 0 */
};

/* `text`: how the number is written. */
static void check_hex(struct hex_check *c, uint64_t number, const char *text)
{
	unsigned i = 0;

	c->has_letter |= text[0] == '0' && (text[1] | 0x20) == 'x';
	c->has_unround |= number % 16 != 0;
	c->numbers++;
	c->odd += number % 4 != 0;
	c->highest = number > c->highest ? number : c->highest;
	for (uint64_t rest = number; rest != 0; rest >>= 4)
		c->has_letter |= (rest & 15) > 9;
	while (i < c->used && i < DISTINCT_MAX && c->distinct[i] != number)
		i++;
	if (i < c->used || c->used > DISTINCT_MAX)
		return;
	if (i < DISTINCT_MAX)
		c->distinct[i] = number;
	c->used++;
}

static bool is_hex(const struct hex_check *c)
{
	return c->has_letter || (c->used <= DISTINCT_MAX && c->odd * 8 <= c->numbers &&
					c->highest >= ADDRESS_LEAST && c->has_unround);
}

/* Result of parsing the lines. Blank lines, comments and those that the parser skips don't
 * count. */
struct count {
	uint64_t lines;
	uint64_t bad;
	uint64_t damaged;
	uint64_t modelled; /* lines of modelled kinds */
	uint64_t typical;
	uint64_t both; /* modelled and typical */
	uint64_t tick; /* of the last line */
	struct hex_check hex;
};

/* Whether a line has a control character: it may be one of the format that was damaged. */
static bool has_control(const char *line, const char *end)
{
	while (line < end && !is_control((uint8_t)*line))
		line++;
	return line < end;
}

/* Whether a line has nothing but white space and control characters. */
static bool is_empty(const char *line, const char *end)
{
	while (line < end && ((uint8_t)*line <= ' '))
		line++;
	return line == end;
}

static void count_line(struct count *count, const struct bc_parser *parser, const char *line,
	const struct bc_entry *entry)
{
	const char *word = bc_skip_spaces(line);

	if (*word == '\n' || *word == '#')
		return;
	count->lines++;
	bool is_modelled = entry->kind != BC_ENTRY_LINE;
	bool is_typical = parser->is_typical == NULL || parser->is_typical(line, entry);
	count->modelled += is_modelled;
	count->bad += parser->is_ordered && entry->tick < count->tick;
	count->tick = entry->tick;
	count->typical += is_typical;
	count->both += is_modelled && is_typical;
	if (parser->has_bare_hex)
		check_hex(&count->hex, entry->addr, bc_skip_spaces(bc_token_end(word)));
}

/* Parses each line on its own. `is_all`: the text has no more. */
static struct count try_parser(const struct bc_parser *parser, const char *text, size_t bytes,
	bool is_all, struct bc_entry *entries)
{
	const struct bc_format_options options = bc_format_options_default();
	struct bc_parse p = {.at = text, .number = 1, .entries = entries, .capacity = ENTRIES};
	struct count count = {0};
	void *state = bc_parser_start(parser, &options);

	if (state == NULL)
		return (struct count){.lines = 1, .bad = 1};
	for (const char *line = text; line < text + bytes; line = p.end) {
		const char *newline = bc_line_end(line);
		p.at = line;
		p.end = newline + 1;
		p.count = 0;
		if (parser->parse(state, &p) == BC_PARSE_BAD) {
			bool is_last = is_all && p.end == text + bytes;
			p.number++;
			if (is_last && is_empty(line, newline))
				continue;
			bool may_be = is_last || is_empty(line, newline) ||
				      has_control(line, newline);
			count.damaged += may_be;
			count.bad += !may_be;
			count.lines++;
		} else if (p.count != 0) {
			count_line(&count, parser, line, entries);
		}
	}
	free(state);
	return count;
}

/* Whether nearly all lines fit the format, and most have what only it has. */
static bool fits_lines(enum bc_format format, const char *text, size_t bytes, bool is_all,
	struct bc_entry *entries)
{
	const struct bc_parser *parser = bc_format_info(format)->parser;
	struct count count = try_parser(parser, text, bytes, is_all, entries);
	uint64_t good = count.lines - count.bad - count.damaged;

	return count.modelled != 0 && count.modelled * 8 >= good &&
	       count.typical * 256 >= good * TYPICAL_PER_256 &&
	       count.both * 256 >= count.modelled * TYPICAL_PER_256 &&
	       count.bad * 256 <= count.lines * MALFORMED_PER_256 &&
	       count.damaged * 256 <= count.lines * DAMAGED_PER_256 &&
	       (!parser->has_bare_hex || is_hex(&count.hex));
}

static enum bc_format probe_lines(const char *text, size_t bytes, bool is_all,
	struct bc_entry *entries, char *err, size_t errlen)
{
	enum bc_format only = BC_FORMAT_UNKNOWN;
	size_t used = 0;

	err[0] = '\0';
	for (unsigned f = 1; f < BC_FORMATS; f++) {
		const struct bc_format_info *info = bc_format_info((enum bc_format)f);
		if (!info->is_text || info->parser == NULL || !info->can_read ||
			!fits_lines((enum bc_format)f, text, bytes, is_all, entries))
			continue;
		int n = snprintf(err + used, errlen - used, "%s%s", used != 0 ? " or " : "",
			bc_format_name((enum bc_format)f));
		used += n > 0 && (size_t)n < errlen - used ? (size_t)n : 0;
		only = only == BC_FORMAT_UNKNOWN ? (enum bc_format)f : BC_FORMATS;
	}
	if (only != BC_FORMAT_UNKNOWN && only != BC_FORMATS)
		return only;
	if (only == BC_FORMATS)
		snprintf(err + used, errlen - used, ": each matches the lines");
	else
		bc_message(err, errlen, "the lines fit no known format");
	return BC_FORMAT_UNKNOWN;
}

enum bc_format bc_probe_text(
	const uint8_t *head, size_t bytes, bool is_all, char *err, size_t errlen)
{
	enum bc_format format = BC_FORMAT_UNKNOWN;
	char *text = malloc(bytes + 1 + BC_PARSE_PADDING);
	struct bc_entry *entries = calloc(ENTRIES, sizeof(*entries));

	if (bc_starts_with_bom(head, bytes)) {
		head += BC_BOM_BYTES;
		bytes -= BC_BOM_BYTES;
	}
	bc_message(err, errlen, "out of memory");
	if (text != NULL && entries != NULL) {
		memcpy(text, head, bytes);
		memset(text + bytes, 0, 1 + BC_PARSE_PADDING);
		if (is_all && bytes != 0 && head[bytes - 1] != '\n')
			text[bytes++] = '\n';
		const char *newline = memrchr(text, '\n', bytes);
		if (newline == NULL)
			bc_message(err, errlen, "the first line is too long");
		else
			format = probe_lines(
				text, (size_t)(newline - text) + 1, is_all, entries, err, errlen);
	}
	free(text);
	free(entries);
	return format;
}
