/* The blocks of a raw capture, REC-00000.bcp1.lz4 or REC-00000.raw6.lz4: the unchanged stream of a
 * live source in LZ4 frames, and what a replay needs to know about it in skippable frames.
 * docs/raw-capture.md specifies the format.
 *
 *     empty LZ4 frame
 *     skippable 0x184D2A53: header, JSON              (formats/segment/segment_header.h)
 *     for each block:
 *         skippable 0x184D2A54: block table
 *         LZ4 frame: the block's bytes                (formats/segment/frame.h)
 *     skippable 0x184D2A55: the end, once the capture is sealed
 *
 * Fill a block with bc_raw_block_add() and encode it with bc_raw_encode(). Read it back with
 * bc_raw_table_read() and bc_raw_frame_read(). formats/segment/segment_writer.h and
 * formats/segment/segment_reader.h write and read the files. */
#ifndef BC_FORMATS_SEGMENT_RAW_CAPTURE_H
#define BC_FORMATS_SEGMENT_RAW_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/format_id.h"
#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"
#include "formats/segment/frame.h"
#include "formats/segment/segment.h"

#define BC_RAW_VERSION      2u
#define BC_MAGIC_RAW_HEADER 0x184D2A53u
#define BC_MAGIC_RAW_TABLE  0x184D2A54u
#define BC_MAGIC_RAW_END    0x184D2A55u

/* Limits of a block. A larger transfer continues in the next block. */
#define BC_RAW_BLOCK_BYTES   BC_CHUNK_BYTES
#define BC_RAW_BLOCK_ENTRIES 2048u
#define BC_RAW_TRANSFER_MAX  (16u << 20)

/* Table: skippable header, fixed part, entries, XXH3-64 of all that. */
#define BC_RAW_FIXED_BYTES 56
#define BC_RAW_ENTRY_BYTES 32
#define BC_RAW_TABLE_MIN   (BC_SKIPPABLE_BYTES + BC_RAW_FIXED_BYTES + BC_HASH_BYTES)
#define BC_RAW_TABLE_MAX   (BC_RAW_TABLE_MIN + BC_RAW_BLOCK_ENTRIES * BC_RAW_ENTRY_BYTES)

/* The end: skippable header, version, number of blocks, its offset, XXH3-64 of all that. */
#define BC_RAW_END_BYTES 32

/* A block in the file: table and frame. */
#define BC_RAW_ENCODED_MAX (BC_RAW_TABLE_MAX + BC_FRAME_MAX)

enum bc_raw_kind {
	BC_RAW_TRANSFER = 1, /* bytes that arrived together */
	BC_RAW_BREAK = 2,    /* the stream breaks here */
};

struct bc_raw_entry {
	uint8_t kind;  /* enum bc_raw_kind */
	uint8_t cause; /* break: enum bc_gap_cause, or another number but 0 */
	bool has_times;
	bool is_continued; /* transfer: its remaining bytes are in the next block */
	bool is_cut;       /* break: what follows does not complete a frame or sample before it */
	bool is_restart;   /* break: the board may have restarted; is_cut is set, too */
	uint32_t bytes;    /* transfer */
	union {
		uint64_t since_ns;    /* transfer, with has_times: arrival of the previous one */
		uint64_t duration_ns; /* break */
	};
	union {
		uint64_t until_ns; /* transfer: its arrival, on the host's clock since the start */
		uint64_t lost_bytes; /* break: bytes of the stream that were dropped */
	};
	uint64_t lost; /* break: as in struct bc_source_break, capture/source/source.h */
};

struct bc_raw_block {
	enum bc_format form; /* BC_FORMAT_BCP1 or BC_FORMAT_RAW6 */
	uint32_t lead;       /* raw6: bytes at its start that complete a sample from before it */
	uint64_t offset;     /* of its start in the stream */
	uint64_t recording_tag;
	uint32_t bytes;
	uint32_t frame_bytes; /* length of its LZ4 frame, once encoded */
	uint64_t hash;        /* XXH3-64 of its bytes, once encoded */
	uint32_t entries;
	struct bc_raw_entry table[BC_RAW_BLOCK_ENTRIES];
	uint8_t data[BC_RAW_BLOCK_BYTES];
};

static inline bool bc_raw_is_form(enum bc_format format)
{
	return format == BC_FORMAT_BCP1 || format == BC_FORMAT_RAW6;
}

/* Empties the block. Its other fields become zero. */
void bc_raw_block_reset(struct bc_raw_block *block);

static inline bool bc_raw_block_is_empty(const struct bc_raw_block *block)
{
	return block->entries == 0;
}

static inline bool bc_raw_block_has_room(
	const struct bc_raw_block *block, uint32_t entries, size_t bytes)
{
	return block->entries + entries <= BC_RAW_BLOCK_ENTRIES &&
	       block->bytes + bytes <= BC_RAW_BLOCK_BYTES;
}

/* Adds a transfer of entry->bytes bytes, or a break. There must be room for it. Consecutive
 * transfers without times are merged, because their boundaries mean nothing. */
void bc_raw_block_add(
	struct bc_raw_block *block, const struct bc_raw_entry *entry, const uint8_t *bytes);

/* The length of the stream that the block covers: its bytes, and those dropped at its breaks. */
uint64_t bc_raw_block_span(const struct bc_raw_block *block);

/* Writes the block's table and frame at `out`, which has room for BC_RAW_ENCODED_MAX, and sets hash
 * and frame_bytes. Returns the length. */
size_t bc_raw_encode(uint8_t *out, struct bc_raw_block *block);

/* The length of the table whose first 8 bytes are at `in`, or 0 if it is not a table. */
size_t bc_raw_table_bytes(const uint8_t in[BC_SKIPPABLE_BYTES]);

/* Reads a table of bc_raw_table_bytes() length: all of the block except its data. Returns false,
 * with the block unspecified, if its hash is wrong or a field is out of range. */
bool bc_raw_table_read(
	struct bc_raw_block *block, const uint8_t *table, size_t table_bytes) BC_MUST_CHECK;

/* Decodes the block's data from block->frame_bytes bytes at `frame`. Returns 0, -EBADMSG if the
 * frame does not match the table, or -ENOMEM. */
int bc_raw_frame_read(struct bc_raw_block *block, const uint8_t *frame) BC_MUST_CHECK;

/* Writes the end of a capture with this number of blocks. `offset` is that of the end itself. */
void bc_raw_end_write(uint8_t out[BC_RAW_END_BYTES], uint32_t blocks, uint64_t offset);

/* Reads the end. Returns false if its hash or its version is wrong. */
bool bc_raw_end_read(
	uint32_t *blocks, uint64_t *offset, const uint8_t in[BC_RAW_END_BYTES]) BC_MUST_CHECK;

#endif
