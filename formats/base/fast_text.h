/* Writes and parses numbers in text much faster than printf() and strtoull(), for the formats.
 *
 * Each bc_write_*() writes at `out`, without a terminating zero, and returns the end of the text.
 * It may overwrite up to 16 bytes after the end. */
#ifndef BC_FORMATS_BASE_FAST_TEXT_H
#define BC_FORMATS_BASE_FAST_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/bytes.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Any bytes, without a terminating zero. */
struct bc_text {
	const char *at;
	uint32_t bytes;
};

/* Writes a string literal. memcpy() compiles to a few stores, mempcpy() to a call. */
#define BC_WRITE_LITERAL(out, literal) \
	((char *)memcpy((out), (literal), sizeof(literal) - 1) + (sizeof(literal) - 1))

static inline char *bc_write_hex8(char *out, uint8_t value)
{
	static const char digits[16] = "0123456789abcdef";

	*out++ = digits[value >> 4];
	*out++ = digits[value & 15];
	return out;
}

/* Eight digits, computed in parallel: order the bytes as in the text, spread the nibbles to one
 * byte each, add '0', and add the distance from '9' to 'a' to those above 9. */
static inline char *bc_write_hex32(char *out, uint32_t value)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t x = value >> 24 | (value >> 8 & 0xFF00) | (value << 8 & 0xFF0000) | value << 24;

	x = (x << 16 | x) & UINT64_C(0x0000FFFF0000FFFF);
	x = (x << 8 | x) & UINT64_C(0x00FF00FF00FF00FF);
	x = (x >> 4 & UINT64_C(0x000F000F000F000F)) | (x & UINT64_C(0x000F000F000F000F)) << 8;
	x += '0' * ones + ((x + 6 * ones) >> 4 & ones) * ('a' - '9' - 1);
	bc_write_le64((uint8_t *)out, x);
	return out + 8;
}

/* Sixteen digits. */
static inline char *bc_write_hex64(char *out, uint64_t value)
{
#ifdef __SSE2__
	__m128i bytes = _mm_cvtsi64_si128((int64_t)__builtin_bswap64(value));
	__m128i low = _mm_and_si128(bytes, _mm_set1_epi8(15));
	__m128i high = _mm_and_si128(_mm_srli_epi16(bytes, 4), _mm_set1_epi8(15));
	__m128i nibbles = _mm_unpacklo_epi8(high, low);
	__m128i over = _mm_and_si128(
		_mm_cmpgt_epi8(nibbles, _mm_set1_epi8(9)), _mm_set1_epi8('a' - '9' - 1));
	_mm_storeu_si128((__m128i *)(void *)out,
		_mm_add_epi8(_mm_add_epi8(nibbles, _mm_set1_epi8('0')), over));
	return out + 16;
#else
	return bc_write_hex32(bc_write_hex32(out, (uint32_t)(value >> 32)), (uint32_t)value);
#endif
}

/* Like "%llx". */
static inline char *bc_write_hex(char *out, uint64_t value)
{
	unsigned zeros = (unsigned)__builtin_clzll(value | 1) / 4;

	bc_write_hex64(out, value << zeros * 4);
	return out + (16 - zeros);
}

/* At least `digits` digits, padded with zeros. */
static inline char *bc_write_hex_padded(char *out, uint64_t value, unsigned digits)
{
	for (unsigned n = 16 - (unsigned)__builtin_clzll(value | 1) / 4; n < digits; n++)
		*out++ = '0';
	return bc_write_hex(out, value);
}

/* Splits a number below 10^8 into eight bytes of 0 .. 9, the first digit in the lowest byte. Each
 * step halves all groups of digits in parallel: 8 digits, 4, 2, 1. Multiplication and shift replace
 * the division; the result is exact for numbers this small. */
static inline uint64_t bc_decimal_digits(uint32_t value)
{
	uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
	uint64_t hundreds = fours * 10486 >> 20 & UINT64_C(0x0000007F0000007F);
	uint64_t twos = hundreds | (fours - hundreds * 100) << 16;
	uint64_t tens = twos * 103 >> 10 & UINT64_C(0x000F000F000F000F);

	return tens | (twos - tens * 10) << 8;
}

#define BC_DECIMAL_ZEROS UINT64_C(0x3030303030303030)

static inline char *bc_write_decimal_below_e8(char *out, uint32_t value)
{
	uint64_t digits = bc_decimal_digits(value);
	/* The set bit keeps the last digit of 0. */
	unsigned bits = (unsigned)__builtin_ctzll(digits | UINT64_C(1) << 56) & ~7u;

	bc_write_le64((uint8_t *)out, (digits | BC_DECIMAL_ZEROS) >> bits);
	return out + (8 - bits / 8);
}

static inline char *bc_write_decimal_all8(char *out, uint32_t value)
{
	bc_write_le64((uint8_t *)out, bc_decimal_digits(value) | BC_DECIMAL_ZEROS);
	return out + 8;
}

/* Like "%llu". */
static inline char *bc_write_decimal(char *out, uint64_t value)
{
	const uint32_t e8 = 100000000;
	uint64_t high = value / e8;

	if (value < 10) {
		*out = (char)('0' + value);
		return out + 1;
	}
	if (high == 0)
		return bc_write_decimal_below_e8(out, (uint32_t)value);
	if (high < e8) {
		out = bc_write_decimal_below_e8(out, (uint32_t)high);
	} else {
		out = bc_write_decimal_below_e8(out, (uint32_t)(high / e8));
		out = bc_write_decimal_all8(out, (uint32_t)(high % e8));
	}
	return bc_write_decimal_all8(out, (uint32_t)(value % e8));
}

/* A cache for a series of numbers that mostly differ only in their last eight digits, such as
 * record numbers and ticks: it keeps the digits before these. Initialize with zeros. */
struct bc_decimal_row {
	uint64_t base;       /* the cached digits, times 10^8 */
	char high[16];       /* the cached digits */
	uint64_t high_bytes; /* 0 if base is 0 */
};

static inline void bc_decimal_row_advance(struct bc_decimal_row *row, uint64_t value)
{
	const uint32_t e8 = 100000000;
	char high[32];

	row->base = value - value % e8;
	row->high_bytes = (uint64_t)(bc_write_decimal(high, value / e8) - high);
	if (row->base == 0)
		row->high_bytes = 0;
	memcpy(row->high, high, sizeof(row->high));
}

static inline char *bc_write_decimal_row(char *out, struct bc_decimal_row *row, uint64_t value)
{
	if (value < row->base || value - row->base >= 100000000)
		bc_decimal_row_advance(row, value);
	if (row->high_bytes == 0)
		return bc_write_decimal_below_e8(out, (uint32_t)value);
	memcpy(out, row->high, sizeof(row->high));
	return bc_write_decimal_all8(out + row->high_bytes, (uint32_t)(value - row->base));
}

/* A table for small numbers. */
#define BC_SMALL_DECIMALS 1000u

struct bc_small_decimals {
	uint32_t text[BC_SMALL_DECIMALS]; /* digits from the lowest byte; highest byte: length */
};

static inline void bc_small_decimals_init(struct bc_small_decimals *small)
{
	for (unsigned i = 0; i < BC_SMALL_DECIMALS; i++) {
		uint8_t digits[24] = {0};
		digits[3] = (uint8_t)(bc_write_decimal((char *)digits, i) - (char *)digits);
		small->text[i] = bc_le32(digits);
	}
}

static inline char *bc_write_small_decimal(
	char *out, const struct bc_small_decimals *small, uint64_t value)
{
	if (value >= BC_SMALL_DECIMALS)
		return bc_write_decimal(out, value);
	bc_write_le32((uint8_t *)out, small->text[value]);
	return out + (small->text[value] >> 24);
}

/* A cache for times of day that mostly differ in the fraction of a second. Initially zeros. */
struct bc_time_row {
	int64_t second_ns; /* the cached second */
	char text[20];     /* "2026-01-31T12:00:00."; empty: none is cached */
};

/* Caches the second of a time. In text.c. */
void bc_time_row_advance(struct bc_time_row *row, int64_t ns);

/* "2026-01-31T12:00:00.000000000Z": RFC 3339. `ns` is the time since 1970 and may be negative. */
static inline char *bc_write_time_row(char *out, struct bc_time_row *row, int64_t ns)
{
	uint64_t fraction = (uint64_t)ns - (uint64_t)row->second_ns;

	if (fraction >= 1000000000 || row->text[0] == '\0') {
		bc_time_row_advance(row, ns);
		fraction = (uint64_t)ns - (uint64_t)row->second_ns;
	}
	memcpy(out, row->text, sizeof(row->text));
	out = bc_write_decimal_all8(out + sizeof(row->text), (uint32_t)(fraction / 10));
	*out++ = (char)('0' + fraction % 10);
	*out++ = 'Z';
	return out;
}

/* Like "%lld". */
static inline char *bc_write_signed(char *out, int64_t value)
{
	if (value >= 0)
		return bc_write_decimal(out, (uint64_t)value);
	*out++ = '-';
	return bc_write_decimal(out, 0 - (uint64_t)value);
}

/* Copies the text. Returns the end of the output. */
static inline char *bc_write_text(char *out, struct bc_text text)
{
	if (text.bytes != 0)
		memcpy(out, text.at, text.bytes);
	return out + text.bytes;
}

/* ---- parsing lines of text
 *
 * No function needs the length of the line: each stops at the
 * first byte that is not a digit, and every line ends in a newline.
 *
 * Each bc_parse_*() moves *at past the number. If there is no number or it does not fit, it returns
 * false with *at at the offending byte. */

/* The value of a hex digit, lower or upper case; above 15 for any other byte. In text.c. */
extern const uint8_t bc_hex_value[256];

static inline bool bc_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static inline bool bc_is_digit(char c)
{
	return (uint8_t)(c - '0') <= 9;
}

/* True if `c` ends a word: a space or the newline. */
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
