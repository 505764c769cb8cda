/* The BYU address-trace record: 12 bytes, little-endian, one bus request each.
 *
 *   offset  bytes  field
 *   0       4      addr     physical address
 *   4       1      reqtype  request type, BC_REQ_*
 *   5       1      size     bytes transferred
 *   6       1      attr     memory type; v1.1 defines the low two bits, P6 traces have 0..7
 *   7       1      proc     processor or agent id
 *   8       4      time     clock ticks since the previous request, or BC_TIME_NONE
 *
 * Source: BYU Performance Evaluation Laboratory, "BYU Address Trace Format v1.1" and its byutr.h.
 * A decompressed segment contains these records and nothing else. */
#ifndef BC_FORMATS_BUS_RECORD_H
#define BC_FORMATS_BUS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/bytes.h"
#include "formats/base/format_id.h"

#define BC_RECORD_BYTES 12

/* Pages of memory have 4 KiB. */
#define BC_PAGE_BITS  12
#define BC_PAGE_BYTES (1u << BC_PAGE_BITS)

/* A `time` without a delta: in the first record of a recording or epoch, or if it does not fit. */
#define BC_TIME_NONE 0xFFFFFFFFu

/* The request types: their names in byutr.h, and their codes. */
/* clang-format off */
#define BC_REQ_LIST(R) \
	R(FETCH, 0x00) \
	R(MEMREAD, 0x01) \
	R(MEMREADINV, 0x02) \
	R(MEMWRITE, 0x03) \
	R(IOREAD, 0x10) \
	R(IOWRITE, 0x11) \
	R(DEFERREPLY, 0x20) \
	R(INTA, 0x21) \
	R(CNTRLAGNTRES, 0x22) \
	R(BRTRACEREC, 0x23) \
	R(SHUTDOWN, 0x31) \
	R(FLUSH, 0x32) \
	R(HALT, 0x33) \
	R(SYNC, 0x34) \
	R(FLUSHACK, 0x35) \
	R(STOPCLKACK, 0x36) \
	R(SMIACK, 0x37)

enum bc_reqtype {
#define BC_REQ_ENUM(name, code) BC_REQ_##name = (code),
	BC_REQ_LIST(BC_REQ_ENUM)
#undef BC_REQ_ENUM
	/* Not in the BYU document: an invalid bus cycle that was kept; add its cycle type. */
	BC_REQ_INVALID = 0xF0,
};
/* clang-format on */

struct bc_record {
	uint32_t addr;
	uint8_t reqtype;
	uint8_t size;
	uint8_t attr;
	uint8_t proc;
	uint32_t time;
};

/* The ticks that a record adds to the tick of the one before it. */
static inline uint32_t bc_record_ticks(const uint8_t *record)
{
	uint32_t time = bc_le32(record + 8);

	return time != BC_TIME_NONE ? time : 0;
}

static inline struct bc_record bc_record_load(const uint8_t *p)
{
	return (struct bc_record){
		.addr = bc_le32(p),
		.reqtype = p[4],
		.size = p[5],
		.attr = p[6],
		.proc = p[7],
		.time = bc_le32(p + 8),
	};
}

static inline void bc_record_store(uint8_t *p, const struct bc_record *r)
{
	bc_write_le32(p, r->addr);
	p[4] = r->reqtype;
	p[5] = r->size;
	p[6] = r->attr;
	p[7] = r->proc;
	bc_write_le32(p + 8, r->time);
}

/* True if records of this type access I/O ports. */
static inline bool bc_is_port_access(unsigned reqtype)
{
	return reqtype == BC_REQ_IOREAD || reqtype == BC_REQ_IOWRITE;
}

/* The address of a record's first byte. A burst of 16 or 32 bytes transfers the requested word
 * first and wraps around, so it covers the whole aligned block. */
static inline uint64_t bc_burst_start(uint64_t addr, uint32_t size)
{
	return size == 32 || size == 16 ? addr & ~(uint64_t)(size - 1) : addr;
}

/* bc_burst_start() is at most this far below the address. */
#define BC_BURST_BELOW 31u

/* The name of a request type in byutr.h, or NULL if it has none. */
const char *bc_reqtype_name(uint8_t reqtype);

/* Maximum output of bc_record_print(), in bytes. */
#define BC_RECORD_TEXT_MAX 64

/* Writes one line in the format of BYU's b2a, with a newline and no terminating zero: addr (8 hex
 * digits), type name, size, attr (hex), proc, time (8 hex digits), separated by tabs. A type
 * without a name is printed as two hex digits. Returns the length. */
size_t bc_record_print(char out[BC_RECORD_TEXT_MAX], const struct bc_record *record);

/* The names of these columns. */
#define BC_RECORD_COLUMNS "# addr  \ttype\tsize\tattr\tproc\tdelta"

/* ---- dialects of the BYU address trace: the same record in other layouts
 *
 *   byu     12 bytes, little-endian: the original
 *   byu-be  12 bytes, big-endian fields
 *   byu16   16 bytes: u64 addr, reqtype, size, attr, proc, u32 time
 *   byu24   24 bytes, the C struct on a 64-bit host: u64 addr, reqtype, size, attr, proc, 4 bytes
 *           of padding, u64 time
 */

/* Where the dialects have their fields, each of which ends where the next begins. */
static const struct bc_dialect {
	uint8_t meta; /* after the address: type, size, attr and processor */
	uint8_t time;
	uint8_t bytes; /* of the record; 0: not a dialect */
	bool is_big;
} bc_dialects[BC_FORMATS] = {
	[BC_FORMAT_BYU] = {4, 8, 12, false},
	[BC_FORMAT_BYU_BE] = {4, 8, 12, true},
	[BC_FORMAT_BYU16] = {8, 12, 16, false},
	[BC_FORMAT_BYU24] = {8, 16, 24, false},
};

/* The length of a record in a BYU dialect; 0 for other formats. */
static inline size_t bc_dialect_bytes(enum bc_format format)
{
	return bc_dialects[format].bytes;
}

static inline uint64_t bc_dialect_load(const uint8_t *in, unsigned bytes, bool is_big)
{
	return bytes == 8 ? bc_le64(in) : is_big ? bc_be32(in) : bc_le32(in);
}

static inline void bc_dialect_store(uint8_t *out, uint64_t value, unsigned bytes, bool is_big)
{
	if (bytes == 8)
		bc_write_le64(out, value);
	else if (is_big)
		bc_write_be32(out, (uint32_t)value);
	else
		bc_write_le32(out, (uint32_t)value);
}

/* Reads address and time of one record. Returns the four bytes of its other fields. */
static inline const uint8_t *bc_dialect_fields(
	const uint8_t *in, enum bc_format format, uint64_t *addr, uint64_t *time)
{
	const struct bc_dialect *d = &bc_dialects[format];

	*addr = bc_dialect_load(in, d->meta, d->is_big);
	*time = bc_dialect_load(in + d->time, d->bytes - d->time, d->is_big);
	return in + d->meta;
}

/* Writes one record of bc_dialect_bytes(format) bytes. `meta` is reqtype, size, attr, proc. Address
 * and time must fit the dialect. Padding is 0. */
static inline void bc_dialect_write(
	uint8_t *out, enum bc_format format, uint64_t addr, const uint8_t meta[4], uint64_t time)
{
	const struct bc_dialect *d = &bc_dialects[format];

	bc_dialect_store(out, addr, d->meta, d->is_big);
	memcpy(out + d->meta, meta, 4);
	if (d->time - d->meta == 8)
		bc_write_le32(out + d->meta + 4, 0);
	bc_dialect_store(out + d->time, time, d->bytes - d->time, d->is_big);
}

/* Converts n records of a dialect to BYU records at `out` (12 n bytes). Returns the number of
 * records converted: it stops before an address or time of more than 32 bits. `out` may be `in` if
 * the format is BC_FORMAT_BYU. */
size_t bc_dialect_read(uint8_t *out, const uint8_t *in, size_t n, enum bc_format format);

#endif
