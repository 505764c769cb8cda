/* Shared by the fuzz targets of segments: corrects the hashes after a mutation, so that more than
 * damage is tested. */
#ifndef BC_TESTS_FUZZ_REPAIR_H
#define BC_TESTS_FUZZ_REPAIR_H

#include <stdlib.h>

#include "formats/base/bytes.h"
#include "formats/base/hash.h"
#include "formats/segment/page_summary.h"
#include "formats/segment/segment.h"
#include "formats/segment/segment_header.h"

static inline void repair_hash(uint8_t *at, size_t bytes)
{
	bc_checksum_write(at + bytes - BC_HASH_BYTES, at);
}

static inline void repair_chunk(uint8_t *header, size_t bytes, size_t left)
{
	static struct bc_chunk chunk;

	repair_hash(header, bytes);
	if (!bc_chunk_header_read(&chunk, header, bytes) || chunk.info.frame_bytes > left - bytes)
		return;
	chunk.info.records_hash = 0;
	size_t records_bytes = (size_t)chunk.info.records * BC_RECORD_BYTES;
	if (bc_frame_read(chunk.records, records_bytes, header + bytes, chunk.info.frame_bytes) !=
		0)
		return;
	chunk.info.records_hash = bc_hash(chunk.records, records_bytes);
	/* The same length: the events were read from there. */
	if (bc_chunk_header_write(header, &chunk) != bytes)
		abort();
}

/* The head, the rows and the trailer. */
static inline void repair_index(uint8_t *index, size_t left)
{
	struct bc_index_head head;

	if (left < BC_INDEX_HEAD_BYTES)
		return;
	repair_hash(index, BC_INDEX_HEAD_BYTES);
	if (!bc_index_head_read(&head, index) || bc_index_bytes(head.rows) > left)
		return;
	uint8_t *rows = index + BC_INDEX_HEAD_BYTES;
	uint8_t *end = rows + (size_t)head.rows * BC_INDEX_ROW_BYTES;
	bc_checksum_write(end, rows);
	repair_hash(end + BC_HASH_BYTES, BC_TRAILER_BYTES);
}

/* The head, the lengths and the nodes of a page summary. */
static inline void repair_summary(uint8_t *frame, size_t left)
{
	struct bc_summary_head head;

	if (left < BC_SUMMARY_HEAD_BYTES)
		return;
	repair_hash(frame, BC_SUMMARY_HEAD_BYTES);
	if (!bc_summary_head_read(&head, frame))
		return;
	uint8_t *lengths = frame + BC_SUMMARY_HEAD_BYTES;
	size_t bytes = bc_summary_lengths_bytes(&head);
	left -= BC_SUMMARY_HEAD_BYTES;
	if (bytes > left)
		return;
	repair_hash(lengths, bytes);
	uint8_t *node = lengths + bytes;
	left -= bytes;
	for (uint32_t i = 0; i < head.nodes; i++) {
		size_t n = bc_le32(lengths + (size_t)i * 4);
		if (n > left)
			return;
		if (n > BC_HASH_BYTES)
			repair_hash(node, n);
		node += n;
		left -= n;
	}
}

/* Corrects the hash of everything that starts like a part of a segment. */
static inline void repair_hashes(uint8_t *bytes, size_t size)
{
	for (size_t at = 0; at + BC_SKIPPABLE_BYTES <= size; at++) {
		uint8_t *here = bytes + at;
		size_t left = size - at;
		size_t n;
		if ((n = bc_segment_header_bytes(here)) != 0) {
			if (n <= left)
				repair_hash(here, n);
		} else if ((n = bc_chunk_header_bytes(here)) != 0) {
			if (n <= left)
				repair_chunk(here, n, left);
		} else if (bc_le32(here) == BC_MAGIC_PAGE_SUMMARY) {
			repair_summary(here, left);
		} else if (bc_le32(here) == BC_MAGIC_INDEX) {
			repair_index(here, left);
		}
	}
}

#endif
