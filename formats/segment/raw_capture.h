/* The bytes of a raw capture, REC-00000.bcp1.lz4 or REC-00000.raw6.lz4: the stream of a live source
 * as it came, in LZ4 frames, with what a replay needs beside it in skippable frames.
 * docs/raw-capture.md is the specification.
 *
 *     an empty LZ4 frame
 *     a skippable frame: the header, JSON (formats/segment/segment_header.h)
 *     and for each block
 *         a skippable frame: its table
 *         an LZ4 frame: its bytes (formats/segment/frame.h)
 *
 * A block is filled with bc_raw_block_add(), encoded whole with bc_raw_encode(), and
 * read back with bc_raw_table_read() and bc_raw_frame_read(). Files are for
 * formats/segment/segment_writer.h and formats/segment/segment_reader.h. */
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

#define BC_RAW_VERSION      1u
#define BC_MAGIC_RAW_HEADER 0x184D2A53u
#define BC_MAGIC_RAW_TABLE  0x184D2A54u

/* A block holds no more. A transfer that does goes on in the next block. */
#define BC_RAW_BLOCK_BYTES   BC_CHUNK_BYTES
#define BC_RAW_BLOCK_ENTRIES 2048u
#define BC_RAW_TRANSFER_MAX  (16u << 20)

/* Table: skippable header, fixed part, entries, XXH3-64 of all that. */
#define BC_RAW_FIXED_BYTES 56
#define BC_RAW_ENTRY_BYTES 32
#define BC_RAW_TABLE_MIN   (BC_SKIPPABLE_BYTES + BC_RAW_FIXED_BYTES + BC_HASH_BYTES)
#define BC_RAW_TABLE_MAX   (BC_RAW_TABLE_MIN + BC_RAW_BLOCK_ENTRIES * BC_RAW_ENTRY_BYTES)

/* A block as it stands in the file: table and frame. */
#define BC_RAW_ENCODED_MAX (BC_RAW_TABLE_MAX + BC_FRAME_MAX)

enum bc_raw_kind {
	BC_RAW_TRANSFER = 1, /* bytes that came together */
	BC_RAW_BREAK = 2,    /* the stream breaks here */
};

struct bc_raw_entry {
	uint8_t kind;  /* enum bc_raw_kind */
	uint8_t cause; /* break: enum bc_gap_cause; read, any but 0 */
	bool has_times;
	bool goes_on;    /* transfer: what follows in the next block came with it */
	bool is_cut;     /* break: bytes are missing, or the stream begins anew */
	bool is_restart; /* break: the board may have begun anew */
	uint32_t bytes;  /* transfer */
	union {
		uint64_t since_ns;    /* transfer, with has_times: when it came, by the host's */
		uint64_t duration_ns; /* break */
	};
	union {
		uint64_t until_ns;   /* clock from the stream's beginning */
		uint64_t lost_bytes; /* break: bytes of the stream that are not kept */
	};
	uint64_t lost; /* break: as struct bc_source_break has it, capture/source/source.h */
};

struct bc_raw_block {
	enum bc_format form;
	uint32_t lead;   /* raw6: how many bytes at its beginning are of a sample begun before */
	uint64_t offset; /* in the stream, of what it begins with */
	uint64_t recording_tag;
	uint32_t bytes;
	uint32_t frame_bytes; /* of its LZ4 frame, once encoded */
	uint64_t hash;        /* XXH3-64 of its bytes, once encoded */
	uint32_t entries;
	struct bc_raw_entry table[BC_RAW_BLOCK_ENTRIES];
	uint8_t data[BC_RAW_BLOCK_BYTES + BC_CHUNK_PADDING];
};

static inline bool bc_raw_is_form(enum bc_format format)
{
	return format == BC_FORMAT_BCP1 || format == BC_FORMAT_RAW6;
}

/* An empty block, of which nothing is known yet. */
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

/* Adds a transfer of entry->bytes bytes, or a break; there must be room for it. Transfers without
 * times that follow one another become one: where they were cut tells nothing. */
void bc_raw_block_add(
	struct bc_raw_block *block, const struct bc_raw_entry *entry, const uint8_t *bytes);

/* How much of the stream the block stands for: its bytes, and those that its breaks say are not
 * kept. */
uint64_t bc_raw_block_span(const struct bc_raw_block *block);

/* Writes the block's table at `out` and its frame behind it, and fills in hash and frame_bytes.
 * `out` has room for BC_RAW_ENCODED_MAX. Returns the length of both. */
size_t bc_raw_encode(uint8_t *out, struct bc_raw_block *block);

/* The length of the table whose first 8 bytes are at `in`, or 0 if they begin none. */
size_t bc_raw_table_bytes(const uint8_t in[BC_SKIPPABLE_BYTES]);

/* Reads a table of bc_raw_table_bytes() length: all of the block but its data. Returns false if its
 * hash is wrong or anything in it out of range; the block is then unspecified. */
bool bc_raw_table_read(
	struct bc_raw_block *block, const uint8_t *table, size_t table_bytes) BC_MUST_CHECK;

/* Decodes the block's frame, block->frame_bytes at `frame`. Returns 0, -EBADMSG if it is not what
 * the table says, or -ENOMEM. */
int bc_raw_frame_read(struct bc_raw_block *block, const uint8_t *frame) BC_MUST_CHECK;

#endif
