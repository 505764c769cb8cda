/* Parses numbers in lines of text. No function needs the length of the line: each stops at the
 * first byte that is not a digit, and every line ends in a newline.
 *
 * Each bc_parse_*() moves *at past the number. If there is no number or it does not fit, it returns
 * false with *at at the offending byte. */
#ifndef BC_FORMATS_BASE_FAST_PARSE_H
#define BC_FORMATS_BASE_FAST_PARSE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/bytes.h"

/* The value of a hex digit, lower or upper case; above 15 for any other byte. In text.c. */
extern const uint8_t bc_hex_value[256];

static inline bool bc_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Whether `c` ends a word: a space or the newline. */
static inline bool bc_is_token_end(char c)
{
	return c == '\n' || bc_is_space(c);
}

static inline const char *bc_skip_spaces(const char *at)
{
	while (bc_is_space(*at))
		at++;
	return at;
}

/* Hexadecimal, at least one digit, at most 64 bits. Any number of leading zeros. */
static inline bool bc_parse_hex(const char **at, uint64_t *value)
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

/* Decimal, at least one digit, at most 64 bits. */
static inline bool bc_parse_decimal(const char **at, uint64_t *value)
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

/* Decimal with an optional '-', at most 64 bits. */
static inline bool bc_parse_signed(const char **at, int64_t *value)
{
	const char *p = *at;
	bool is_negative = *p == '-';
	uint64_t magnitude;

	p += is_negative;
	bool ok = bc_parse_decimal(&p, &magnitude);
	*at = p;
	if (!ok || magnitude > (uint64_t)INT64_MAX + is_negative)
		return false;
	*value = is_negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
	return true;
}

/* The first byte after a word. */
static inline const char *bc_token_end(const char *at)
{
	while (!bc_is_token_end(*at))
		at++;
	return at;
}

/* The newline that ends the line at `at`. */
static inline const char *bc_line_end(const char *at)
{
	return rawmemchr(at, '\n');
}

#endif
