/* Writes an LZ4 block, sequence by sequence: literals, then a match. The block format is that of
 * lz4_Block_format.md in the LZ4 project. Inlined into the record encoder. */
#ifndef BC_FORMATS_SEGMENT_LZ4_BLOCK_H
#define BC_FORMATS_SEGMENT_LZ4_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "formats/base/bytes.h"

#define BC_LZ4_MATCH_MIN 4u

/* The last bytes of a block are literals. (The last match must also start 12 bytes before the end:
 * the encoder ends with a literal record.) */
#define BC_LZ4_LAST_LITERALS 5u

#define BC_LZ4_OFFSET_MAX 65535u

/* Short literals are copied in one step of this length, whatever theirs is: as many bytes must be
 * readable from their start on, and there must be as much room in the output. */
#define BC_LZ4_COPY 16u

struct bc_lz4_block {
	uint8_t *out;            /* the next byte */
	const uint8_t *out_end;  /* of the room */
	const uint8_t *safe_end; /* literals that end here leave room for everything else */
	const uint8_t *literals; /* the next byte of input to be written */
};

/* Starts a block of the input in .. in + bytes. */
static inline void bc_lz4_start(
	struct bc_lz4_block *b, uint8_t *out, size_t room, const uint8_t *in, size_t bytes)
{
	/* The lengths of all literals and matches, a token and an offset, and a copy's excess. */
	size_t reserve = bytes / 255 + 8 + BC_LZ4_COPY;

	b->out = out;
	b->out_end = out + room;
	b->safe_end = room > reserve ? b->out_end - reserve : out;
	b->literals = in;
}

/* Writes what does not fit into a length's four bits in the token. */
static inline uint8_t *bc_lz4_write_length(uint8_t *out, size_t rest)
{
	for (; rest >= 255; rest -= 255)
		*out++ = 255;
	*out++ = (uint8_t)rest;
	return out;
}

/* Writes the input up to `match` as literals, then a match of `length` bytes at `offset`. Returns
 * false, and writes nothing, if there may not be enough room. */
static inline __attribute__((always_inline)) bool bc_lz4_write_sequence(
	struct bc_lz4_block *b, const uint8_t *match, size_t length, size_t offset)
{
	size_t literals = (size_t)(match - b->literals);
	size_t rest = length - BC_LZ4_MATCH_MIN;
	uint8_t *out = b->out;

	if (__builtin_expect((ptrdiff_t)literals > b->safe_end - out, 0))
		return false;
	uint8_t *token = out++;
	if (__builtin_expect(literals < 15, 1)) {
		*token = (uint8_t)(literals << 4);
		memcpy(out, b->literals, BC_LZ4_COPY);
	} else {
		*token = 15 << 4;
		out = bc_lz4_write_length(out, literals - 15);
		memcpy(out, b->literals, literals);
	}
	out += literals;
	bc_write_le16(out, (uint16_t)offset);
	out += 2;
	if (__builtin_expect(rest < 15, 1)) {
		*token |= (uint8_t)rest;
	} else {
		*token |= 15;
		out = bc_lz4_write_length(out, rest - 15);
	}
	b->out = out;
	b->literals = match + length;
	return true;
}

/* Ends the block: writes the input up to `end` as literals. Returns false if there is no room. */
static inline bool bc_lz4_write_last(struct bc_lz4_block *b, const uint8_t *end)
{
	size_t literals = (size_t)(end - b->literals);
	size_t length_bytes = literals < 15 ? 0 : (literals - 15) / 255 + 1;

	if ((size_t)(b->out_end - b->out) < 1 + length_bytes + literals)
		return false;
	uint8_t *token = b->out++;
	*token = (uint8_t)((literals < 15 ? literals : 15) << 4);
	if (literals >= 15)
		b->out = bc_lz4_write_length(b->out, literals - 15);
	memcpy(b->out, b->literals, literals);
	b->out += literals;
	b->literals = end;
	return true;
}

#endif
