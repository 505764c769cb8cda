/* Opens a trace: reads its head, finds out what it is compressed with and which format it has, and
 * then reads on, decompressed, from the first byte.
 *
 * Detection knows three kinds of formats. Segments and bcp1 have checksums: one valid header
 * anywhere in the head is certain. Text formats are tried by parsing the whole lines of the head.
 * Records without marks are checked for values that a bus can produce. Of the latter two, exactly
 * one format must fit; detection never guesses. What fits nothing may be of a kind that is named in
 * the message (unpack.h).
 *
 * The head stays in `packed` until it has been read again as data. */
#include "formats/codec/input.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/bytes.h"
#include "formats/base/fast_text.h"
#include "formats/base/text.h"
#include "formats/base/utf8.h"
#include "formats/bus/bcp1.h"
#include "formats/bus/record.h"
#include "formats/bus/sample.h"
#include "formats/codec/format.h"
#include "formats/codec/unpack.h"
#include "formats/segment/segment.h"
#include "formats/segment/segment_header.h"
#include "formats/trace/parser.h"
#include "formats/trace/printer.h"

#define DISTINCT_MAX 16u

/* The numbers in a file, up to a few. */
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

/* Returns the only text format that fits the lines, or BC_FORMAT_UNKNOWN with *err set to a clause.
 * `is_all`: the last line may lack its newline. */
static enum bc_format probe_text(
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
#define OTHERS_MOST         1024u /* one record in so many is of another kind than the first */
#define SHIFTED_PER_256     32u   /* from another value */

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
	const uint8_t *meta = in + (bc_dialect_bytes(format) == BC_RECORD_BYTES ? 4 : 8);
	bool is_access = bc_ref_type_plain(meta[0]) >= 0 || bc_is_port_access(meta[0]);
	bool is_empty = is_access && meta[1] == 0 && meta[0] != BC_REQ_MEMREADINV;

	bc_dialect_fields(in, format, &addr, &time);
	/* A bus is rarely idle for 4 million ticks, but deltas in the wrong byte order are such. */
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
	if (bytes < BC_EMPTY_FRAME_BYTES || memcmp(head, bc_empty_frame, BC_EMPTY_FRAME_BYTES) != 0)
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
	size_t used = 0;

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		if (!fits_records(head, bytes, plain[i], addr_max, wanted))
			continue;
		probe->format = plain[i];
		used += (size_t)snprintf(probe->err + used, sizeof(probe->err) - used, "%s%s",
			fitting++ ? " or " : "", bc_format_name(plain[i]));
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
		const struct bc_printer *printer = bc_format_info((enum bc_format)f)->printer;
		if (printer == NULL || printer->begins == NULL || !printer->begins(head, bytes))
			continue;
		bc_message(probe->err, sizeof(probe->err),
			"%s, which can only be written; use the trace that it was made from, or "
			"write its accesses in a format that can be read (buscap formats)",
			printer->what);
		return true;
	}
	return false;
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
		probe->format = probe_text(
			head, text, is_all || text != bytes, probe->err, sizeof(probe->err));
	else
		fitting = probe_plain(probe, head, bytes);
	if (probe->format == BC_FORMAT_UNKNOWN)
		probe->is_foreign = is_only_written(probe, head, bytes) ||
				    bc_describe_foreign(probe->err, sizeof(probe->err),
					    probe->packing, head, bytes, fitting != 0);
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

	memset(probe, 0, sizeof(*probe));
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
	/* The LZ4 frames may belong to a segment whose start is damaged. This is examined last,
	 * because compression may also store the bytes of a whole one as they are. */
	if (has_segment_item(head, bytes))
		*probe = (struct bc_probe){.format = BC_FORMAT_SEGMENT};
	return true;
}

/* ---- input */

#define PACKED_BYTES (1u << 18)

/* Enough to tell what is not text. */
#define HEAD_BYTES 4096u

struct bc_input {
	struct bc_input_stream stream;
	struct bc_unpacker *unpacker; /* NULL: not compressed */
	enum bc_packing packing;
	unsigned window_log;
	uint64_t read_bytes; /* bytes read from the stream */
	size_t start;        /* packed[start, end) have not been returned yet */
	size_t end;
	uint8_t packed[PACKED_BYTES];
};

_Static_assert(PACKED_BYTES >= BC_PROBE_BYTES, "the head is kept in the buffer");

/* True if the input, decompressed if need be, can't be text; sets probe->err. Binary records may
 * begin with the same bytes. */
static bool begins_as_foreign(const struct bc_input *in, struct bc_probe *probe)
{
	uint8_t inner[HEAD_BYTES];
	const uint8_t *head = in->packed;
	ssize_t n = (ssize_t)in->end;

	if (probe->packing != BC_PACKING_NONE) {
		head = inner;
		n = bc_unpack_head(
			inner, sizeof(inner), probe->packing, in->packed, in->end, in->window_log);
	}
	return n > 0 && bc_describe_foreign(probe->err, sizeof(probe->err), probe->packing, head,
				(size_t)n, false);
}

/* Sets the probe for a format that is given. Returns 0 or -EINVAL. */
static int use_given(const struct bc_input *in, struct bc_probe *probe, enum bc_format given)
{
	bool is_segment = probe->format == BC_FORMAT_SEGMENT;

	if (bc_format_info(given)->is_text && !is_segment && begins_as_foreign(in, probe))
		return -EINVAL;
	if (is_segment && given != BC_FORMAT_SEGMENT) {
		if (probe->packing != BC_PACKING_NONE) {
			snprintf(probe->err, sizeof(probe->err),
				"a segment compressed with %s, which can only be read as a segment",
				bc_packing_name(probe->packing));
			return -EINVAL;
		}
		/* It is to be read as one of the plain formats: its decompressed bytes. */
		probe->packing = BC_PACKING_LZ4;
	} else if (!is_segment && given == BC_FORMAT_SEGMENT && probe->packing == BC_PACKING_LZ4) {
		/* No intact header was found, but its LZ4 frames. */
		probe->packing = BC_PACKING_NONE;
	}
	probe->format = given;
	return 0;
}

/* Reads until the format is known. */
static int read_head(
	struct bc_input *in, enum bc_format given, unsigned window_log, struct bc_probe *probe)
{
	for (;;) {
		size_t capacity = BC_PROBE_BYTES - in->end;
		ssize_t n = bc_input_stream_read(in->stream, in->packed + in->end, capacity);
		/* What was read before a stop is all there is. */
		bool is_stopped = n == -ECANCELED && in->end != 0;
		if (n < 0 && !is_stopped)
			return (int)n;
		n = is_stopped ? 0 : n;
		in->end += (size_t)n;
		in->read_bytes = in->end;
		bool is_known = bc_probe(probe, in->packed, in->end, n == 0, window_log);
		if (given != BC_FORMAT_UNKNOWN) {
			/* The format is given, so a few bytes show whether the input is compressed.
			 * But whether LZ4 is around a segment must be known. */
			if (n != 0 && !is_known &&
				(given == BC_FORMAT_SEGMENT ||
					!bc_packing_is_certain(in->packed, in->end)))
				continue;
			return use_given(in, probe, given);
		}
		if (is_known)
			return probe->format != BC_FORMAT_UNKNOWN ? 0
			       : is_stopped                       ? -ECANCELED
								  : -EINVAL;
	}
}

/* True if the stream is a regular file that ends like a sealed segment. */
static bool ends_as_segment(int fd)
{
	uint8_t trailer[BC_TRAILER_BYTES];
	uint64_t index_offset;
	uint64_t file_bytes;
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= BC_TRAILER_BYTES &&
	       pread(fd, trailer, sizeof(trailer), st.st_size - BC_TRAILER_BYTES) ==
		       (ssize_t)sizeof(trailer) &&
	       bc_trailer_read(&index_offset, &file_bytes, trailer);
}

int bc_input_open(struct bc_input **input, struct bc_input_stream stream, enum bc_format given,
	unsigned window_log, struct bc_probe *probe)
{
	struct bc_input *in = malloc(sizeof(*in));

	memset(probe, 0, sizeof(*probe));
	if (in == NULL)
		return -ENOMEM;
	memset(in, 0, offsetof(struct bc_input, packed));
	in->stream = stream;
	in->window_log = window_log;
	int rc = read_head(in, given, window_log, probe);
	if (rc == -EINVAL && given == BC_FORMAT_UNKNOWN && ends_as_segment(stream.fd)) {
		memset(probe, 0, sizeof(*probe));
		probe->format = BC_FORMAT_SEGMENT;
		rc = 0;
	}
	if (rc == 0 && probe->packing != BC_PACKING_NONE) {
		in->packing = probe->packing;
		in->unpacker = bc_unpack_open(in->packing, window_log);
		rc = in->unpacker != NULL ? 0 : -ENOMEM;
	}
	if (rc != 0) {
		bc_input_close(in);
		return rc;
	}
	*input = in;
	return 0;
}

void bc_input_close(struct bc_input *in)
{
	if (in == NULL)
		return;
	bc_unpack_close(in->unpacker);
	free(in);
}

static ssize_t read_stream(struct bc_input *in, uint8_t *out, size_t capacity)
{
	ssize_t n = bc_input_stream_read(in->stream, out, capacity);

	in->read_bytes += n > 0 ? (uint64_t)n : 0;
	return n;
}

static ssize_t read_packed(struct bc_input *in, uint8_t *out, size_t capacity)
{
	size_t consumed;

	for (;;) {
		/* First, what the decoder still holds. */
		ssize_t n = bc_unpack(in->unpacker, out, capacity, NULL, 0, &consumed);
		if (n != 0)
			return n;
		if (in->start == in->end) {
			n = read_stream(in, in->packed, PACKED_BYTES);
			if (n < 0)
				return n;
			in->start = 0;
			in->end = (size_t)n;
			if (n == 0)
				return bc_unpack_may_end(in->unpacker) ? 0 : -EBADMSG;
		}
		n = bc_unpack(in->unpacker, out, capacity, in->packed + in->start,
			in->end - in->start, &consumed);
		in->start += consumed;
		if (n != 0)
			return n;
	}
}

ssize_t bc_input_read(struct bc_input *in, uint8_t *out, size_t capacity)
{
	if (in->unpacker != NULL)
		return read_packed(in, out, capacity);
	if (in->start == in->end)
		return read_stream(in, out, capacity);
	size_t n = in->end - in->start < capacity ? in->end - in->start : capacity;
	memcpy(out, in->packed + in->start, n);
	in->start += n;
	return (ssize_t)n;
}

/* Parses the header of a segment that starts here. Returns false if it is invalid or not whole. */
static bool read_header(struct bc_segment_header *header, const uint8_t *head, size_t bytes)
{
	if (bytes < BC_EMPTY_FRAME_BYTES + BC_SKIPPABLE_BYTES)
		return false;
	head += BC_EMPTY_FRAME_BYTES;
	bytes -= BC_EMPTY_FRAME_BYTES;
	size_t length = bc_segment_header_bytes(head);
	return length != 0 && length <= bytes && bc_segment_header_read(header, head, length);
}

bool bc_input_segment_header(const struct bc_input *in, struct bc_segment_header *header)
{
	const uint8_t *head = in->packed + in->start;
	size_t bytes = in->end - in->start;

	if (in->unpacker == NULL)
		return read_header(header, head, bytes);
	size_t capacity = BC_EMPTY_FRAME_BYTES + BC_SEGMENT_HEADER_MAX;
	uint8_t *plain = malloc(capacity);
	ssize_t n = plain != NULL ? bc_unpack_head(plain, capacity, in->packing, head, bytes,
					    in->window_log)
				  : 0;
	bool is_whole = n > 0 && read_header(header, plain, (size_t)n);
	free(plain);
	return is_whole;
}

uint64_t bc_input_position(const struct bc_input *in)
{
	return in->read_bytes - (in->end - in->start);
}

static ssize_t read_unpacked(void *context, void *out, size_t capacity)
{
	return bc_input_read(context, out, capacity);
}

struct bc_input_stream bc_input_stream(struct bc_input *in)
{
	struct bc_input_stream stream = in->stream;

	stream.read = read_unpacked;
	stream.context = in;
	return stream;
}

/* The LZ4 frames of a segment belong to its format; compression around it is undone first. */
int bc_input_segments(struct bc_input *in, struct bc_segment_reader **reader)
{
	if (in->unpacker != NULL)
		return bc_segment_reader_open(reader, bc_input_stream(in), NULL, 0);
	return bc_segment_reader_open(
		reader, in->stream, in->packed + in->start, in->end - in->start);
}
