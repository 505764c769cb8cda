/* Little-endian and big-endian integers in byte arrays, at any alignment.
 *
 * All formats read and write their fields with these functions, never by casting a struct. They use
 * memcpy(): of constant size it becomes one instruction, which shifts don't always. */
#ifndef BC_FORMATS_BASE_BYTES_H
#define BC_FORMATS_BASE_BYTES_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define BC_VARINT_MAX 10

static inline uint16_t bc_le16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return le16toh(v);
}

static inline uint32_t bc_le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

static inline uint64_t bc_le64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

static inline uint32_t bc_be32(const uint8_t *p)
{
	return __builtin_bswap32(bc_le32(p));
}

static inline uint64_t bc_be64(const uint8_t *p)
{
	return __builtin_bswap64(bc_le64(p));
}

static inline void bc_write_le16(uint8_t *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void bc_write_le32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void bc_write_le64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
}

static inline void bc_write_be32(uint8_t *p, uint32_t v)
{
	bc_write_le32(p, __builtin_bswap32(v));
}

/* Writes 7 bits per byte, the lowest first, in at most BC_VARINT_MAX bytes. Returns their end. */
static inline void *bc_write_varint(void *to, uint64_t v)
{
	uint8_t *p = to;

	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

#endif
