/* Writes one segment file: header, chunks, then the seal (index, trailer, rename).
 *
 *     bc_segment_create()                  NAME.partial (or so) appears
 *     bc_segment_append() ...              whole chunks, each all or nothing
 *     bc_segment_sync() ...                what was appended is durable
 *     bc_segment_seal() or bc_segment_abandon()
 *
 * Every call that writes leaves the file as a row of whole chunks: on a failure what was begun is
 * cut off again, and the call can be repeated. One thread at a time. */
#ifndef BC_FORMATS_SEGMENT_WRITER_H
#define BC_FORMATS_SEGMENT_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/segment.h"
#include "formats/segment_header.h"

#define BC_SEGMENT_FILE_MAX 256

struct bc_segment_writer {
	int fd;                              /* -1: no segment is open */
	int dir_fd;                          /* the caller's */
	char name[BC_SEGMENT_FILE_MAX];      /* once sealed */
	char open_name[BC_SEGMENT_FILE_MAX]; /* until then */
	uint32_t segment;
	uint64_t bytes;   /* of whole chunks in the file, header included */
	uint64_t durable; /* of them, bytes that a sync has covered */
	bool is_name_durable;
	uint64_t records;
	uint64_t gaps;
	uint64_t lost;
	uint32_t chunks;
	uint32_t rows_room;
	uint8_t *rows; /* `chunks` index rows */
};

/* Creates a segment in the directory, `name` with `suffix` behind it while it is open, and writes
 * what comes before the first chunk. Returns 0, or a negative errno with nothing left behind and
 * the writer closed: -EEXIST when either name is taken, -ENAMETOOLONG, -ENOSPC, ... */
int bc_segment_create(struct bc_segment_writer *writer, int dir_fd, const char *name,
	const char *suffix, const struct bc_segment_header *header)
	__attribute__((warn_unused_result));

/* Appends a chunk as bc_chunk_encode() left it, and gives it its place: segment and number are set
 * here. `info` is that chunk's. Returns 0; a negative errno of the write, with the file cut back to
 * the chunk before; -ENOMEM when the index can't grow; -EFBIG when the segment has its 65,536
 * chunks already. */
int bc_segment_append(struct bc_segment_writer *writer, uint8_t *encoded, size_t header_bytes,
	const struct bc_chunk_info *info, uint64_t gaps, uint64_t lost)
	__attribute__((warn_unused_result));

/* Makes durable what is appended. After a failure nothing of this file may be called durable any
 * more: abandon it. */
int bc_segment_sync(struct bc_segment_writer *writer) __attribute__((warn_unused_result));

/* Writes the index, syncs, gives the file its final name (never replacing another) and syncs the
 * directory. Returns 0 with the writer closed, or a negative errno with the segment still open and
 * whole as before: -ENOSPC can be tried again, after any other abandon it. */
int bc_segment_seal(struct bc_segment_writer *writer) __attribute__((warn_unused_result));

/* Closes the file as it is, a .partial that can be read and recovered. */
void bc_segment_abandon(struct bc_segment_writer *writer);

/* Whether the open file has lost its name: somebody deleted it, and what is written is gone. */
bool bc_segment_is_deleted(const struct bc_segment_writer *writer);

#endif
