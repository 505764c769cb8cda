/* The frames that segments consist of: LZ4 frames with data, skippable frames with everything else,
 * and XXH3-64 checksums. docs/segment-format.md specifies them.
 *
 * A data frame has one independent block and the content size, but no LZ4 checksums, because the
 * chunk header has a better one. Any LZ4 program can decode it. Block checksums would require a
 * content checksum, too: without it, lz4 1.9.4 reads four bytes too many after a large block and
 * misses the next frame. */
#ifndef BC_FORMATS_SEGMENT_FRAME_H
#define BC_FORMATS_SEGMENT_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"
#include "formats/segment/record_encoder.h"

/* A skippable frame starts with its magic and the length of the rest. */
#define BC_SKIPPABLE_BYTES 8

#define BC_HASH_BYTES 8

/* Maximum length of a data frame. Data that does not shrink is stored uncompressed. */
#define BC_FRAME_OVERHEAD 23
#define BC_FRAME_MAX      (BC_CHUNK_BYTES + BC_FRAME_OVERHEAD)

/* A frame without data: the start of each file. */
#define BC_EMPTY_FRAME_BYTES 11
extern const uint8_t bc_empty_frame[BC_EMPTY_FRAME_BYTES];

/* The length of the skippable frame whose first 8 bytes are at `in`, or 0 if it has another magic
 * or its length is not in min .. max. */
size_t bc_skippable_bytes(
	const uint8_t in[BC_SKIPPABLE_BYTES], uint32_t magic, size_t min, size_t max);

/* The checksum at `end` of the bytes start .. end: XXH3-64. */
void bc_checksum_write(uint8_t *end, const uint8_t *start);
bool bc_checksum_is_valid(const uint8_t *end, const uint8_t *start);

/* Writes a frame with `bytes` (0 .. BC_CHUNK_BYTES) of data at `out`, which has room for
 * BC_FRAME_MAX. Levels above BC_LEVEL_LZ4 are for records. Returns the frame's length. */
size_t bc_frame_write(uint8_t *out, const uint8_t *data, size_t bytes, enum bc_level level);

/* Decodes a frame of exactly frame_bytes with exactly `bytes` of data. Returns 0, -EBADMSG if it is
 * not such a frame, or -ENOMEM. */
int bc_frame_read(
	uint8_t *out, size_t bytes, const uint8_t *frame, size_t frame_bytes) BC_MUST_CHECK;

/* Decodes a frame in the same way. Also returns -EBADMSG if the XXH3-64 of the data is not `hash`.
 */
int bc_frame_read_checked(uint8_t *out, size_t bytes, const uint8_t *frame, size_t frame_bytes,
	uint64_t hash) BC_MUST_CHECK;

#endif
