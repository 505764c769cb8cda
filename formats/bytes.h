/* Loads and stores of integers in byte streams, in a stated order, at any alignment.
 *
 * Every multi-byte field of every format in this folder goes through these; no struct is ever
 * laid over bytes. Compilers turn each into one instruction. */
#ifndef BC_FORMATS_BYTES_H
#define BC_FORMATS_BYTES_H

#include <stdint.h>

static inline uint16_t bc_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t bc_le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t bc_le64(const uint8_t *p)
{
	return (uint64_t)bc_le32(p) | (uint64_t)bc_le32(p + 4) << 32;
}

static inline uint32_t bc_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static inline void bc_put_le16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void bc_put_le32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)(v >> 16);
	p[3] = (uint8_t)(v >> 24);
}

static inline void bc_put_le64(uint8_t *p, uint64_t v)
{
	bc_put_le32(p, (uint32_t)v);
	bc_put_le32(p + 4, (uint32_t)(v >> 32));
}

static inline void bc_put_be32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

#endif
