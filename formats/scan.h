/* Numbers out of lines, fast: no function here needs to know where the line ends, for all stop at
 * what is no digit, and a line has a newline.
 *
 * Each moves *at behind what it took and returns false, with *at at the offending byte, when there
 * is no number or it doesn't fit. */
#ifndef BC_FORMATS_SCAN_H
#define BC_FORMATS_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/bytes.h"

/* The value of a hex digit of either case; above 15 for anything else. */
extern const uint8_t bc_hex_value[256];

static inline bool bc_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static inline const char *bc_skip_spaces(const char *at)
{
	while (bc_is_space(*at))
		at++;
	return at;
}

/* Hexadecimal, at least one digit, at most 64 bits; leading zeros don't count. */
static inline bool bc_scan_hex(const char **at, uint64_t *value)
{
	const char *p = *at;
	uint64_t sum = 0;
	uint8_t digit = bc_hex_value[(uint8_t)*p];

	if (digit > 15)
		return false;
	do {
		if (sum >> 60 != 0) {
			*at = p;
			return false;
		}
		sum = sum << 4 | digit;
		digit = bc_hex_value[(uint8_t) * ++p];
	} while (digit <= 15);
	*at = p;
	*value = sum;
	return true;
}

/* Up to eight hex digits at once. Returns their number; at least 8 bytes must be there to read. The
 * digits are told from all else by adding what carries them, and only them, over each byte's top
 * bit; then they are moved up so that they end with the last byte, and joined by pairs. */
static inline unsigned bc_scan_hex8(const char *at, uint32_t *value)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t x = bc_le64((const uint8_t *)at);
	uint64_t low = x & 0x7F * ones;
	uint64_t small = low | 0x20 * ones;
	uint64_t is_digit = (low + 0x50 * ones) & ~(low + 0x46 * ones);
	uint64_t is_letter = (small + 0x1F * ones) & ~(small + 0x19 * ones);
	uint64_t is_other = ~((is_digit | is_letter) & ~x) & 0x80 * ones;
	unsigned n = is_other != 0 ? (unsigned)__builtin_ctzll(is_other) / 8 : 8;

	x = (x & 0x0F * ones) + (x >> 6 & ones) * 9;
	x = n != 0 ? x << (8 - n) * 8 : 0;
	x = (x << 4 | x >> 8) & UINT64_C(0x00FF00FF00FF00FF);
	x = (x << 8 | x >> 16) & UINT64_C(0x0000FFFF0000FFFF);
	*value = (uint32_t)(x << 16 | x >> 32);
	return n;
}

/* As bc_scan_hex(), faster, where BC_PARSE_PADDING bytes behind the line can be read: in the block
 * that a parser is given. */
static inline bool bc_scan_hex_block(const char **at, uint64_t *value)
{
	const char *p = *at;
	uint32_t high;
	uint32_t low;
	unsigned n = bc_scan_hex8(p, &high);

	if (n < 8) {
		*at = p + n;
		*value = high;
		return n != 0;
	}
	n = bc_scan_hex8(p + 8, &low);
	if (n == 8 && bc_hex_value[(uint8_t)p[16]] <= 15)
		return bc_scan_hex(at, value); /* leading zeros, or too many */
	*at = p + 8 + n;
	*value = (uint64_t)high << n * 4 | low;
	return true;
}

/* As bc_skip_spaces(), for the runs of spaces in aligned columns, in a parser's block. */
static inline const char *bc_skip_columns(const char *at)
{
	const uint64_t spaces = UINT64_C(0x2020202020202020);
	uint64_t others;

	while ((others = bc_le64((const uint8_t *)at) ^ spaces) == 0)
		at += 8;
	at += __builtin_ctzll(others) / 8;
	return bc_is_space(*at) ? bc_skip_spaces(at) : at;
}

/* Decimal, at least one digit, at most 64 bits. */
static inline bool bc_scan_decimal(const char **at, uint64_t *value)
{
	const char *p = *at;
	uint64_t sum = 0;
	unsigned digit = (uint8_t)(*p - '0');

	if (digit > 9)
		return false;
	do {
		if (sum > UINT64_MAX / 10 || (sum == UINT64_MAX / 10 && digit > UINT64_MAX % 10)) {
			*at = p;
			return false;
		}
		sum = sum * 10 + digit;
		digit = (uint8_t)(*++p - '0');
	} while (digit <= 9);
	*at = p;
	*value = sum;
	return true;
}

/* The same with an optional '-' before it. */
static inline bool bc_scan_signed(const char **at, int64_t *value)
{
	const char *p = *at;
	bool is_negative = *p == '-';
	uint64_t magnitude;

	p += is_negative;
	bool ok = bc_scan_decimal(&p, &magnitude);
	*at = p;
	if (!ok || magnitude > (uint64_t)INT64_MAX + is_negative)
		return false;
	*value = is_negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
	return true;
}

/* The first byte behind a word. */
static inline const char *bc_word_end(const char *at)
{
	while (!bc_is_space(*at) && *at != '\n')
		at++;
	return at;
}

/* The newline that ends the line at `at`. */
static inline const char *bc_line_end(const char *at)
{
	return rawmemchr(at, '\n');
}

#endif
