/* The structures in a segment file, REC-00000.byu.lz4 or .byu.zst: LZ4 or zstd frames with records,
 * and skippable frames between them. docs/segment-format.md specifies the format.
 *
 *   empty frame
 *   skippable 0x184D2A50: segment header, JSON        (formats/segment/segment_header.h)
 *   for each chunk:
 *     skippable 0x184D2A51: chunk header
 *     the frame of its records
 *   once the segment is sealed:
 *     skippable 0x184D2A56: page summary              (formats/segment/page_summary.h)
 *     skippable 0x184D2A52: index and trailer
 *
 * This module encodes and decodes frames, chunks, index and trailer.
 * formats/segment/segment_writer.h and segment_reader.h write and read the files. */
#ifndef BC_FORMATS_SEGMENT_SEGMENT_H
#define BC_FORMATS_SEGMENT_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/compression.h"
#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"
#include "formats/bus/describe.h"
#include "formats/bus/loss.h"

/* ---- frames
 *
 * The frames that segments consist of: LZ4 or zstd frames with data, skippable frames with
 * everything else, and XXH3-64 checksums. docs/segment-format.md specifies them.
 *
 * A data frame has the content size, but no checksum, because the chunk header has one. Any LZ4 or
 * zstd program can decode it. An LZ4 frame has one independent block. Block checksums would require
 * a content checksum as well: without it, lz4 1.9.4 reads four bytes too many after a large block
 * and misses the next frame. */

/* A skippable frame starts with its magic and the length of the rest. */
#define BC_SKIPPABLE_BYTES 8

#define BC_HASH_BYTES 8

/* Maximum length of a data frame. Data that does not shrink is stored uncompressed, with 23 bytes
 * in an LZ4 frame, and more in a zstd frame. */
#define BC_FRAME_OVERHEAD 33
#define BC_FRAME_MAX      (BC_CHUNK_BYTES + BC_FRAME_OVERHEAD)

/* The length of the skippable frame whose first 8 bytes are at `in`, or 0 if it has another magic
 * or its length is not in min .. max. */
size_t bc_skippable_bytes(
	const uint8_t in[BC_SKIPPABLE_BYTES], uint32_t magic, size_t min, size_t max);

/* The checksum at `end` of the bytes start .. end: XXH3-64. */
void bc_checksum_write(uint8_t *end, const uint8_t *start);
bool bc_checksum_is_valid(const uint8_t *end, const uint8_t *start);

/* Compresses in one thread. Only zstd needs it opened; for other frames it is enough to set
 * `level`. */
struct bc_compressor {
	enum bc_level level;
	struct ZSTD_CCtx_s *zstd; /* NULL: data is stored uncompressed in zstd frames */
};

/* Allocates the memory for a chunk. Returns 0 or -ENOMEM. Close it in both cases. */
int bc_compressor_open(struct bc_compressor *compressor, enum bc_level level) BC_MUST_CHECK;
void bc_compressor_close(struct bc_compressor *compressor);

/* Writes a frame with `bytes` (0 .. BC_CHUNK_BYTES) of data at `out`, which has room for
 * BC_FRAME_MAX. The levels fast, default and dense are for records. Returns its length. */
size_t bc_frame_write(
	uint8_t *out, const uint8_t *data, size_t bytes, const struct bc_compressor *compressor);

/* Decodes a frame of exactly frame_bytes with exactly `bytes` of data. Returns 0, -EBADMSG if it is
 * not such a frame, or -ENOMEM. Needs less than 256 KiB of memory, whatever the frame says. */
int bc_frame_read(
	uint8_t *out, size_t bytes, const uint8_t *frame, size_t frame_bytes) BC_MUST_CHECK;

/* Decodes a frame in the same way. Also returns -EBADMSG if the data's XXH3-64 is not `hash`. */
int bc_frame_read_checked(uint8_t *out, size_t bytes, const uint8_t *frame, size_t frame_bytes,
	uint64_t hash) BC_MUST_CHECK;

/* What an error code of LZ4F_decompress() means: -ENOMEM, or -EBADMSG for damaged data. */
int bc_lz4_error(size_t code);

/* ---- chunks, index and trailer */

#define BC_SEGMENT_VERSION 4u
#define BC_SEGMENT_CHUNKS  65536u

#define BC_MAGIC_SEGMENT_HEADER 0x184D2A50u
#define BC_MAGIC_CHUNK_HEADER   0x184D2A51u
#define BC_MAGIC_INDEX          0x184D2A52u
#define BC_MAGIC_PAGE_SUMMARY   0x184D2A56u

/* Chunk header: skippable header, fixed part, events, page counts, XXH3-64 of all that. */
#define BC_CHUNK_FIXED_BYTES (176 + 8 * BC_GAP_CAUSES)
#define BC_EVENT_BYTES       32
#define BC_CHUNK_HEADER_MIN  (BC_SKIPPABLE_BYTES + BC_CHUNK_FIXED_BYTES + BC_HASH_BYTES)
#define BC_CHUNK_HEADER_MAX                                                             \
	(BC_CHUNK_HEADER_MIN + BC_CHUNK_EVENTS * BC_EVENT_BYTES + BC_CHUNK_TEXT_BYTES + \
		BC_CHUNK_PAGE_BYTES)

/* The page counts have at most 1/100 of a chunk's bytes; in a small chunk 1/32, up to 512 bytes. */
#define BC_CHUNK_PAGE_SHARE       100u
#define BC_CHUNK_PAGE_SHARE_SMALL 32u
#define BC_CHUNK_PAGE_BYTES_SMALL 512u

/* A chunk in the file: header and frame. */
#define BC_CHUNK_ENCODED_MAX (BC_CHUNK_HEADER_MAX + BC_FRAME_MAX)

/* Index: skippable header, fixed part and its XXH3-64, rows and their XXH3-64, trailer. */
#define BC_INDEX_HEAD_BYTES (BC_SKIPPABLE_BYTES + 48 + BC_HASH_BYTES)
#define BC_INDEX_ROW_BYTES  (8 + BC_CHUNK_FIXED_BYTES)
#define BC_TRAILER_BYTES    32

/* Writes a chunk's header and frame at `out`, which has room for BC_CHUNK_ENCODED_MAX. Computes the
 * fields of bc_chunk_describe(), the lengths, and the chunk's page counts; `pages` gets the same
 * counts in full detail. Returns the length and sets *header_bytes to the header's. */
size_t bc_chunk_encode(uint8_t *out, struct bc_chunk *chunk, const struct bc_compressor *compressor,
	struct bc_chunk_pages *pages, size_t *header_bytes);

/* Sets the segment and chunk number in an encoded header and updates its hash. Workers encode
 * chunks before the writer knows where they go. */
void bc_chunk_header_place(uint8_t *header, size_t header_bytes, uint32_t segment, uint32_t number);

/* Writes only the header, with all fields of info and lengths unchanged. Returns its length. */
size_t bc_chunk_header_write(uint8_t *out, const struct bc_chunk *chunk);

/* The length of the chunk header whose first 8 bytes are at `in`, or 0 if it is not one. */
size_t bc_chunk_header_bytes(const uint8_t in[BC_SKIPPABLE_BYTES]);

/* The same from info. It can exceed BC_CHUNK_HEADER_MAX if info was not checked. */
static inline size_t bc_chunk_info_header_bytes(const struct bc_chunk_info *info)
{
	return BC_CHUNK_HEADER_MIN + (size_t)info->event_bytes + info->page_bytes;
}

/* Reads a header of bc_chunk_header_bytes() length: info, events, text and page counts. Returns
 * false, with the chunk unspecified, if its hash is wrong or a field is out of range. No input can
 * make it write outside the chunk. */
bool bc_chunk_header_read(struct bc_chunk *chunk, const uint8_t *header, size_t header_bytes);

/* Decodes the chunk's records from info.frame_bytes bytes at `frame`. Returns 0, -EBADMSG if the
 * frame does not match the header, or -ENOMEM. */
int bc_chunk_frame_read(struct bc_chunk *chunk, const uint8_t *frame) BC_MUST_CHECK;

/* Writes the index row of the chunk with this encoded header. `offset` is in the segment. */
void bc_index_row_write(uint8_t out[BC_INDEX_ROW_BYTES], uint64_t offset, const uint8_t *header);

/* Reads a row. Returns the chunk's offset in the segment. */
uint64_t bc_index_row_read(struct bc_chunk_info *info, const uint8_t row[BC_INDEX_ROW_BYTES]);

/* The length of a chunk in the file: header and frame. */
uint64_t bc_chunk_encoded_bytes(const struct bc_chunk_info *info);

struct bc_index_head {
	uint32_t rows;
	uint64_t records;
	struct bc_loss loss; /* without away_ns, which is in the rows */
	uint64_t offset;     /* of the index in the segment */
	uint64_t pages;      /* offset of the page summary; 0: none */
};

/* The length of an index frame with this number of rows, including the trailer. */
static inline uint64_t bc_index_bytes(uint32_t rows)
{
	return BC_INDEX_HEAD_BYTES + (uint64_t)rows * BC_INDEX_ROW_BYTES + BC_HASH_BYTES +
	       BC_TRAILER_BYTES;
}

void bc_index_head_write(uint8_t out[BC_INDEX_HEAD_BYTES], const struct bc_index_head *head);
bool bc_index_head_read(struct bc_index_head *head, const uint8_t in[BC_INDEX_HEAD_BYTES]);

/* The trailer at the end of the file has the index's offset. Reading returns false if invalid. */
void bc_trailer_write(uint8_t out[BC_TRAILER_BYTES], uint64_t index_offset, uint64_t file_bytes);
bool bc_trailer_read(
	uint64_t *index_offset, uint64_t *file_bytes, const uint8_t in[BC_TRAILER_BYTES]);

/* The tag in all chunks of a recording: XXH3-64 of its id. */
uint64_t bc_recording_tag(const char *recording);

#endif
