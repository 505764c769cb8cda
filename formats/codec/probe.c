/* Detection knows three kinds of formats. Segments and bcp1 have checksums: one valid header
 * anywhere in the head is certain. Text formats are tried by parsing the whole lines of the head.
 * Records without marks are checked for values that a bus can produce, and for those that only a
 * trace has. Of the latter two kinds, exactly one format must fit; detection never guesses. What
 * fits nothing may be of a kind that is named in the message: one that can only be written, or a
 * foreign one (unpack.h). */
#include "formats/codec/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/fast_text.h"
#include "formats/base/text.h"
#include "formats/base/utf8.h"
#include "formats/bus/bcp1.h"
#include "formats/bus/record.h"
#include "formats/bus/sample.h"
#include "formats/codec/codecs.h"
#include "formats/codec/format.h"
#include "formats/codec/lines.h"
#include "formats/segment/segment.h"
#include "formats/segment/segment_header.h"
#include "formats/trace/parser.h"
#include "formats/trace/printer.h"

#define DISTINCT_MAX 16u

/* Counts different numbers, up to DISTINCT_MAX. */
struct distinct {
	uint64_t seen[DISTINCT_MAX];
	unsigned used; /* DISTINCT_MAX + 1: more */
};

static void add_distinct(struct distinct *d, uint64_t number)
{
	unsigned i = 0;

	while (i < d->used && i < DISTINCT_MAX && d->seen[i] != number)
		i++;
	if (i < d->used || d->used > DISTINCT_MAX)
		return;
	if (i < DISTINCT_MAX)
		d->seen[i] = number;
	d->used++;
}

/* ---- text formats
 *
 * Tries the parsers on the whole lines at the start of a file. A format fits if its parser accepts
 * nearly all lines, and most have what other texts lack, which its parser decides (is_typical() in
 * formats/trace/parser.h). */

#define ENTRIES 256u

/* Allow a few malformed lines, and times that go back: a file may be cut, mixed, or two in one. */
#define MALFORMED_PER_256 8u

/* More of them may be damaged: blank, with a control character, or the last line of the file. A
 * last line without anything that can be printed doesn't count. */
#define DAMAGED_PER_256 64u

/* At least this share of the other lines, and of the lines of modelled kinds, must be typical. */
#define TYPICAL_PER_256 160u

/* In text, at most one byte in this many is a control character, or above 0x7f and not of UTF-8. */
#define BYTES_PER_CONTROL 32u

/* No access moves more. A column of data, read as sizes, has such numbers. */
#define SIZE_MOST 4096u

static bool is_control(uint8_t byte)
{
	return byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r';
}

/* True if the bytes can be text. A few may be control characters other than white space, such as
 * the Ctrl-Z at the end of CP/M and DOS files, or letters of another encoding. */
static bool is_text_head(const uint8_t *head, size_t bytes)
{
	size_t controls = 0;

	for (size_t i = 0, n; i < bytes; i += n) {
		n = head[i] < 0x80 ? 1 : bc_utf8_bytes(head + i, bytes - i);
		controls += n == 0 || is_control(head[i]);
		n += n == 0;
	}
	/* A short text may have one, but a binary record of few bytes has more. */
	return bytes != 0 &&
	       (controls <= bytes / BYTES_PER_CONTROL || (controls == 1 && bytes >= 16));
}

/* Finds out if a list of numbers is hexadecimal addresses: if one has a digit a to f or starts with
 * 0x. Otherwise, if they are few, not all of one digit, and nearly all are multiples of 4 but not
 * all end in 0: of decimal numbers, fewer than half are multiples of 4, or all are round. */
#define ADDRESS_LEAST 0x10u

struct hex_check {
	struct distinct distinct;
	uint64_t numbers;
	uint64_t odd; /* numbers that are not multiples of 4 */
	uint64_t highest;
	bool has_letter;
	bool has_unround; /* a number whose last digit is not 0 */
};

/* `text`: how the number is written. */
static void check_hex(struct hex_check *c, uint64_t number, const char *text)
{
	c->has_letter |= text[0] == '0' && (text[1] | 0x20) == 'x';
	c->has_unround |= number % 16 != 0;
	c->numbers++;
	c->odd += number % 4 != 0;
	c->highest = number > c->highest ? number : c->highest;
	for (uint64_t rest = number; rest != 0; rest >>= 4)
		c->has_letter |= (rest & 15) > 9;
	add_distinct(&c->distinct, number);
}

static bool is_hex(const struct hex_check *c)
{
	return c->has_letter || (c->distinct.used <= DISTINCT_MAX && c->odd * 8 <= c->numbers &&
					c->highest >= ADDRESS_LEAST && c->has_unround);
}

/* Result of parsing the lines, without blank ones, comments and those that the parser skips. */
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

/* True if a line has a control character: it may be a damaged line of the format. */
static bool has_control(const char *line, const char *end)
{
	while (line < end && !is_control((uint8_t)*line))
		line++;
	return line < end;
}

/* True if a line has only white space and control characters. */
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
	count->bad += (parser->is_ordered && entry->tick < count->tick) || entry->size > SIZE_MOST;
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
		if (newline - line >= BC_LINE_MAX) { /* no parser gets such lines */
			count.bad++;
			count.lines++;
			p.number++;
		} else if (parser->parse(state, &p) == BC_PARSE_BAD) {
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

/* True if nearly all lines fit the format, and most are typical of it alone. */
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

/* Adds a name to probe->err, which begins empty: "din or xdin". */
static void add_candidate(struct bc_probe *probe, const char *name)
{
	size_t used = strlen(probe->err);

	snprintf(probe->err + used, sizeof(probe->err) - used, "%s%s", used != 0 ? " or " : "",
		name);
}

/* Returns the number of text formats that fit: the last in probe->format, names in probe->err. */
static unsigned try_formats(struct bc_probe *probe, const char *text, size_t bytes, bool is_all,
	struct bc_entry *entries)
{
	unsigned fitting = 0;

	for (unsigned f = 1; f < BC_FORMATS; f++) {
		const struct bc_format_info *info = bc_format_info((enum bc_format)f);
		bool has_head = info->printer != NULL && info->printer->begins != NULL;
		if (!info->is_text || info->parser == NULL || f == BC_FORMAT_LINES ||
			f == BC_FORMAT_VCD ||
			(has_head && !info->printer->begins((const uint8_t *)text, bytes)) ||
			!fits_lines((enum bc_format)f, text, bytes, is_all, entries))
			continue;
		add_candidate(probe, bc_format_name((enum bc_format)f));
		probe->format = (enum bc_format)f;
		fitting++;
	}
	return fitting;
}

/* Lines that are tried with the named layouts. */
#define LAYOUT_LINES 256u

/* True if all lines fit, half of them have an access, and the addresses are not all equal, and
 * hexadecimal unless the layout has decimal ones. */
static bool fits_layout(struct bc_lines *lines, const char *layout, const char *text, size_t bytes,
	struct bc_entry *entries)
{
	struct bc_parse p = {.at = text, .number = 1, .entries = entries, .capacity = ENTRIES};
	struct hex_check hex = {0};
	uint64_t small = 0; /* addresses of at most two digits: they may be data */

	memset(lines, 0, sizeof(*lines));
	bc_lines_init(lines, layout, 0);
	while (p.number <= LAYOUT_LINES && p.at < text + bytes) {
		p.end = bc_line_end(p.at) + 1;
		p.count = 0;
		if (p.end - p.at > BC_LINE_MAX || bc_lines_parse(lines, &p) != BC_PARSE_DONE)
			return false;
		if (p.count != 0)
			check_hex(&hex, entries[0].addr, "");
		small += p.count != 0 && entries[0].addr <= UINT8_MAX;
	}
	return small * 2 <= hex.numbers && hex.numbers >= 2 && hex.distinct.used >= 2 &&
	       hex.numbers >= lines->skipped &&
	       (lines->has_0x || is_hex(&hex) || strstr(layout, "{addr:d}") != NULL);
}

/* The same for the named layouts. Those of a format are tried by its name. */
static unsigned try_layouts(
	struct bc_probe *probe, const char *text, size_t bytes, struct bc_entry *entries)
{
	struct bc_lines *lines = malloc(sizeof(*lines));
	const struct bc_named_layout *row = bc_named_layouts;
	unsigned fitting = 0;

	for (; lines != NULL && row->name != NULL; row++) {
		if (bc_format_by_name(row->name) != BC_FORMAT_UNKNOWN ||
			!fits_layout(lines, row->layout, text, bytes, entries))
			continue;
		add_candidate(probe, row->name);
		probe->format = BC_FORMAT_LINES;
		probe->layout = row->layout;
		fitting++;
	}
	free(lines);
	return fitting;
}

static unsigned count_commas(const char *at, const char *end)
{
	unsigned n = 0;

	while (at < end)
		n += *at++ == ',';
	return n;
}

/* True for a row of names and another row of as many cells. */
static bool is_table(const char *text, size_t bytes)
{
	const char *names_end = bc_line_end(text);
	const char *row = names_end + 1;
	unsigned n = count_commas(text, names_end);
	bool is_letter = (unsigned)((text[*text == '"'] | 0x20) - 'a') < 26;

	return is_letter && n != 0 && row < text + bytes &&
	       n == count_commas(row, bc_line_end(row));
}

static void probe_lines(struct bc_probe *probe, const char *text, size_t bytes, bool is_all,
	struct bc_entry *entries)
{
	unsigned fitting = try_formats(probe, text, bytes, is_all, entries);

	if (fitting == 0)
		fitting = try_layouts(probe, text, bytes, entries);
	if (fitting == 1)
		return;
	probe->format = BC_FORMAT_UNKNOWN;
	probe->is_lines = fitting == 0;
	probe->is_table = fitting == 0 && is_table(text, bytes);
	size_t used = strlen(probe->err);
	snprintf(probe->err + used, sizeof(probe->err) - used, "%s",
		fitting != 0 ? ": each matches the lines" : "the lines fit no known format");
}

/* Sets the only text format that fits the lines, or BC_FORMAT_UNKNOWN and probe->err. `is_all`: the
 * last line may lack its newline. */
static void probe_text(struct bc_probe *probe, const uint8_t *head, size_t bytes, bool is_all)
{
	char *text = malloc(bytes + 1 + BC_PARSE_PADDING);
	struct bc_entry *entries = calloc(ENTRIES, sizeof(*entries));

	if (bc_starts_with_bom(head, bytes)) {
		head += BC_BOM_BYTES;
		bytes -= BC_BOM_BYTES;
	}
	if (text != NULL && entries != NULL) {
		memcpy(text, head, bytes);
		memset(text + bytes, 0, 1 + BC_PARSE_PADDING);
		if (is_all && bytes != 0 && head[bytes - 1] != '\n')
			text[bytes++] = '\n';
		const char *newline = memrchr(text, '\n', bytes);
		if (newline == NULL)
			bc_message(probe->err, sizeof(probe->err), "the first line is too long");
		else
			probe_lines(probe, text, (size_t)(newline - text) + 1, is_all, entries);
	} else {
		bc_message(probe->err, sizeof(probe->err), "out of memory");
	}
	free(text);
	free(entries);
}

/* ---- detection */

/* Uncompressed bytes that are examined. */
#define PLAIN_BYTES (BC_PROBE_BYTES / 4)

/* Records are checked for values that a bus can produce. A few implausible ones are allowed.
 *
 * Such values are no proof: zeros, pictures and tables of numbers also have them. In a trace, many
 * records are accesses, of which most move bytes, and not nearly all are of one kind and address.
 * And a trace fits from its first byte only: a file of a few values fits from each value, because
 * each can stand in every place of a record. */
#define RECORDS_CHECKED     2048u
#define IMPLAUSIBLE_PER_256 8u
#define OTHERS_MOST         1024u /* more than one record in this many differs from the first */
#define SHIFTED_PER_256     32u   /* implausible records, when read from another byte on */

struct records {
	size_t n;
	size_t implausible;
	size_t moving; /* accesses that move bytes */
	size_t empty;  /* accesses that move none */
	size_t others; /* of another kind than the first */
	unsigned first;
	struct distinct distinct; /* address and kind */
};

static bool is_plausible_meta(const uint8_t meta[4])
{
	uint8_t size = meta[1];

	return (bc_reqtype_name(meta[0]) != NULL || meta[0] >= BC_REQ_INVALID) &&
	       (size <= 8 || size == 16 || size == 32) && meta[2] <= 7 && meta[3] <= 15;
}

static void count_kind(struct records *r, uint64_t addr, unsigned kind)
{
	add_distinct(&r->distinct, addr ^ (uint64_t)kind << 47);
	r->first = r->first == 0 ? kind : r->first;
	r->others += r->first != kind;
}

/* A read with invalidation may move no bytes. */
static void count_record(struct records *r, const uint8_t *in, enum bc_format format, uint64_t max)
{
	uint64_t addr;
	uint64_t time;
	const uint8_t *meta = bc_dialect_fields(in, format, &addr, &time);
	bool is_access = bc_ref_type_plain(meta[0]) >= 0 || bc_is_port_access(meta[0]);
	bool is_empty = is_access && meta[1] == 0 && meta[0] != BC_REQ_MEMREADINV;

	/* A bus is rarely idle for 4 million ticks, but deltas in the wrong byte order often are.
	 */
	if (!is_plausible_meta(meta) || addr > max || (time >= 1 << 22 && time != BC_TIME_NONE)) {
		r->implausible++;
		return;
	}
	r->moving += is_access && meta[1] != 0;
	r->empty += is_empty;
	if (!is_empty)
		count_kind(r, addr, 1u + ((unsigned)meta[0] << 8 | meta[1]));
}

/* Byte enables are a contiguous run, except in a special cycle, where a single bit is clear. */
static void count_sample(struct records *r, const uint8_t *in)
{
	unsigned cycle = in[5] >> 4;
	unsigned enabled = (uint8_t)~in[4];
	unsigned lowest = enabled & -enabled;

	if (strcmp(bc_cycle_name(cycle), "INVALID") == 0 || ((enabled + lowest) & enabled) != 0) {
		r->implausible++;
		return;
	}
	r->moving += cycle != BC_CYCLE_SPECIAL && cycle != BC_CYCLE_INT_ACK;
	count_kind(r, bc_be32(in) | (uint64_t)enabled << 32, cycle);
}

static size_t stride_of(enum bc_format format)
{
	return format == BC_FORMAT_RAW6 ? BC_SAMPLE_BYTES : bc_dialect_bytes(format);
}

static struct records count_records(
	const uint8_t *head, size_t bytes, enum bc_format format, uint64_t addr_max)
{
	size_t stride = stride_of(format);
	size_t n = bytes / stride < RECORDS_CHECKED ? bytes / stride : RECORDS_CHECKED;
	struct records r = {.n = n};

	for (size_t i = 0; i < n; i++)
		if (format == BC_FORMAT_RAW6)
			count_sample(&r, head + i * stride);
		else
			count_record(&r, head + i * stride, format, addr_max);
	return r;
}

/* How sure it is that a format's records begin here: possible values, accesses, or even a trace. */
enum certainty { POSSIBLE, PLAUSIBLE, TYPICAL };

static bool fits_records(const uint8_t *head, size_t bytes, enum bc_format format,
	uint64_t addr_max, enum certainty wanted)
{
	struct records r = count_records(head, bytes, format, addr_max);
	unsigned most = wanted == PLAUSIBLE ? SHIFTED_PER_256 : IMPLAUSIBLE_PER_256;

	if (r.n == 0 || r.implausible * 256 > r.n * most)
		return false;
	if (wanted != POSSIBLE && (r.moving * 5 < r.n || r.empty * 4 > r.moving))
		return false;
	if (wanted != TYPICAL)
		return true;
	if (r.others * OTHERS_MOST <= r.n ||
		(r.distinct.used <= DISTINCT_MAX && r.distinct.used * 4 < r.n))
		return false;
	size_t stride = stride_of(format);
	for (size_t width = 1; width < stride; width++) {
		size_t shift = stride % width == 0 ? width : stride;
		while (shift < stride &&
			fits_records(head + shift, bytes - shift, format, addr_max, PLAUSIBLE))
			shift += width;
		if (shift == stride && stride % width == 0)
			return false;
	}
	return true;
}

/* Searches for a bcp1 header anywhere in the head, because a capture may start in mid-frame. */
static bool has_bcp1_header(const uint8_t *head, size_t bytes)
{
	struct bc_bcp1_header header;

	for (size_t at = 0; at + BC_BCP1_HEADER_BYTES <= bytes; at++)
		if (head[at] == 'B' && bc_bcp1_read_header(&header, head + at))
			return true;
	return false;
}

/* True if a whole segment or chunk header starts here. */
static bool is_item(const uint8_t *in, size_t bytes, struct bc_chunk *chunk)
{
	struct bc_segment_header header;
	size_t length;

	if ((length = bc_chunk_header_bytes(in)) != 0)
		return length <= bytes && bc_chunk_header_read(chunk, in, length);
	length = bc_segment_header_bytes(in);
	return length != 0 && length <= bytes && bc_segment_header_read(&header, in, length);
}

/* Searches for a whole header anywhere in the head, because the start may be damaged. */
static bool has_segment_item(const uint8_t *head, size_t bytes)
{
	struct bc_chunk *chunk = NULL;
	bool found = false;

	for (size_t at = 0; !found && at + BC_SKIPPABLE_BYTES <= bytes; at++) {
		if ((bc_le32(head + at) & ~7u) != BC_MAGIC_SEGMENT_HEADER)
			continue;
		if (chunk == NULL)
			chunk = malloc(sizeof(*chunk));
		found = chunk != NULL && is_item(head + at, bytes - at, chunk);
	}
	free(chunk);
	return found;
}

/* True if the bytes are an empty frame and a segment header, or the start of one. */
static bool starts_as_segment(const uint8_t *head, size_t bytes)
{
	if (bytes < BC_EMPTY_FRAME_BYTES || !bc_is_empty_frame(head, bytes))
		return false;
	size_t rest = bytes - BC_EMPTY_FRAME_BYTES;
	uint8_t magic[4];
	bc_write_le32(magic, BC_MAGIC_SEGMENT_HEADER);
	return memcmp(head + BC_EMPTY_FRAME_BYTES, magic, rest < 4 ? rest : 4) == 0;
}

/* Physical addresses of 64-bit machines have up to 52 bits. So may 12-byte records that are read as
 * longer ones; therefore such addresses count only if no format fits without them. */
#define WIDE_ADDR_MAX UINT64_C(0xFFFFFFFFFFFFF)

/* Returns the number of plain formats that fit: the last in probe->format, names in probe->err. */
static unsigned count_fitting(struct bc_probe *probe, const uint8_t *head, size_t bytes,
	uint64_t addr_max, enum certainty wanted)
{
	static const enum bc_format plain[] = {
		BC_FORMAT_BYU, BC_FORMAT_BYU16, BC_FORMAT_BYU24, BC_FORMAT_BYU_BE, BC_FORMAT_RAW6};
	unsigned fitting = 0;

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		if (!fits_records(head, bytes, plain[i], addr_max, wanted))
			continue;
		probe->format = plain[i];
		add_candidate(probe, bc_format_name(plain[i]));
		fitting++;
	}
	return fitting != 0 || addr_max == WIDE_ADDR_MAX
		       ? fitting
		       : count_fitting(probe, head, bytes, WIDE_ADDR_MAX, wanted);
}

/* Checks the plain formats, and sets probe->format to the only one that fits, or probe->err.
 * Returns the number that are possible. */
static unsigned probe_plain(struct bc_probe *probe, const uint8_t *head, size_t bytes)
{
	unsigned fitting = count_fitting(probe, head, bytes, UINT32_MAX, TYPICAL);
	const char *why = ": each matches the content";

	if (fitting == 1)
		return 1;
	if (fitting == 0) {
		fitting = count_fitting(probe, head, bytes, UINT32_MAX, POSSIBLE);
		why = fitting != 0 ? " is possible, but the content is not typical"
				   : "the content fits no known format";
	}
	probe->format = BC_FORMAT_UNKNOWN;
	strcat(probe->err, why);
	return fitting;
}

/* Number of bytes before the padding: zeros, as after a crash, or the Ctrl-Z of CP/M and DOS. */
static size_t before_padding(const uint8_t *head, size_t bytes)
{
	while (bytes != 0 && (head[bytes - 1] == 0 || head[bytes - 1] == 0x1A))
		bytes--;
	return bytes;
}

/* True if the file is in a format that can only be written; sets probe->err. */
static bool is_only_written(struct bc_probe *probe, const uint8_t *head, size_t bytes)
{
	for (unsigned f = 1; f < BC_FORMATS; f++) {
		const struct bc_format_info *info = bc_format_info((enum bc_format)f);
		const struct bc_printer *printer = info->printer;
		if (info->can_read || printer == NULL || printer->begins == NULL ||
			!printer->begins(head, bytes))
			continue;
		bc_message(probe->err, sizeof(probe->err),
			"%s, which can only be written; use the trace that it was made from, or "
			"write its accesses in a format that can be read (buscap formats)",
			printer->what);
		return true;
	}
	return false;
}

/* True if the file is a value change dump; sets probe->format. */
static bool is_dump(struct bc_probe *probe, const uint8_t *head, size_t bytes)
{
	if (!bc_vcd_printer.begins(head, bytes))
		return false;
	probe->format = BC_FORMAT_VCD;
	probe->needs_layout = !bc_vcd_is_own(head, bytes);
	bc_message(probe->err, sizeof(probe->err),
		"a value change dump (vcd), whose signals must be described: "
		"-I vcd:clock=SIGNAL,addr=SIGNAL; buscap info lists them");
	return true;
}

static void probe_content(struct bc_probe *probe, const uint8_t *head, size_t bytes, bool is_all)
{
	size_t text = before_padding(head, bytes);
	unsigned fitting = 0;

	if (bc_is_elf(head, bytes)) {
		snprintf(probe->err, sizeof(probe->err), "an ELF file, not a trace");
		probe->is_foreign = true;
		return;
	}
	if (is_text_head(head, text) && (text == bytes || memchr(head, '\n', text) != NULL))
		probe_text(probe, head, text, is_all || text != bytes);
	else
		fitting = probe_plain(probe, head, bytes);
	if (probe->format == BC_FORMAT_UNKNOWN)
		probe->is_foreign = !is_dump(probe, head, bytes) &&
				    (is_only_written(probe, head, bytes) ||
					    bc_describe_foreign(probe->err, sizeof(probe->err),
						    probe->packing, head, bytes, fitting != 0));
}

static bool probe_bytes(struct bc_probe *probe, const uint8_t *head, size_t bytes, bool is_all)
{
	if (has_segment_item(head, bytes)) {
		probe->format = BC_FORMAT_SEGMENT;
		return true;
	}
	if (starts_as_segment(head, bytes)) {
		probe->format = BC_FORMAT_SEGMENT;
		/* An empty frame may precede any other frame. */
		return is_all || bytes >= BC_EMPTY_FRAME_BYTES + 4;
	}
	if (has_bcp1_header(head, bytes)) {
		probe->format = BC_FORMAT_BCP1;
		return true;
	}
	if (!is_all && bytes < PLAIN_BYTES)
		return false;
	/* The input may end within the first header, before its CRC. */
	if (bytes >= 4 && bytes < BC_BCP1_HEADER_BYTES && memcmp(head, "BCP1", 4) == 0)
		probe->format = BC_FORMAT_BCP1;
	else if (bytes == 0 && probe->packing != BC_PACKING_NONE)
		snprintf(probe->err, sizeof(probe->err),
			"no data in its %s frames: they are empty, damaged or torn",
			bc_packing_name(probe->packing));
	else if (bytes == 0)
		snprintf(probe->err, sizeof(probe->err), "empty file");
	else
		probe_content(probe, head, bytes, is_all);
	probe->is_foreign |= bytes == 0;
	return true;
}

bool bc_probe(
	struct bc_probe *probe, const uint8_t *head, size_t bytes, bool is_all, unsigned window_log)
{
	enum bc_packing packing = bc_packing_of(head, bytes);
	bool is_plain = packing == BC_PACKING_NONE || starts_as_segment(head, bytes);

	*probe = (struct bc_probe){.frames = packing == BC_PACKING_ZSTD ? packing : BC_PACKING_LZ4};
	if (is_plain)
		return probe_bytes(probe, head, bytes < PLAIN_BYTES ? bytes : PLAIN_BYTES,
			is_all && bytes <= PLAIN_BYTES);

	probe->packing = packing;
	uint8_t *inner = malloc(PLAIN_BYTES);
	ssize_t n = inner != NULL
			    ? bc_unpack_head(inner, PLAIN_BYTES, packing, head, bytes, window_log)
			    : -ENOMEM;
	bool is_over = is_all || bytes >= BC_PROBE_BYTES;
	bool is_certain = true;
	probe->is_foreign = n == -ENOBUFS;
	if (n == -ENOBUFS)
		bc_unpack_too_large(probe->err, sizeof(probe->err), packing, window_log);
	else if (n < 0)
		snprintf(probe->err, sizeof(probe->err), "out of memory");
	else
		is_certain = probe_bytes(probe, inner, (size_t)n, is_over && n < PLAIN_BYTES);
	free(inner);
	if (n < 0 || !is_certain || probe->format == BC_FORMAT_SEGMENT)
		return is_certain;
	/* The frames may belong to a segment whose start is damaged. This is examined last,
	 * because compression may also store the bytes of a whole one as they are. */
	if (has_segment_item(head, bytes))
		*probe = (struct bc_probe){.format = BC_FORMAT_SEGMENT, .frames = probe->frames};
	return true;
}
