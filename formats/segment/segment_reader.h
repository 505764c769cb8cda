/* Reads segments and raw captures: whole, open, torn or damaged ones, several in a row; from a file
 * or from a pipe.
 *
 * bc_segment_read() reads a segment, bc_raw_read() a raw capture (formats/segment/raw_capture.h).
 * Each call gives the next finding. A chunk or block that it gives has passed every checksum.
 * Damage never ends the reading: it is reported with its place, and the next whole chunk or block
 * is found.
 *
 * A sealed segment in a regular file can also be read in part: load its index
 * (formats/segment/segment_index.h), look up the chunks that hold a record or a tick, and confine
 * the reader to them (bc_segment_reader_range()); nothing else is read then. */
#ifndef BC_FORMATS_SEGMENT_SEGMENT_READER_H
#define BC_FORMATS_SEGMENT_SEGMENT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/input_stream.h"
#include "formats/base/must_check.h"
#include "formats/segment/raw_capture.h"
#include "formats/segment/segment.h"
#include "formats/segment/segment_header.h"

enum bc_segment_found {
	BC_FOUND_END,     /* the bytes are over; asked again, the same */
	BC_FOUND_SEGMENT, /* a segment or raw capture begins: bc_segment_reader_header() */
	BC_FOUND_CHUNK,   /* a whole chunk or block */
	BC_FOUND_INDEX,   /* a segment's index, whole and true to the chunks read: it was sealed */
	BC_FOUND_DAMAGE,  /* bc_segment_reader_damage() says what and where */
};

struct bc_segment_damage {
	uint64_t offset; /* in the bytes read, from 0 */
	uint64_t bytes;  /* that belong to nothing whole */
	char what[96];   /* a phrase: "chunk 3: records don't match their checksum" */
};

struct bc_segment_reader;

/* Reads from a stream, whose fd stays the caller's, at its present position; `head` are bytes that
 * were read from it before, to come first (may be NULL when head_bytes is 0). Takes some 3.3 MiB.
 * Returns 0, -ENOMEM or -EINVAL (more head than 1 MiB). */
int bc_segment_reader_open(struct bc_segment_reader **reader, struct bc_input_stream stream,
	const uint8_t *head, size_t head_bytes) BC_MUST_CHECK;
void bc_segment_reader_close(struct bc_segment_reader *reader);

/* From now on read only [offset, end), which must begin with a chunk. The fd must be seekable.
 * Returns 0 or a negative errno. */
int bc_segment_reader_range(
	struct bc_segment_reader *reader, uint64_t offset, uint64_t end) BC_MUST_CHECK;

/* Chunks are given with their header alone, their records unread and unchecked. */
void bc_segment_reader_skip_records(struct bc_segment_reader *reader);

/* The next finding, or a negative errno when reading fails; `chunk` is filled for BC_FOUND_CHUNK
 * and otherwise unspecified. */
int bc_segment_read(struct bc_segment_reader *reader, struct bc_chunk *chunk) BC_MUST_CHECK;

int bc_raw_read(struct bc_segment_reader *reader, struct bc_raw_block *block) BC_MUST_CHECK;

/* Valid until the next read. The header is that of the latest segment begun, or NULL if none was
 * whole. */
const struct bc_segment_header *bc_segment_reader_header(const struct bc_segment_reader *reader);
const struct bc_segment_damage *bc_segment_reader_damage(const struct bc_segment_reader *reader);

/* The chunk or block found last as it is in the file: header and frame. */
const uint8_t *bc_segment_reader_encoded(
	const struct bc_segment_reader *reader, size_t *header_bytes);

/* Place in the bytes of the finding before: its first byte. */
uint64_t bc_segment_reader_offset(const struct bc_segment_reader *reader);

/* After BC_FOUND_CHUNK: how many records of the same recording are missing between the chunk found
 * before and this one, with no gap event that says so. */
uint64_t bc_segment_reader_missing(const struct bc_segment_reader *reader);

/* After BC_FOUND_CHUNK of bc_raw_read(): how the block follows the one found before. */
enum bc_raw_follows {
	BC_RAW_FIRST,           /* there was none */
	BC_RAW_CONTIGUOUS,      /* nothing is missing between them */
	BC_RAW_AFTER_HOLE,      /* some of the stream is */
	BC_RAW_OTHER_RECORDING, /* it is of another recording */
};
enum bc_raw_follows bc_segment_reader_follows(const struct bc_segment_reader *reader);

/* After BC_FOUND_END: whether the bytes ended behind a whole index. */
bool bc_segment_reader_is_sealed(const struct bc_segment_reader *reader);

#endif
