/* Fixed-width hexadecimal text, many times as fast as printf, for the printers of records and
 * samples. Each writes its digits at `out`, no terminating zero, and returns the place behind them.
 */
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

#endif
