/* A line of Tarmac while it is parsed: shared by formats/codec/tarmac.c and
 * formats/codec/tarmac_line.c. formats/codec/tarmac_print.c has the same limit. */
#ifndef BC_FORMATS_CODEC_TARMAC_LINE_H
#define BC_FORMATS_CODEC_TARMAC_LINE_H

#include "formats/base/fast_text.h"
#include "formats/trace/parser.h"

/* The longest supported memory access, in bytes. */
#define BC_TARMAC_ACCESS_MAX 512u

/* Result of parsing a line. */
enum bc_tarmac_result {
	BC_TARMAC_PARSED,
	BC_TARMAC_VERBATIM, /* of an unmodelled kind; kept as a line */
	BC_TARMAC_MALFORMED,
};

/* The entries made so far are in the parse's entries, after the first `count`. */
struct bc_tarmac_line {
	struct bc_parse *p;
	size_t made;
	uint32_t has; /* for each of its entries */
	uint16_t proc;
	uint8_t unit;
	uint64_t tick;
	const char *words; /* after the time and processor */
	const char *end;   /* parsed up to here, at most the newline */
	const char *bad;
	const char *expected;
	bool has_more; /* than was read */
};

#define BC_TARMAC_ADDRESS_EXPECTED "expected a hexadecimal address of at most 64 bits"

static inline enum bc_tarmac_result bc_tarmac_malformed(
	struct bc_tarmac_line *line, const char *bad, const char *expected)
{
	line->bad = bad;
	line->expected = expected;
	return BC_TARMAC_MALFORMED;
}

/* Adds an entry for the line. There is room for BC_LINE_ENTRIES. */
static inline struct bc_entry *bc_tarmac_add(
	struct bc_tarmac_line *line, unsigned kind, unsigned type, uint64_t addr)
{
	struct bc_parse *p = line->p;
	struct bc_entry *entry = &p->entries[p->count + line->made];

	bc_entry_reference(entry, type, addr, p->number);
	entry->kind = (uint8_t)kind;
	entry->has = line->has;
	entry->tick = line->tick;
	entry->unit = line->unit;
	entry->proc = line->proc;
	entry->is_continued = line->made++ != 0;
	return entry;
}

static inline struct bc_text bc_tarmac_text(const char *begin, const char *end)
{
	return (struct bc_text){.at = begin, .bytes = (uint32_t)(end - begin)};
}

/* Like bc_skip_spaces() and bc_token_end(), for the usual case: at most one space, and letters. */
static inline const char *bc_tarmac_skip(const char *at)
{
	if ((uint8_t)*at > ' ')
		return at;
	if (*at == ' ' && (uint8_t)at[1] > ' ')
		return at + 1;
	return bc_skip_spaces(at);
}

static inline const char *bc_tarmac_word_end(const char *at)
{
	for (;; at++) {
		while ((uint8_t)*at > ' ')
			at++;
		if (bc_is_token_end(*at))
			return at;
	}
}

/* Like bc_parse_decimal(). Up to 19 digits cannot overflow. */
static inline bool bc_tarmac_parse_decimal(const char **at, uint64_t *value)
{
	const char *p = *at;
	uint64_t sum = 0;

	for (unsigned digit; (digit = (uint8_t)(*p - '0')) <= 9; p++)
		sum = sum * 10 + digit;
	if (p == *at || p - *at > 19)
		return bc_parse_decimal(at, value);
	*at = p;
	*value = sum;
	return true;
}

/* Characters allowed between the digits of a number. */
static inline bool bc_tarmac_is_separator(char c)
{
	return c == '_' || c == ':';
}

static inline bool bc_tarmac_is_unknown(char c)
{
	return (c | 0x20) == 'x';
}

/* Converts eight hex digits at once; returns false if one is not a digit. Bit 6 marks letters,
 * whose value is 9 plus the low four bits. The value must be 10 to 15 for letters and 0 to 9 for
 * others, and the upper four bits must be 4 or 6 for letters and 3 for others. */
static inline bool bc_tarmac_hex8(const char *at, uint32_t *value)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t text = bc_le64((const uint8_t *)at);
	uint64_t letters = text >> 6 & ones;
	uint64_t x = (text & 0x0F * ones) + 9 * letters;
	uint64_t wrong = (((x + 6 * ones) >> 4 & ones) ^ letters) | (x >> 4 & ones);

	wrong |= (text ^ (0x30 * ones + 0x10 * letters)) & (0xF0 * ones - 0x20 * letters);
	if (wrong != 0)
		return false;
	x = (x << 4 | x >> 8) & UINT64_C(0x00FF00FF00FF00FF);
	x = (x | x >> 8) & UINT64_C(0x0000FFFF0000FFFF);
	*value = __builtin_bswap32((uint32_t)(x | x >> 16));
	return true;
}

/* Like bc_parse_hex(), but faster for numbers of eight or sixteen digits. */
static inline bool bc_tarmac_parse_hex(const char **at, uint64_t *value)
{
	const char *p = *at;
	uint32_t high;
	uint32_t low;

	if (!bc_tarmac_hex8(p, &high))
		return bc_parse_hex(at, value);
	p += 8;
	if (bc_hex_value[(uint8_t)*p] > 15) {
		*at = p;
		*value = high;
		return true;
	}
	if (!bc_tarmac_hex8(p, &low) || bc_hex_value[(uint8_t)p[8]] <= 15)
		return bc_parse_hex(at, value);
	*at = p + 8;
	*value = (uint64_t)high << 32 | low;
	return true;
}

/* Whether an address is given as the capability that was used: "(1|dc5f000000010005|80001000)",
 * tag, metadata and address. */
static inline bool bc_tarmac_is_capability(const char *at)
{
	if (*at++ != '(')
		return false;
	while (bc_hex_value[(uint8_t)*at] <= 15)
		at++;
	return *at == '|';
}

/* Parses an address. The tag and the metadata of a capability are left out. */
static inline bool bc_tarmac_parse_address(
	struct bc_tarmac_line *line, const char **at, uint64_t *addr)
{
	if (!bc_tarmac_is_capability(*at))
		return bc_tarmac_parse_hex(at, addr);
	line->has_more = true;
	for (const char *p = *at; !bc_is_token_end(*p) && *p != ')'; p++)
		*at = *p == '|' ? p + 1 : *at;
	if (!bc_tarmac_parse_hex(at, addr) || **at != ')')
		return false;
	++*at;
	return true;
}

/* Skips what may follow an address: a physical address, its security, and the address of a second
 * half. Stores the first two, if there are any. Returns false if the address does not end there. */
static inline bool bc_tarmac_parse_physical(
	const char **at, uint64_t *phys, struct bc_text *security, uint32_t *has)
{
	if (**at == ':') {
		++*at;
		if (!bc_tarmac_parse_hex(at, phys))
			return false;
		*has |= BC_HAS_PHYS;
	}
	if (**at == '_') {
		const char *first = ++*at;
		while (!bc_is_token_end(**at) && **at != ',')
			++*at;
		*security = bc_tarmac_text(first, *at);
		*has |= *at != first ? BC_HAS_SECURITY : 0;
	}
	if (**at == ',')
		*at = bc_tarmac_word_end(*at);
	return bc_is_token_end(**at);
}

/* ---- memory accesses, in tarmac_access.c
 *
 * Parses the memory access lines (M, R08 and W08, LD and ST) into references.
 *
 * Each function starts at the word for the kind. An access of more than eight bytes becomes several
 * references of eight bytes each and possibly a shorter one, from the lowest address up. If no byte
 * is known, it becomes a single reference. */

/* M, optionally a letter for the kind of bus cycle, R or W, size in bytes, attributes. */
enum bc_tarmac_result bc_tarmac_parse_m(struct bc_tarmac_line *line, const char *at);

/* R08, W04 and so on. */
enum bc_tarmac_result bc_tarmac_parse_rw(struct bc_tarmac_line *line, const char *at);

#define BC_TARMAC_NO_ACCESS UINT16_MAX

/* LD and ST lines, and continuation lines, which have an address in place of the kind. *access is
 * the type of the access on the previous line, or BC_TARMAC_NO_ACCESS, and is set to that of this
 * line. */
enum bc_tarmac_result bc_tarmac_parse_ld_st(
	struct bc_tarmac_line *line, const char *at, uint16_t *access);
enum bc_tarmac_result bc_tarmac_parse_continued(
	struct bc_tarmac_line *line, const char *at, uint16_t *access);

#endif
