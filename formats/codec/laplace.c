/* Laplace's reference traces, as binary records and as text.
 *
 *   laplace       18 bytes: type, a char; u64 timestamp; u8 length; u32 address space; u32 virtual
 *                 address. Packed; little-endian, or big-endian with endian=big.
 *   laplace-text  TYPE TIMESTAMP LENGTH SPACE ADDRESS, hexadecimal, addresses of up to 64 bits:
 *                     r 123456789abcdef0 4 9f8e7 9a8b7c6d
 *                 Blank lines are skipped.
 *
 * Types: r read, w write, f fetch; i is a fetch that keeps its letter. The specification does not
 * list the types: any other printable character is kept as a type that only its letter identifies.
 * Length 0 means unknown, in both directions. Timestamps are absolute.
 *
 * When printed, an entry without a time gets the tick after the previous reference, an entry
 * without an address space is in space 0, and an entry without a letter is r, w or f.
 *
 * Source: Scott F. Kaplan, "Laplace: Raw Trace Formats", 2002. */

/* Laplace's kernel events: text, one event per line.
 *
 *   TAG TIMESTAMP REST     F 123456789abcdef7 100 77
 *
 * The meaning of the rest depends on the tag. Only two tags are published, so the rest is kept
 * verbatim. The timestamp is hexadecimal, from the same clock as the references (above).
 *
 * The entry's letter is the first character of the tag, which must be printable. A line that would
 * be printed differently from its fields (because of extra spaces, leading zeros or capitals in the
 * timestamp) is kept in entry->line and printed from there. So every line is written as it was
 * read. Blank lines are skipped.
 *
 * Source: Scott F. Kaplan, "Laplace: Raw Trace Formats", 2002. */
#include "formats/codec/codecs.h"

#include <errno.h>
#include <inttypes.h>

#include "formats/base/fast_text.h"
#include "formats/base/text.h"
#include "formats/codec/block_parse.h"

static const char bad_type[] = "expected a type: one printable character";

#define LAPLACE_TRAITS (BC_TRAIT_TIME | BC_TRAIT_SPACE)

/* Offsets of the record's fields. */
enum { AT_TYPE = 0, AT_TIME = 1, AT_LENGTH = 9, AT_SPACE = 10, AT_ADDRESS = 14 };

/* Initializes a reference of this type. Returns false if the letter is not a type. */
static inline bool init_reference(struct bc_entry *entry, char letter, uint64_t number)
{
	unsigned type = letter == 'r'                    ? (unsigned)BC_REQ_MEMREAD
			: letter == 'w'                  ? (unsigned)BC_REQ_MEMWRITE
			: letter == 'f' || letter == 'i' ? (unsigned)BC_REQ_FETCH
							 : BC_REF_LETTER;
	bool is_named = type != BC_REF_LETTER && letter != 'i';

	if (letter <= ' ' || letter > '~')
		return false;
	bc_entry_reference(entry, type, 0, number);
	entry->traits = LAPLACE_TRAITS;
	if (!is_named) {
		entry->traits |= BC_TRAIT_LETTER;
		entry->letter = letter;
	}
	return true;
}

static inline void set_size(struct bc_entry *entry, uint32_t size)
{
	entry->size = size;
	entry->traits |= size != 0 ? BC_TRAIT_SIZE : 0;
}

struct laplace {
	bool is_big_endian;
	uint64_t tick; /* printing: of the previous reference */
};

static void laplace_init(void *state, const struct bc_format_options *options)
{
	struct laplace *laplace = state;

	laplace->is_big_endian = options->is_big_endian;
}

static inline enum bc_parse_end parse_records(struct bc_parse *p, bool is_big)
{
	for (; p->at < p->end; p->at += BC_LAPLACE_BYTES, p->number++) {
		const uint8_t *in = (const uint8_t *)p->at;
		if (!bc_parse_has_room(p))
			return BC_PARSE_FULL;
		struct bc_entry *entry = &p->entries[p->count];
		if (!init_reference(entry, *p->at, p->number))
			return bc_parse_bad(p, p->at, bad_type);
		entry->tick = is_big ? bc_be64(in + AT_TIME) : bc_le64(in + AT_TIME);
		set_size(entry, in[AT_LENGTH]);
		entry->space = is_big ? bc_be32(in + AT_SPACE) : bc_le32(in + AT_SPACE);
		entry->addr = is_big ? bc_be32(in + AT_ADDRESS) : bc_le32(in + AT_ADDRESS);
		p->count++;
	}
	return BC_PARSE_DONE;
}

static enum bc_parse_end parse_laplace(void *state, struct bc_parse *p)
{
	const struct laplace *laplace = state;

	return laplace->is_big_endian ? parse_records(p, true) : parse_records(p, false);
}

/* A record whose type is not printable is malformed. */
const struct bc_parser bc_laplace_parser = {.record_bytes = BC_LAPLACE_BYTES,
	.state_bytes = sizeof(struct laplace),
	.init = laplace_init,
	.parse = parse_laplace};

/* Reads a number after optional spaces. A space or the end of the line must follow. */
static inline bool parse_hex(const char **at, uint64_t *value, uint64_t max)
{
	const char *p = bc_skip_spaces(*at);

	*at = p;
	if (!bc_parse_hex_block(at, value) || !bc_is_token_end(**at))
		return false;
	if (*value <= max)
		return true;
	*at = p;
	return false;
}

/* The numbers after the type. */
struct laplace_line {
	uint64_t tick;
	uint64_t size;
	uint64_t space;
	uint64_t addr;
};

/* Fast path, for nearly all lines: five fields separated by single spaces, without leading zeros.
 * Returns the position after the line, or NULL. */
static inline const char *parse_line_fast(const char *at, struct laplace_line *line)
{
	uint64_t blanks = bc_blanks64(at) & ~UINT64_C(3);
	unsigned ends[4];

	for (unsigned i = 0; i < 4; i++, blanks &= blanks - 1) {
		if (blanks == 0)
			return NULL;
		ends[i] = (unsigned)__builtin_ctzll(blanks);
	}
	unsigned n = bc_hex16(at + 2, &line->tick);
	unsigned bad = (at[0] <= ' ') | (n == 0) | ((n + 2) ^ ends[0]);
	n = bc_hex16(at + ends[0] + 1, &line->size);
	bad |= (n - 1 > 7) | ((ends[0] + 1 + n) ^ ends[1]);
	n = bc_hex16(at + ends[1] + 1, &line->space);
	bad |= (n - 1 > 7) | ((ends[1] + 1 + n) ^ ends[2]);
	n = bc_hex16(at + ends[2] + 1, &line->addr);
	bad |= (n == 0) | ((ends[2] + 1 + n) ^ ends[3]);
	bad |= (unsigned)(at[1] ^ ' ') | (unsigned)(at[ends[0]] ^ ' ') |
	       (unsigned)(at[ends[1]] ^ ' ') | (unsigned)(at[ends[2]] ^ ' ') |
	       (unsigned)(at[ends[3]] ^ '\n');
	return bad == 0 ? at + ends[3] + 1 : NULL;
}

/* Slow path, for any line: parses what follows the type. */
static const char *parse_line(struct bc_parse *p, const char *at, struct laplace_line *line)
{
	const char *expected = NULL;

	if (!parse_hex(&at, &line->tick, UINT64_MAX))
		expected = "expected a timestamp: a hexadecimal number of at most 64 bits";
	else if (!parse_hex(&at, &line->size, UINT32_MAX))
		expected = "expected a length: a hexadecimal number of at most 32 bits";
	else if (!parse_hex(&at, &line->space, UINT32_MAX))
		expected = "expected an address space: a hexadecimal number of at most 32 bits";
	else if (!parse_hex(&at, &line->addr, UINT64_MAX))
		expected = "expected an address: a hexadecimal number of at most 64 bits";
	else if (*(at = bc_skip_spaces(at)) != '\n')
		expected = "expected nothing after the address";
	p->bad = at;
	p->expected = expected;
	return expected == NULL ? at + 1 : NULL;
}

static enum bc_parse_end parse_text(void *state, struct bc_parse *p)
{
	(void)state;
	for (; p->at < p->end; p->number++) {
		struct laplace_line line;

		if (!bc_parse_has_room(p))
			return BC_PARSE_FULL;
		struct bc_entry *entry = &p->entries[p->count];
		const char *at = p->at;
		const char *next = parse_line_fast(at, &line);
		if (next == NULL) {
			at = bc_skip_spaces(at);
			if (*at == '\n') {
				p->at = at + 1;
				continue;
			}
		}
		if (!init_reference(entry, *at, p->number) || !bc_is_token_end(at[1]))
			return bc_parse_bad(p, at, bad_type);
		if (next == NULL)
			next = parse_line(p, at + 1, &line);
		if (next == NULL)
			return BC_PARSE_BAD;
		entry->tick = line.tick;
		entry->space = (uint32_t)line.space;
		entry->addr = line.addr;
		set_size(entry, (uint32_t)line.size);
		p->count++;
		p->at = next;
	}
	return BC_PARSE_DONE;
}

/* Any character can be a type, but most references are of the four with a meaning. */
static bool is_typical_text(const char *line, const struct bc_entry *entry)
{
	(void)line;
	return entry->type != BC_REF_LETTER;
}

const struct bc_parser bc_laplace_text_parser = {
	.parse = parse_text, .is_typical = is_typical_text, .is_ordered = true};

static inline char letter_of(const struct bc_entry *entry)
{
	if ((entry->traits & BC_TRAIT_LETTER) != 0)
		return entry->letter;
	if (entry->type == BC_REQ_FETCH)
		return 'f';
	return entry->type == BC_REQ_MEMWRITE ? 'w' : 'r';
}

/* Sets l->tick to the reference's time, or to the next tick if it has none. */
static inline bool advance_tick(struct laplace *l, struct bc_print *p)
{
	if ((p->entries->traits & BC_TRAIT_TIME) != 0) {
		l->tick = p->entries->tick;
		return true;
	}
	if (++l->tick != 0)
		return true;
	return bc_fail(
		p->err, sizeof(p->err), "it has no time, and the next tick doesn't fit in 64 bits");
}

/* For an address above 32 bits or a size above 255 bytes. */
static int refuse_record(struct bc_print *p)
{
	const struct bc_entry *entry = p->entries;

	if (entry->addr > UINT32_MAX)
		return BC_REFUSE(p,
			"address 0x%" PRIx64 " doesn't fit in the 32 bits of a Laplace record",
			entry->addr);
	return BC_REFUSE(p,
		"size of %" PRIu32 " bytes doesn't fit in the 8 bits of a Laplace record",
		entry->size);
}

static int print_laplace(void *state, struct bc_print *p)
{
	struct laplace *l = state;
	bool is_big = l->is_big_endian;

	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		const struct bc_entry *entry = p->entries;
		uint8_t *out = (uint8_t *)p->out + p->used;
		uint32_t space = (entry->traits & BC_TRAIT_SPACE) != 0 ? entry->space : 0;
		if (entry->addr > UINT32_MAX || entry->size > UINT8_MAX)
			return refuse_record(p);
		if (!advance_tick(l, p))
			return -ERANGE;
		uint32_t addr = (uint32_t)entry->addr;
		out[AT_TYPE] = (uint8_t)letter_of(entry);
		bc_write_le64(out + AT_TIME, is_big ? __builtin_bswap64(l->tick) : l->tick);
		out[AT_LENGTH] = (uint8_t)entry->size;
		bc_write_le32(out + AT_SPACE, is_big ? __builtin_bswap32(space) : space);
		bc_write_le32(out + AT_ADDRESS, is_big ? __builtin_bswap32(addr) : addr);
		p->used += BC_LAPLACE_BYTES;
	}
	return 0;
}

const struct bc_printer bc_laplace_printer = {
	.state_bytes = sizeof(struct laplace), .init = laplace_init, .print = print_laplace};

static int print_text(void *state, struct bc_print *p)
{
	struct laplace *l = state;

	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		const struct bc_entry *entry = p->entries;
		char *out = p->out + p->used;
		if (!advance_tick(l, p))
			return -ERANGE;
		*out++ = letter_of(entry);
		*out++ = ' ';
		out = bc_write_hex(out, l->tick);
		*out++ = ' ';
		out = bc_write_hex(out, entry->size);
		*out++ = ' ';
		out = bc_write_hex(out, (entry->traits & BC_TRAIT_SPACE) != 0 ? entry->space : 0);
		*out++ = ' ';
		out = bc_write_hex(out, entry->addr);
		*out++ = '\n';
		p->used = (size_t)(out - p->out);
	}
	return 0;
}

const struct bc_printer bc_laplace_text_printer = {
	.state_bytes = sizeof(struct laplace), .init = laplace_init, .print = print_text};

/* ---- laplace events */

/* True if the printer would write [at, end) for this number. */
static bool is_canonical(const char *at, const char *end, uint64_t value)
{
	char digits[40];

	return bc_write_hex(digits, value) - digits == end - at &&
	       memcmp(digits, at, (size_t)(end - at)) == 0;
}

static enum bc_parse_end parse_events(void *state, struct bc_parse *p)
{
	(void)state;
	for (; p->at < p->end; p->number++) {
		uint64_t tick;

		if (!bc_parse_has_room(p))
			return BC_PARSE_FULL;
		const char *tag = bc_skip_spaces(p->at);
		if (*tag == '\n') {
			p->at = tag + 1;
			continue;
		}
		if (*tag <= ' ' || *tag > '~')
			return bc_parse_bad(p, tag, "expected a tag: a printable character");
		const char *tag_end = bc_token_end(tag);
		const char *time = bc_skip_spaces(tag_end);
		const char *at = time;
		if (!bc_parse_hex_block(&at, &tick) || !bc_is_token_end(*at))
			return bc_parse_bad(p, at,
				"expected a timestamp: a hexadecimal number of at most 64 bits");
		const char *newline = bc_line_end(at);
		const char *end = newline[-1] == '\r' ? newline - 1 : newline;
		const char *rest = at < end ? at + 1 : at;

		struct bc_entry *entry = &p->entries[p->count++];
		bc_entry_reference(entry, 0, 0, p->number);
		entry->kind = BC_ENTRY_KERNEL;
		entry->traits = BC_TRAIT_TIME | BC_TRAIT_LETTER;
		entry->letter = *tag;
		entry->tick = tick;
		entry->kernel.tag = (struct bc_text){.at = tag, .bytes = (uint32_t)(tag_end - tag)};
		entry->kernel.rest = (struct bc_text){
			.at = rest, .bytes = (uint32_t)(end > rest ? end - rest : 0)};
		/* True if the printer would reproduce this line from its fields. */
		bool is_same = tag == p->at && time == tag_end + 1 && *tag_end == ' ' &&
			       is_canonical(time, at, tick) && end == newline &&
			       (at == end || (*at == ' ' && rest < end));
		if (!is_same)
			entry->line = (struct bc_text){
				.at = p->at, .bytes = (uint32_t)(newline - p->at)};
		p->at = newline + 1;
	}
	return BC_PARSE_DONE;
}

/* True if the text is `numbers` hexadecimal numbers followed by `words` words. */
static bool has_layout(struct bc_text text, unsigned numbers, unsigned words)
{
	const char *at = text.at;
	const char *end = text.at + text.bytes;

	for (unsigned i = 0; i < numbers + words; i++) {
		const char *word = at = bc_skip_spaces(at);
		uint64_t value;
		if (at >= end)
			return false;
		at = bc_token_end(at);
		if (i < numbers && (!bc_parse_hex(&word, &value) || word != at))
			return false;
	}
	return bc_skip_spaces(at) >= end;
}

/* Almost any text has lines of a word, a number and more. Only lines with one of the two documented
 * tags are recognised. */
static bool is_typical_event(const char *line, const struct bc_entry *entry)
{
	const struct bc_kernel_event *event = &entry->kernel;

	(void)line;
	if (event->tag.bytes != 1)
		return false;
	return *event->tag.at == 'F'   ? has_layout(event->rest, 2, 0)
	       : *event->tag.at == 'M' ? has_layout(event->rest, 7, 1)
				       : false;
}

const struct bc_parser bc_laplace_events_parser = {
	.parse = parse_events, .is_typical = is_typical_event, .is_ordered = true};

static int print_events(void *state, struct bc_print *p)
{
	(void)state;
	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		const struct bc_entry *entry = p->entries;
		char *out = p->out + p->used;
		if (entry->line.bytes != 0) {
			out = bc_write_text(out, entry->line);
		} else {
			out = bc_write_text(out, entry->kernel.tag);
			*out++ = ' ';
			out = bc_write_hex(out, entry->tick);
			if (entry->kernel.rest.bytes != 0) {
				*out++ = ' ';
				out = bc_write_text(out, entry->kernel.rest);
			}
		}
		*out++ = '\n';
		p->used = (size_t)(out - p->out);
	}
	return 0;
}

const struct bc_printer bc_laplace_events_printer = {.print = print_events};
