/* The LZ4 frame of a chunk's records: one independent block, the content's size, no checksums of
 * LZ4's own (the chunk header has a better one). Any LZ4 program decodes it;
 * docs/segment-format.md.
 *
 * A block checksum would have to come with a content checksum: liblz4 1.9.4 asks for four bytes too
 * many behind a large block that has only the first, and its lz4 program then misses the next
 * frame.
 *
 * The block is made by bc_block_compress(): the one place to put an encoder that knows what records
 * look like. */
#ifndef BC_FORMATS_SEGMENT_FRAME_H
#define BC_FORMATS_SEGMENT_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"

/* The most bytes of a chunk's frame: a chunk that doesn't shrink is stored. */
#define BC_FRAME_OVERHEAD 23
#define BC_FRAME_MAX      (BC_CHUNK_BYTES + BC_FRAME_OVERHEAD)

/* The frame that holds nothing, with which each segment begins. */
#define BC_EMPTY_FRAME_BYTES 11
extern const uint8_t bc_empty_frame[BC_EMPTY_FRAME_BYTES];

/* Compresses `bytes` (1 .. BC_CHUNK_BYTES) at `in` to an LZ4 block at `out`, which has room for
 * bytes - 1. BC_CHUNK_PADDING bytes can be read behind the input. Returns the block's length, or 0
 * if it doesn't get smaller. Keeps no state. */
size_t bc_block_compress(uint8_t *out, const uint8_t *in, size_t bytes);

/* Writes the frame of `bytes` (0 .. BC_CHUNK_BYTES) bytes of records at `out`, room for
 * BC_FRAME_MAX. Returns its length. */
size_t bc_frame_write(uint8_t *out, const uint8_t *records, size_t bytes);

/* Decodes a frame of exactly frame_bytes that holds exactly `bytes` bytes. Returns 0, -EBADMSG if
 * it is not that, or -ENOMEM. */
int bc_frame_read(
	uint8_t *out, size_t bytes, const uint8_t *frame, size_t frame_bytes) BC_MUST_CHECK;

#endif
