/* CIS501: one x86 micro-op per line, in fourteen columns separated by white space.
 *
 *   1 step      number of the micro-op in its macro-op, from 1
 *   2 PC        hexadecimal
 *   3 src1  4 src2  5 dest     registers, -1: none
 *   6 flags     R, W or -      condition codes read, written
 *   7 branch    T, N or -      taken, not taken
 *   8 access    L, S or -      load, store
 *   9 immediate decimal, signed, 64 bits
 *  10 memory address  11 fallthrough PC  12 target PC     hexadecimal
 *  13 macro opcode  14 micro opcode
 *
 * The printer aligns the columns like the traces of the course. The parser skips blank lines. A cut
 * trace may start in the middle of a macro-op. Source: University of Pennsylvania, CIS 501,
 * "Instruction Trace Format", 2011. */
#include "formats/codec/codecs.h"

#include "formats/base/fast_text.h"
#include "formats/codec/block_parse.h"

struct cis501 {
	uint32_t size; /* of every load and store, from the option */
};

enum column_kind { STEP, HEX, LETTER, NUMBER, WORD };

#define AT(member) offsetof(struct bc_entry, member)

static const struct column {
	enum column_kind kind;
	size_t at; /* member of the entry */
	const char *expected;
	const char letters[3];
} columns[] = {
	{STEP, AT(uop.step), "expected column 1, the step: a decimal number of 32 bits", ""},
	{HEX, AT(addr), "expected column 2, the PC: a hexadecimal number of at most 64 bits", ""},
	{STEP, AT(uop.src1),
		"expected column 3, the first source register: a decimal number of 32 bits", ""},
	{STEP, AT(uop.src2),
		"expected column 4, the second source register: a decimal number of 32 bits", ""},
	{STEP, AT(uop.dest),
		"expected column 5, the destination register: a decimal number of 32 bits", ""},
	{LETTER, AT(uop.flags), "expected column 6, the flags: R, W or -", "RW-"},
	{LETTER, AT(uop.branch), "expected column 7, the branch: T, N or -", "TN-"},
	{LETTER, AT(uop.access), "expected column 8, load or store: L, S or -", "LS-"},
	{NUMBER, AT(uop.immediate), "expected column 9, the immediate: a decimal number of 64 bits",
		""},
	{HEX, AT(uop.mem_addr),
		"expected column 10, the memory address: a hexadecimal number of at most 64 bits",
		""},
	{HEX, AT(uop.fallthrough),
		"expected column 11, the fallthrough PC: a hexadecimal number of at most 64 bits",
		""},
	{HEX, AT(uop.target),
		"expected column 12, the target PC: a hexadecimal number of at most 64 bits", ""},
	{WORD, AT(uop.macro), "expected column 13, the macro opcode", ""},
	{WORD, AT(uop.micro), "expected column 14, the micro opcode", ""},
};

#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* Parses a column after leading spaces. On failure, *at is at the offending byte. */
static bool parse_column(const char **at, const struct column *c, struct bc_entry *entry)
{
	const char *first = bc_skip_spaces(*at);
	void *to = (char *)entry + c->at;
	int64_t number = 0;

	*at = first;
	switch (c->kind) {
	case HEX:
		return bc_parse_hex_block(at, to) && bc_is_token_end(**at);
	case LETTER:
		*(char *)to = *first;
		*at += memchr(c->letters, *first, 3) != NULL && bc_is_token_end(first[1]);
		return *at != first;
	case WORD:
		*at = bc_token_end(first);
		*(struct bc_text *)to = (struct bc_text){first, (uint32_t)(*at - first)};
		return *at != first;
	default:
		break;
	}
	if (!bc_parse_signed(at, &number) || !bc_is_token_end(**at))
		return false;
	if (c->kind == NUMBER) {
		*(int64_t *)to = number;
		return true;
	}
	*(int32_t *)to = (int32_t)number;
	if (number == (int32_t)number)
		return true;
	*at = first;
	return false;
}

/* Parses a line up to its newline. Returns NULL, or what is expected at *at. */
static const char *parse_line(const char **at, struct bc_entry *entry)
{
	for (size_t i = 0; i < COLUMNS; i++)
		if (!parse_column(at, &columns[i], entry))
			return columns[i].expected;
	*at = bc_skip_spaces(*at);
	return **at == '\n' ? NULL : "expected nothing after column 14, the micro opcode";
}

/* Fast path, for nearly all lines: at most 128 bytes, only spaces between columns, short numbers,
 * and nothing after the last column. */

/* Finds where columns start and end. Returns the line's length, or 0 if it needs the slow path. */
static inline unsigned find_columns(const char *at, uint8_t bounds[2 * COLUMNS])
{
	uint64_t blanks = bc_blanks64(at);
	uint64_t more_blanks = bc_blanks64(at + 64);
	uint64_t bits = blanks ^ (blanks << 1 | 1);
	uint64_t more_bits = more_blanks ^ (more_blanks << 1 | blanks >> 63);
	uint64_t controls = bc_controls64(at);
	uint64_t more_controls = bc_controls64(at + 64);
	unsigned n = 0;

	if ((controls | more_controls) == 0)
		return 0;
	unsigned end = controls != 0 ? (unsigned)__builtin_ctzll(controls)
				     : 64 + (unsigned)__builtin_ctzll(more_controls);
	for (; bits != 0 && n < 2 * COLUMNS; bits &= bits - 1)
		bounds[n++] = (uint8_t)__builtin_ctzll(bits);
	for (; more_bits != 0 && n < 2 * COLUMNS; more_bits &= more_bits - 1)
		bounds[n++] = (uint8_t)(64 + __builtin_ctzll(more_bits));
	return n == 2 * COLUMNS && bounds[n - 1] == end && at[end] == '\n' ? end : 0;
}

/* Tens digit of a two-character register column, as ten times the digit plus 1. A minus or blank
 * gives 1. 0 marks any other character. */
static const uint8_t tens[256] = {[' '] = 1,
	['-'] = 1,
	['0'] = 1,
	['1'] = 11,
	['2'] = 21,
	['3'] = 31,
	['4'] = 41,
	['5'] = 51,
	['6'] = 61,
	['7'] = 71,
	['8'] = 81,
	['9'] = 91};

/* Bit mask of the letter columns (6, 7 and 8) in which a letter may appear. */
static const uint8_t letters[256] = {
	['-'] = 7, ['R'] = 1, ['W'] = 1, ['T'] = 2, ['N'] = 2, ['L'] = 4, ['S'] = 4};

/* Fast parsers of single columns. They return 0, or nonzero if the column needs the slow path. */

static inline unsigned plain_hex(const char *at, const uint8_t *bounds, uint64_t *value)
{
	return bc_hex16(at + bounds[0], value) ^ (unsigned)(bounds[1] - bounds[0]);
}

static inline unsigned plain_register(const char *at, const uint8_t *bounds, int32_t *value)
{
	unsigned one = (uint8_t)(at[bounds[1] - 1] - '0');
	uint8_t before = (uint8_t)at[bounds[1] - 2];
	int32_t sign = -(before == '-');

	*value = ((int32_t)(tens[before] - 1u + one) ^ sign) - sign;
	return (one > 9) | (tens[before] == 0) | (bounds[1] - bounds[0] > 2);
}

static inline unsigned plain_letter(
	const char *at, const uint8_t *bounds, unsigned column, char *letter)
{
	*letter = at[bounds[0]];
	return ((letters[(uint8_t)*letter] & column) == 0) | (bounds[1] - bounds[0] != 1);
}

static inline unsigned plain_immediate(const char *at, const uint8_t *bounds, int64_t *value)
{
	int64_t sign = -(int64_t)(at[bounds[0]] == '-');
	unsigned digits = (unsigned)(bounds[1] - bounds[0] + sign);
	uint32_t magnitude;

	if (digits - 1 > 7)
		return 1;
	bool ok = bc_decimal8_before(at + bounds[1], digits, &magnitude);
	*value = ((int64_t)magnitude ^ sign) - sign;
	return !ok;
}

static inline struct bc_text plain_word(const char *at, const uint8_t *bounds)
{
	return (struct bc_text){.at = at + bounds[0], .bytes = (uint32_t)(bounds[1] - bounds[0])};
}

/* Returns the position after the line, or NULL if it needs the slow path. */
static inline const char *parse_line_fast(const char *at, struct bc_entry *entry)
{
	struct bc_uop *uop = &entry->uop;
	uint8_t b[2 * COLUMNS];
	unsigned end = find_columns(at, b);

	if (end == 0)
		return NULL;
	uop->step = at[b[0]] - '0';
	unsigned odd = ((unsigned)uop->step > 9) | (b[1] - b[0] != 1);
	odd |= plain_hex(at, b + 2, &entry->addr);
	odd |= plain_register(at, b + 4, &uop->src1);
	odd |= plain_register(at, b + 6, &uop->src2);
	odd |= plain_register(at, b + 8, &uop->dest);
	odd |= plain_letter(at, b + 10, 1, &uop->flags);
	odd |= plain_letter(at, b + 12, 2, &uop->branch);
	odd |= plain_letter(at, b + 14, 4, &uop->access);
	odd |= plain_immediate(at, b + 16, &uop->immediate);
	odd |= plain_hex(at, b + 18, &uop->mem_addr);
	odd |= plain_hex(at, b + 20, &uop->fallthrough);
	odd |= plain_hex(at, b + 22, &uop->target);
	uop->macro = plain_word(at, b + 24);
	uop->micro = plain_word(at, b + 26);
	return odd == 0 ? at + end + 1 : NULL;
}

static void cis501_init(void *state, const struct bc_format_options *options)
{
	struct cis501 *cis501 = state;

	cis501->size = options->size;
}

static enum bc_parse_end parse_cis501(void *state, struct bc_parse *p)
{
	const struct cis501 *cis501 = state;

	for (; p->at < p->end; p->number++) {
		if (!bc_parse_has_room(p))
			return BC_PARSE_FULL;
		struct bc_entry *entry = &p->entries[p->count];
		bc_entry_reference(entry, 0, 0, p->number);
		entry->kind = BC_ENTRY_UOP;
		const char *next = parse_line_fast(p->at, entry);
		if (next == NULL) {
			const char *at = bc_skip_spaces(p->at);
			if (*at == '\n') {
				p->at = at + 1;
				continue;
			}
			const char *expected = parse_line(&at, entry);
			if (expected != NULL)
				return bc_parse_bad(p, at, expected);
			next = at + 1;
		}
		if (cis501->size != 0 && entry->uop.access != '-') {
			entry->traits = BC_TRAIT_SIZE;
			entry->size = cis501->size;
		}
		p->count++;
		p->at = next;
	}
	return BC_PARSE_DONE;
}

const struct bc_parser bc_cis501_parser = {
	.state_bytes = sizeof(struct cis501), .init = cis501_init, .parse = parse_cis501};

/* Like "%*llx". */
static inline char *write_hex_right(char *out, uint64_t value, unsigned width)
{
	unsigned digits = 16 - (unsigned)__builtin_clzll(value | 1) / 4;

	memset(out, ' ', 16);
	return bc_write_hex(out + (digits < width ? width - digits : 0), value);
}

/* Like "%*lld", for a width of at most 16. */
static inline char *write_decimal_right(char *out, int64_t value, unsigned width)
{
	char digits[32 + 16]; /* 32 digits, plus capacity to copy a fixed size without a call */
	unsigned at = 32;
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	memset(digits, ' ', sizeof(digits));
	do {
		digits[--at] = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest != 0);
	if (value < 0)
		digits[--at] = '-';
	if (at > 32 - width)
		at = 32 - width;
	memcpy(out, digits + at, 16);
	if (at < 16)
		memcpy(out + 16, digits + at + 16, 16 - at);
	return out + (32 - at);
}

/* Writes a register. Nearly all fit in two columns, which need no loop. */
static inline char *write_register(char *out, int32_t value)
{
	if (value >= 0 && value < 100) {
		out[0] = (char)('0' + value / 10);
		if (value < 10)
			out[0] = ' ';
		out[1] = (char)('0' + value % 10);
		return out + 2;
	}
	if (value < 0 && value > -10) {
		out[0] = '-';
		out[1] = (char)('0' - (int)value);
		return out + 2;
	}
	return write_decimal_right(out, value, 2);
}

static char *write_line(char *out, const struct bc_entry *entry)
{
	const struct bc_uop *uop = &entry->uop;

	out = uop->step >= 0 && uop->step < 10 ? (*out = (char)('0' + uop->step), out + 1)
					       : write_decimal_right(out, uop->step, 1);
	*out++ = ' ';
	out = write_hex_right(out, entry->addr, 6);
	*out++ = ' ';
	out = write_register(out, uop->src1);
	*out++ = ' ';
	out = write_register(out, uop->src2);
	*out++ = ' ';
	out = write_register(out, uop->dest);
	memcpy(out, "       ", 7);
	out[1] = uop->flags;
	out[3] = uop->branch;
	out[5] = uop->access;
	out = write_decimal_right(out + 7, uop->immediate, 9);
	*out++ = ' ';
	out = write_hex_right(out, uop->mem_addr, 12);
	*out++ = ' ';
	out = write_hex_right(out, uop->fallthrough, 12);
	*out++ = ' ';
	out = write_hex_right(out, uop->target, 12);
	memset(out, ' ', 9);
	bc_write_text(out + 1, uop->macro);
	out += 1 + (uop->macro.bytes < 8 ? 8 : uop->macro.bytes);
	*out++ = ' ';
	out = bc_write_text(out, uop->micro);
	*out++ = '\n';
	return out;
}

static int print_cis501(void *state, struct bc_print *p)
{
	(void)state;
	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++)
		p->used = (size_t)(write_line(p->out + p->used, p->entries) - p->out);
	return 0;
}

const struct bc_printer bc_cis501_printer = {.print = print_cis501};
