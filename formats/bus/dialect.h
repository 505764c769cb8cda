/* Dialects of the BYU address trace: the same record in other layouts.
 *
 *   byu     12 bytes, little-endian: the original
 *   byu-be  12 bytes, big-endian fields
 *   byu16   16 bytes: u64 addr, reqtype, size, attr, proc, u32 time
 *   byu24   24 bytes, the C struct on a 64-bit host: u64 addr, reqtype, size, attr, proc, 4 bytes
 *           of padding, u64 time
 */
#ifndef BC_FORMATS_BUS_DIALECT_H
#define BC_FORMATS_BUS_DIALECT_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/format_id.h"
#include "formats/bus/record.h"

/* The length of a record in a BYU dialect; 0 for other formats. */
size_t bc_dialect_bytes(enum bc_format format);

/* Converts n records of a dialect to BYU records at `out` (12 n bytes). Returns the number of
 * records converted: it stops before an address or time of more than 32 bits. `out` may be `in` if
 * the format is BC_FORMAT_BYU. */
size_t bc_dialect_read(uint8_t *out, const uint8_t *in, size_t n, enum bc_format format);

/* Reads address and time of one record, for example for an error message. */
void bc_dialect_fields(const uint8_t *in, enum bc_format format, uint64_t *addr, uint64_t *time);

/* Writes one record of bc_dialect_bytes(format) bytes. `meta` is reqtype, size, attr, proc. Address
 * and time must fit the dialect. Padding is 0. */
void bc_dialect_write(
	uint8_t *out, enum bc_format format, uint64_t addr, const uint8_t meta[4], uint64_t time);

#endif
