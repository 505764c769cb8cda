/* The index of a sealed segment: one row per chunk, with the fixed part of the chunk's header, so
 * that readers can select chunks by record, tick or time without reading the others. Loading it
 * costs 240 bytes per chunk. formats/segment/segment.h has the layout. */
#ifndef BC_FORMATS_SEGMENT_SEGMENT_INDEX_H
#define BC_FORMATS_SEGMENT_SEGMENT_INDEX_H

#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/segment/segment.h"

struct bc_segment_index {
	struct bc_index_head head;
	uint8_t *rows; /* head.rows of BC_INDEX_ROW_BYTES */
};

/* Loads the index of the segment in the regular file fd. Returns 0; -ENOENT if it has none (not
 * sealed, several segments, or not a segment); -EBADMSG if it is damaged; or another negative
 * errno. Free it with bc_segment_index_free(). */
int bc_segment_index_load(struct bc_segment_index *index, int fd) BC_MUST_CHECK;

/* Reads `bytes` bytes at an offset. Returns 0, -EBADMSG beyond the end, or a negative errno. */
int bc_segment_read_at(int fd, void *out, size_t bytes, uint64_t offset) BC_MUST_CHECK;

/* Reads the header of the chunk at an offset whose row is `info`: its events and page counts.
 * Returns 0, -EBADMSG if it is damaged, or another negative errno. */
int bc_chunk_header_load(struct bc_chunk *chunk, int fd, uint64_t offset,
	const struct bc_chunk_info *info) BC_MUST_CHECK;

/* Reads only the head, which has the totals. Same results; there is nothing to free. */
int bc_segment_index_read_head(struct bc_index_head *head, int fd) BC_MUST_CHECK;

void bc_segment_index_free(struct bc_segment_index *index);

/* Reads an existing row. Returns the offset of its chunk in the file. */
uint64_t bc_segment_index_row(
	const struct bc_segment_index *index, uint32_t row, struct bc_chunk_info *info);

/* True if a chunk is the one that a row describes. */
bool bc_chunk_is_same(const struct bc_chunk_info *a, const struct bc_chunk_info *b);

#endif
