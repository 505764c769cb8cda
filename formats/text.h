/* Numbers as text, many times as fast as printf, for the printers of traces. Each writes its digits
 * at `out`, no terminating zero, and returns the place behind them; up to 16 bytes more than that
 * are overwritten with anything. */
#ifndef BC_FORMATS_TEXT_H
#define BC_FORMATS_TEXT_H

#include <stdint.h>

#include "formats/bytes.h"

static inline char *bc_put_hex8(char *out, uint8_t value)
{
	static const char digits[16] = "0123456789abcdef";

	*out++ = digits[value >> 4];
	*out++ = digits[value & 15];
	return out;
}

/* All eight digits at once: the bytes are put in the order of the text, their nibbles spread to a
 * byte each, and those above 9 get what lies between '9' and 'a' on top. */
static inline char *bc_put_hex32(char *out, uint32_t value)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t x = value >> 24 | (value >> 8 & 0xFF00) | (value << 8 & 0xFF0000) | value << 24;

	x = (x << 16 | x) & UINT64_C(0x0000FFFF0000FFFF);
	x = (x << 8 | x) & UINT64_C(0x00FF00FF00FF00FF);
	x = (x >> 4 & UINT64_C(0x000F000F000F000F)) | (x & UINT64_C(0x000F000F000F000F)) << 8;
	x += '0' * ones + ((x + 6 * ones) >> 4 & ones) * ('a' - '9' - 1);
	bc_put_le64((uint8_t *)out, x);
	return out + 8;
}

/* All sixteen digits. */
static inline char *bc_put_hex64(char *out, uint64_t value)
{
	return bc_put_hex32(bc_put_hex32(out, (uint32_t)(value >> 32)), (uint32_t)value);
}

/* Without leading zeros, as "%llx". */
static inline char *bc_put_hex(char *out, uint64_t value)
{
	unsigned zeros = (unsigned)__builtin_clzll(value | 1) / 4;

	if (value <= UINT32_MAX) {
		bc_put_hex32(out, (uint32_t)value << (zeros - 8) * 4);
		return out + (16 - zeros);
	}
	bc_put_hex64(out, value << zeros * 4);
	return out + (16 - zeros);
}

/* As "%llu". */
static inline char *bc_put_decimal(char *out, uint64_t value)
{
	char digits[20];
	unsigned n = sizeof(digits);

	do {
		digits[--n] = (char)('0' + value % 10);
		value /= 10;
	} while (value != 0);
	memcpy(out, digits + n, sizeof(digits) - n);
	return out + (sizeof(digits) - n);
}

#endif
