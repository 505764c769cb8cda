/* Writes a segment.
 *
 *     bc_segment_create()                        creates NAME.partial and writes the header
 *     bc_segment_append() ...                    appends a chunk, or nothing
 *     bc_atomic_file_sync(&writer.file) ...      makes the appended data durable
 *     bc_segment_seal() or bc_segment_abandon()  writes the index, renames; or just closes
 *
 * After any failure the file still consists of whole chunks, because partial writes are
 * truncated, and the call can be repeated. Not thread-safe: one thread at a time. */
#ifndef BC_FORMATS_SEGMENT_SEGMENT_WRITER_H
#define BC_FORMATS_SEGMENT_SEGMENT_WRITER_H

#include <stdint.h>

#include "formats/base/atomic_file.h"
#include "formats/base/must_check.h"
#include "formats/bus/loss.h"
#include "formats/segment/page_summary.h"
#include "formats/segment/segment.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/segment_name.h"

struct bc_segment_writer {
	struct bc_atomic_file file;
	uint32_t segment; /* its number */
	uint64_t first_record;
	int64_t wall_ns; /* time of day when that record arrived */
	uint64_t records;
	struct bc_loss loss;
	uint32_t chunks;
	size_t rows_capacity;
	uint8_t *rows; /* the index: one row per chunk */
	struct bc_page_summary pages;
};

/* Creates a segment in a directory, named `name` + `suffix` while it is open, and writes its
 * header. Returns 0, or a negative errno with no file left behind and the writer closed: -EEXIST if
 * either name exists, -ENAMETOOLONG, -ENOSPC, ... */
int bc_segment_create(struct bc_segment_writer *writer, int dir_fd, const char *name,
	const char *suffix, const struct bc_segment_header *header) BC_MUST_CHECK;

/* Creates a copy in the same way. `json` becomes its header; NULL: `header` does. */
int bc_segment_create_copy(struct bc_segment_writer *writer, int dir_fd, const char *name,
	const char *suffix, const struct bc_segment_header *header,
	const json_t *json) BC_MUST_CHECK;

/* Appends a chunk encoded by bc_chunk_encode(), and sets its segment and chunk number. `info` is
 * the chunk's, `loss` is from bc_chunk_loss(), `pages` from bc_chunk_encode() or bc_chunk_count()
 * (NULL: searches read the chunk). Returns 0; -EFBIG if the segment already has 65,536 chunks;
 * -ENOMEM; or another negative errno if the write failed, with the partial chunk truncated. */
int bc_segment_append(struct bc_segment_writer *writer, uint8_t *encoded, size_t header_bytes,
	const struct bc_chunk_info *info, const struct bc_loss *loss,
	const struct bc_page_counts *pages) BC_MUST_CHECK;

/* The length of the page summary and index after `more` further chunks, at most. */
uint64_t bc_segment_end_bytes(const struct bc_segment_writer *writer, uint32_t more);

/* Writes the index. Returns 0, or a negative errno without it; call it again after -ENOSPC. */
int bc_segment_end(struct bc_segment_writer *writer) BC_MUST_CHECK;

/* Writes the index unless it is written, syncs the file, renames it to its final name (never
 * replacing a file) and syncs the directory. Returns 0 with the writer closed and file.sealed_hash
 * set; or a negative errno with the file still open, without them. After -ENOSPC try again, after
 * any other error abandon the file. */
int bc_segment_seal(struct bc_segment_writer *writer) BC_MUST_CHECK;

/* Closes the file as it is: a .partial that can be read and recovered. */
void bc_segment_abandon(struct bc_segment_writer *writer);

#endif
