#include "formats/cis501.h"

#include <errno.h>
#include <stdio.h>

#include "formats/scan_block.h"
#include "formats/text.h"

struct cis501 {
	uint32_t size; /* of every load and store: what the user says of them */
};

/* What is expected in each column. */
static const char *const columns[] = {
	"nothing is expected behind column 14, the micro opcode",
	"column 1, the step, is expected: a decimal number of 32 bits",
	"column 2, the PC, is expected: a hexadecimal number of at most 64 bits",
	"column 3, the first source register, is expected: a decimal number of 32 bits",
	"column 4, the second source register, is expected: a decimal number of 32 bits",
	"column 5, the destination register, is expected: a decimal number of 32 bits",
	"column 6, the flags, is expected: R, W or -",
	"column 7, the branch, is expected: T, N or -",
	"column 8, load or store, is expected: L, S or -",
	"column 9, the immediate, is expected: a decimal number of 64 bits",
	"column 10, the memory address, is expected: a hexadecimal number of at most 64 bits",
	"column 11, the fallthrough PC, is expected: a hexadecimal number of at most 64 bits",
	"column 12, the target PC, is expected: a hexadecimal number of at most 64 bits",
	"column 13, the macro opcode, is expected",
	"column 14, the micro opcode, is expected",
};

/* The columns: each with the spaces before it, up to the space or the line's end behind it. */

static inline bool is_word_end(char c)
{
	return bc_is_space(c) || c == '\n';
}

static inline bool take_int(const char **at, int32_t *value)
{
	const char *p = bc_skip_spaces(*at);
	int64_t wide;

	*at = p;
	/* Nearly all are -1, or have one or two digits. */
	bool is_negative = *p == '-';
	unsigned digit = (uint8_t)(p[is_negative] - '0');
	if (digit <= 9) {
		unsigned next = (uint8_t)(p[is_negative + 1] - '0');
		bool has_two = next <= 9;
		unsigned sum = has_two ? digit * 10 + next : digit;
		const char *end = p + is_negative + 1 + has_two;
		if (is_word_end(*end)) {
			*value = is_negative ? -(int32_t)sum : (int32_t)sum;
			*at = end;
			return true;
		}
	}
	if (!bc_scan_signed(at, &wide) || !is_word_end(**at))
		return false;
	if (wide < INT32_MIN || wide > INT32_MAX) {
		*at = p;
		return false;
	}
	*value = (int32_t)wide;
	return true;
}

static inline bool take_immediate(const char **at, int64_t *value)
{
	*at = bc_skip_spaces(*at);
	return bc_scan_signed(at, value) && is_word_end(**at);
}

static inline bool take_hex(const char **at, uint64_t *value)
{
	*at = bc_skip_spaces(*at);
	return bc_scan_hex_block(at, value) && is_word_end(**at);
}

static inline bool take_letter(const char **at, char *letter, char one, char other)
{
	const char *p = bc_skip_spaces(*at);

	*at = p;
	*letter = *p;
	if ((*p != '-' && *p != one && *p != other) || !is_word_end(p[1]))
		return false;
	*at = p + 1;
	return true;
}

static inline bool take_word(const char **at, struct bc_text *word)
{
	const char *p = bc_skip_spaces(*at);

	*at = bc_word_end(p);
	word->at = p;
	word->bytes = (uint32_t)(*at - p);
	return word->bytes != 0;
}

/* Reads a line up to its newline. Returns 0, or the column that is malformed, with *at at the
 * offending byte; behind the last one that is 15. */
static inline unsigned scan_line(const char **at, struct bc_entry *entry)
{
	struct bc_uop *uop = &entry->uop;

	if (!take_int(at, &uop->step))
		return 1;
	if (!take_hex(at, &entry->addr))
		return 2;
	if (!take_int(at, &uop->src1))
		return 3;
	if (!take_int(at, &uop->src2))
		return 4;
	if (!take_int(at, &uop->dest))
		return 5;
	if (!take_letter(at, &uop->flags, 'R', 'W'))
		return 6;
	if (!take_letter(at, &uop->branch, 'T', 'N'))
		return 7;
	if (!take_letter(at, &uop->access, 'L', 'S'))
		return 8;
	if (!take_immediate(at, &uop->immediate))
		return 9;
	if (!take_hex(at, &uop->mem_addr))
		return 10;
	if (!take_hex(at, &uop->fallthrough))
		return 11;
	if (!take_hex(at, &uop->target))
		return 12;
	if (!take_word(at, &uop->macro))
		return 13;
	if (!take_word(at, &uop->micro))
		return 14;
	*at = bc_skip_spaces(*at);
	return **at == '\n' ? 0 : 15;
}

static void cis501_begin(void *state, const struct bc_format_options *options)
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
		const char *at = bc_skip_spaces(p->at);
		if (*at == '\n') {
			p->at = at + 1;
			continue;
		}
		bc_entry_reference(entry, 0, 0, p->number);
		entry->kind = BC_ENTRY_UOP;
		unsigned column = scan_line(&at, entry);
		if (column != 0)
			return bc_parse_bad(p, at, columns[column % 15]);
		if (cis501->size != 0 && entry->uop.access != '-') {
			entry->has = BC_HAS_SIZE;
			entry->size = cis501->size;
		}
		p->count++;
		p->at = at + 1;
	}
	return BC_PARSE_DONE;
}

const struct bc_parser bc_cis501_parser = {
	.state_bytes = sizeof(struct cis501), .begin = cis501_begin, .parse = parse_cis501};

/* As "%*llx". */
static inline char *put_hex_right(char *out, uint64_t value, unsigned width)
{
	unsigned digits = 16 - (unsigned)__builtin_clzll(value | 1) / 4;

	memset(out, ' ', 16);
	return bc_put_hex(out + (digits < width ? width - digits : 0), value);
}

/* As "%*lld", of at most 16 columns. */
static inline char *put_decimal_right(char *out, int64_t value, unsigned width)
{
	char digits[32 + 16]; /* up to 32, and room for a copy of fixed size, which is no call */
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

/* A register: nearly all fit the two columns, which are written without a loop. */
static inline char *put_register(char *out, int32_t value)
{
	if (value >= 0 && value < 100) {
		out[0] = value < 10 ? ' ' : (char)('0' + value / 10);
		out[1] = (char)('0' + value % 10);
		return out + 2;
	}
	if (value < 0 && value > -10) {
		out[0] = '-';
		out[1] = (char)('0' - value);
		return out + 2;
	}
	return put_decimal_right(out, value, 2);
}

static inline char *put_word(char *out, struct bc_text word)
{
	memcpy(out, word.at, word.bytes);
	return out + word.bytes;
}

static char *put_line(char *out, const struct bc_entry *entry)
{
	const struct bc_uop *uop = &entry->uop;

	out = uop->step >= 0 && uop->step < 10 ? (*out = (char)('0' + uop->step), out + 1)
					       : put_decimal_right(out, uop->step, 1);
	*out++ = ' ';
	out = put_hex_right(out, entry->addr, 6);
	*out++ = ' ';
	out = put_register(out, uop->src1);
	*out++ = ' ';
	out = put_register(out, uop->src2);
	*out++ = ' ';
	out = put_register(out, uop->dest);
	memcpy(out, "       ", 7);
	out[1] = uop->flags;
	out[3] = uop->branch;
	out[5] = uop->access;
	out = put_decimal_right(out + 7, uop->immediate, 9);
	*out++ = ' ';
	out = put_hex_right(out, uop->mem_addr, 12);
	*out++ = ' ';
	out = put_hex_right(out, uop->fallthrough, 12);
	*out++ = ' ';
	out = put_hex_right(out, uop->target, 12);
	memset(out, ' ', 9);
	put_word(out + 1, uop->macro);
	out += 1 + (uop->macro.bytes < 8 ? 8 : uop->macro.bytes);
	*out++ = ' ';
	out = put_word(out, uop->micro);
	*out++ = '\n';
	return out;
}

static int begin_printer(void *state, const struct bc_format_options *options)
{
	(void)state;
	(void)options;
	return 0;
}

static int print_cis501(void *state, struct bc_print *p)
{
	(void)state;
	for (; p->count != 0 && bc_print_has_room(p); p->count--, p->entries++) {
		const struct bc_uop *uop = &p->entries->uop;
		if ((uint64_t)uop->macro.bytes + uop->micro.bytes > BC_LINE_MAX) {
			snprintf(p->why, sizeof(p->why), "its opcodes don't fit a line of %u bytes",
				BC_LINE_MAX);
			return -ERANGE;
		}
		p->used = (size_t)(put_line(p->out + p->used, p->entries) - p->out);
	}
	return 0;
}

const struct bc_printer bc_cis501_printer = {.begin = begin_printer, .print = print_cis501};
