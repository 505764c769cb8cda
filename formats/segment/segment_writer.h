/* Writes one segment file: header, chunks, then the seal (index, trailer, rename). Or one raw
 * capture: header, blocks, then the seal (rename).
 *
 *     bc_segment_create(), bc_raw_create()       NAME.partial (or so) appears
 *     bc_segment_append(), bc_raw_append() ...   whole chunks or blocks, each all or nothing
 *     bc_atomic_file_sync(&writer.file) ...         what was appended is durable
 *     bc_segment_seal() or bc_segment_abandon()
 *
 * Every call that writes leaves the file as a row of whole chunks or blocks: on a failure what was
 * begun is cut off again, and the call can be repeated. One thread at a time. */
#ifndef BC_FORMATS_SEGMENT_SEGMENT_WRITER_H
#define BC_FORMATS_SEGMENT_SEGMENT_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/atomic_file.h"
#include "formats/base/must_check.h"
#include "formats/segment/segment.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/segment_name.h"

struct bc_segment_writer {
	struct bc_atomic_file file; /* closed: no segment is open */
	bool is_raw;                /* a raw capture: it gets no index */
	uint32_t segment; /* its number, or that of the segment of which it is the capture */
	uint64_t records;
	uint64_t gaps;
	uint64_t lost;
	uint32_t chunks; /* or blocks */
	uint32_t rows_room;
	uint8_t *rows; /* `chunks` index rows */
};

/* Creates a segment in the directory, `name` with `suffix` behind it while it is open, and writes
 * what comes before the first chunk. Returns 0, or a negative errno with nothing left behind and
 * the writer closed: -EEXIST when either name is taken, -ENAMETOOLONG, -ENOSPC, ... */
int bc_segment_create(struct bc_segment_writer *writer, int dir_fd, const char *name,
	const char *suffix, const struct bc_segment_header *header) BC_MUST_CHECK;

/* The same of a raw capture of bcp1 or raw6, with BC_PARTIAL_SUFFIX while it is open. */
int bc_raw_create(struct bc_segment_writer *writer, int dir_fd, const char *name,
	const struct bc_segment_header *header, enum bc_format form) BC_MUST_CHECK;

/* Appends a chunk as bc_chunk_encode() left it, and gives it its place: segment and number are set
 * here. `info` is that chunk's. Returns 0; a negative errno of the write, with the file cut back to
 * the chunk before; -ENOMEM when the index can't grow; -EFBIG when the segment has its 65,536
 * chunks already. */
int bc_segment_append(struct bc_segment_writer *writer, uint8_t *encoded, size_t header_bytes,
	const struct bc_chunk_info *info, uint64_t gaps, uint64_t lost) BC_MUST_CHECK;

/* Appends a block as bc_raw_encode() left it. Returns 0, or a negative errno with the file cut back
 * to the block before. */
int bc_raw_append(
	struct bc_segment_writer *writer, const uint8_t *encoded, size_t bytes) BC_MUST_CHECK;

/* Writes a segment's index, syncs, gives the file its final name (never replacing another) and
 * syncs the directory. Returns 0 with the writer closed but for file.sealed_hash, or a negative
 * errno with the segment still open and whole as before: -ENOSPC can be tried again, after any
 * other abandon it. */
int bc_segment_seal(struct bc_segment_writer *writer) BC_MUST_CHECK;

/* Closes the file as it is, a .partial that can be read and recovered. */
void bc_segment_abandon(struct bc_segment_writer *writer);

#endif
