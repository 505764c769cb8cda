/* The dialects of the BYU address trace that are about: the same record in other layouts.
 *
 *   byu     12 bytes, little-endian: the format itself
 *   byu-be  12 bytes, its fields big-endian
 *   byu16   16 bytes: u64 addr, reqtype, size, attr, proc, u32 time
 *   byu24   24 bytes, the C struct on a 64-bit host: u64 addr, reqtype, size, attr, proc, 4 of
 *           padding, u64 time
 */
#ifndef BC_FORMATS_BUS_DIALECT_H
#define BC_FORMATS_BUS_DIALECT_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/format_id.h"
#include "formats/bus/record.h"

/* Bytes of one record of a BYU dialect; 0 for other formats. */
size_t bc_dialect_bytes(enum bc_format format);

/* Turns n records of a dialect into BYU records at `out`, room for n of 12 bytes. Returns how many
 * were turned: fewer than n when the next has an address or a time of more than 32 bits. `out` may
 * be `in` when the format is BC_FORMAT_BYU. */
size_t bc_dialect_read(uint8_t *out, const uint8_t *in, size_t n, enum bc_format format);

/* Address and time of one record as they stand, for the message that names it. */
void bc_dialect_fields(const uint8_t *in, enum bc_format format, uint64_t *addr, uint64_t *time);

/* Writes one record at `out`, bc_dialect_bytes(format) of them; `meta` is reqtype, size, attr,
 * proc. Address and time must fit the dialect. Padding is 0. */
void bc_dialect_write(
	uint8_t *out, enum bc_format format, uint64_t addr, const uint8_t meta[4], uint64_t time);

#endif
