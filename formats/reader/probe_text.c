#include "formats/reader/probe_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/fast_parse.h"
#include "formats/base/utf8.h"
#include "formats/trace/parser.h"

#define ENTRIES 256u

/* Allow a few malformed lines: a file may be cut or contain other lines. */
#define MALFORMED_PER_256 8u

bool bc_is_text(const uint8_t *head, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (head[i] < 0x20 && head[i] != '\t' && head[i] != '\n' && head[i] != '\r')
			return false;
	return bytes != 0;
}

/* Result of parsing the lines. */
struct count {
	uint64_t lines;
	uint64_t bad;
	uint64_t modelled; /* lines of modelled kinds */
};

/* Almost any line parses as a kernel event: a letter, a number and anything. All published tags are
 * capitals, so only capitals count. */
static bool is_modelled(const struct bc_entry *entry)
{
	if (entry->kind == BC_ENTRY_KERNEL)
		return entry->letter >= 'A' && entry->letter <= 'Z';
	return entry->kind != BC_ENTRY_LINE && !entry->is_continued;
}

static struct count try_parser(
	const struct bc_parser *parser, const char *text, size_t bytes, struct bc_entry *entries)
{
	const struct bc_format_options options = bc_format_options_default();
	struct bc_parse p = {.at = text,
		.end = text + bytes,
		.number = 1,
		.entries = entries,
		.capacity = ENTRIES};
	struct count count = {0};
	void *state = bc_parser_start(parser, &options);

	if (state == NULL)
		return (struct count){.lines = 1, .bad = 1};
	while (p.at < p.end) {
		p.count = 0;
		enum bc_parse_end end = parser->parse(state, &p);
		for (size_t i = 0; i < p.count; i++)
			count.modelled += is_modelled(&entries[i]);
		if (end == BC_PARSE_BAD) {
			count.bad++;
			p.at = bc_line_end(p.at) + 1;
			p.number++;
		}
	}
	count.lines = p.number - 1;
	free(state);
	return count;
}

static bool all_have_words(const char *text, size_t bytes, unsigned words)
{
	for (const char *at = text; at < text + bytes; at++) {
		unsigned n = 0;
		for (at = bc_skip_spaces(at); *at != '\n'; at = bc_skip_spaces(at)) {
			at = bc_token_end(at);
			n++;
		}
		if (n != words)
			return false;
	}
	return true;
}

/* Whether nearly all lines fit the format, and there are enough lines to be sure. */
static bool fits_lines(
	enum bc_format format, const char *text, size_t bytes, struct bc_entry *entries)
{
	/* din ignores the rest of a line, and Tarmac and kernel events accept almost any line. So
	 * these have additional conditions. */
	if (format == BC_FORMAT_DIN && !all_have_words(text, bytes, 2))
		return false;
	struct count count = try_parser(bc_format_info(format)->parser, text, bytes, entries);
	if (format == BC_FORMAT_TARMAC && count.modelled * 8 < count.lines)
		return false;
	if (format == BC_FORMAT_LAPLACE_EVENTS && count.modelled < count.lines)
		return false;
	return count.modelled != 0 && count.bad * 256 <= count.lines * MALFORMED_PER_256;
}

static enum bc_format probe_lines(
	const char *text, size_t bytes, struct bc_entry *entries, char *err, size_t errlen)
{
	enum bc_format only = BC_FORMAT_UNKNOWN;
	size_t used = 0;

	err[0] = '\0';
	for (unsigned f = 1; f < BC_FORMATS; f++) {
		const struct bc_format_info *info = bc_format_info((enum bc_format)f);
		/* Kernel events are tried only if nothing else fits. */
		if (!info->is_text || info->parser == NULL || !info->can_read ||
			f == BC_FORMAT_LAPLACE_EVENTS ||
			!fits_lines((enum bc_format)f, text, bytes, entries))
			continue;
		int n = snprintf(err + used, errlen - used, "%s%s", used != 0 ? " or " : "",
			bc_format_name((enum bc_format)f));
		used += n > 0 && (size_t)n < errlen - used ? (size_t)n : 0;
		only = only == BC_FORMAT_UNKNOWN ? (enum bc_format)f : BC_FORMATS;
	}
	if (only == BC_FORMAT_UNKNOWN && bc_format_info(BC_FORMAT_LAPLACE_EVENTS)->can_read &&
		fits_lines(BC_FORMAT_LAPLACE_EVENTS, text, bytes, entries))
		return BC_FORMAT_LAPLACE_EVENTS;
	if (only != BC_FORMAT_UNKNOWN && only != BC_FORMATS)
		return only;
	if (only == BC_FORMATS)
		snprintf(err + used, errlen - used, ": each matches the lines");
	else
		snprintf(err, errlen, "the lines fit no known format");
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
	snprintf(err, errlen, "out of memory");
	if (text != NULL && entries != NULL) {
		memcpy(text, head, bytes);
		memset(text + bytes, 0, 1 + BC_PARSE_PADDING);
		if (is_all && head[bytes - 1] != '\n')
			text[bytes++] = '\n';
		const char *newline = memrchr(text, '\n', bytes);
		if (newline == NULL)
			snprintf(err, errlen, "the first line is too long");
		else
			format = probe_lines(
				text, (size_t)(newline - text) + 1, entries, err, errlen);
	}
	free(text);
	free(entries);
	return format;
}
