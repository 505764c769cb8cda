/* Numbers as text, many times as fast as printf, for the printers of traces. Each writes its digits
 * at `out`, no terminating zero, and returns the place behind them; up to 16 bytes more than that
 * are overwritten with anything. */
#ifndef BC_FORMATS_BASE_FAST_FORMAT_H
#define BC_FORMATS_BASE_FAST_FORMAT_H

#include <stdint.h>

#include "formats/base/bytes.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Bytes that may be anything, without a terminating zero. */
struct bc_text {
	const char *at;
	uint32_t bytes;
};

/* A string literal, which memcpy() makes a few stores of and mempcpy() a call. */
#define BC_PUT(out, literal) \
	((char *)memcpy((out), (literal), sizeof(literal) - 1) + (sizeof(literal) - 1))

static inline char *bc_write_hex8(char *out, uint8_t value)
{
	static const char digits[16] = "0123456789abcdef";

	*out++ = digits[value >> 4];
	*out++ = digits[value & 15];
	return out;
}

/* All eight digits at once: the bytes are put in the order of the text, their nibbles spread to a
 * byte each, and those above 9 get what lies between '9' and 'a' on top. */
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

/* All sixteen digits. */
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

/* Without leading zeros, as "%llx". */
static inline char *bc_write_hex(char *out, uint64_t value)
{
	unsigned zeros = (unsigned)__builtin_clzll(value | 1) / 4;

	bc_write_hex64(out, value << zeros * 4);
	return out + (16 - zeros);
}

/* At least `digits` of them, with zeros before. */
static inline char *bc_write_hex_padded(char *out, uint64_t value, unsigned digits)
{
	for (unsigned n = 16 - (unsigned)__builtin_clzll(value | 1) / 4; n < digits; n++)
		*out++ = '0';
	return bc_write_hex(out, value);
}

/* The eight digits of a number below 10^8 as bytes of 0 to 9, the first in the lowest: halved into
 * fours, twos and ones, each time all at once. What the multiplications divide by is exact for
 * numbers so small. */
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
	/* A zero alone has a digit, too. */
	unsigned bits = (unsigned)__builtin_ctzll(digits | UINT64_C(1) << 56) & ~7u;

	bc_write_le64((uint8_t *)out, (digits | BC_DECIMAL_ZEROS) >> bits);
	return out + (8 - bits / 8);
}

static inline char *bc_write_decimal_all8(char *out, uint32_t value)
{
	bc_write_le64((uint8_t *)out, bc_decimal_digits(value) | BC_DECIMAL_ZEROS);
	return out + 8;
}

/* As "%llu". */
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

/* The same for a row of numbers that mostly differ in their last eight digits, as those of a
 * trace's records and their ticks do: what stands before these is kept. All zeros at first. */
struct bc_decimal_row {
	uint64_t base; /* of the numbers that begin with `high` */
	char high[16];
	uint64_t high_bytes; /* 0: base is 0 */
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

/* The same for small numbers, by a table. */
#define BC_SMALL_DECIMALS 1000u

struct bc_small_decimals {
	uint32_t text[BC_SMALL_DECIMALS]; /* the first digit lowest; in the highest byte how many */
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

/* As "%lld". */
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

#endif
