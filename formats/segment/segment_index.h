/* The index of a sealed segment: a row a chunk, to find the chunks that hold a record or a tick
 * without reading the others. Layout in formats/segment/segment.h. */
#ifndef BC_FORMATS_SEGMENT_SEGMENT_INDEX_H
#define BC_FORMATS_SEGMENT_SEGMENT_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/segment/segment.h"

struct bc_segment_index {
	struct bc_index_head head;
	uint8_t *rows; /* head.rows of BC_INDEX_ROW_BYTES */
};

/* Loads the index of the sealed segment in the regular file fd. Returns 0; -ENOENT if it has none
 * (not sealed, more than one segment, or not a segment); -EBADMSG if it is damaged; or a negative
 * errno. Free with bc_segment_index_free(). */
int bc_segment_index_load(struct bc_segment_index *index, int fd) BC_MUST_CHECK;

/* The same, of its head alone: the totals. There is nothing to free. */
int bc_segment_index_read_head(struct bc_index_head *head, int fd) BC_MUST_CHECK;

void bc_segment_index_free(struct bc_segment_index *index);

/* Reads a row, which must exist. Returns the offset of its chunk in the file. */
uint64_t bc_segment_index_row(
	const struct bc_segment_index *index, uint32_t row, struct bc_chunk_info *info);

/* The first row whose chunk holds this record or a later one; head.rows if there is none. */
uint32_t bc_segment_index_find_record(const struct bc_segment_index *index, uint64_t record);

/* The first row whose chunk lies in this epoch and reaches this tick, or lies in a later epoch. */
uint32_t bc_segment_index_find_tick(
	const struct bc_segment_index *index, uint32_t epoch, uint64_t tick);

#endif
