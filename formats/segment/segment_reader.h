/* Reads segments from a file or pipe. They can be open, torn, damaged or concatenated.
 *
 * Call bc_segment_read() until it returns BC_FOUND_END. A chunk that it returns has passed every
 * checksum. Damage does not end the reading: it is reported with its place, and the reader searches
 * for the next whole chunk. formats/segment/sequence_check.h finds missing chunks.
 *
 * To read part of a sealed segment in a regular file, load its index
 * (formats/segment/segment_index.h), look up the chunks of a record or tick, and restrict the
 * reader to them with bc_segment_reader_range(). */
#ifndef BC_FORMATS_SEGMENT_SEGMENT_READER_H
#define BC_FORMATS_SEGMENT_SEGMENT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/input_stream.h"
#include "formats/base/must_check.h"
#include "formats/segment/decode_ahead.h"
#include "formats/segment/segment.h"
#include "formats/segment/segment_header.h"

enum bc_segment_found {
	BC_FOUND_END,     /* the end; further calls return it again */
	BC_FOUND_SEGMENT, /* a header: see bc_segment_reader_header() */
	BC_FOUND_CHUNK,   /* a whole chunk */
	BC_FOUND_INDEX,   /* the index of a sealed segment, valid and consistent with the chunks */
	BC_FOUND_DAMAGE,  /* see bc_segment_reader_damage() */
};

struct bc_segment_damage {
	uint64_t offset;  /* in the stream */
	uint64_t bytes;   /* length of the damaged part */
	bool is_torn;     /* the file ends within a structure that starts here */
	uint32_t records; /* of the chunk, if only its header is intact; otherwise 0 */
	char what[96];    /* "chunk 3: torn: the file ends in its records" */
};

struct bc_segment_reader;

/* Starts reading at the stream's current position. The caller keeps the fd. `head` is data already
 * read from it (may be NULL if head_bytes is 0). Allocates about 2.2 MiB. Returns 0, -ENOMEM, or
 * -EINVAL if head_bytes exceeds 1 MiB. */
int bc_segment_reader_open(struct bc_segment_reader **reader, struct bc_input_stream stream,
	const uint8_t *head, size_t head_bytes) BC_MUST_CHECK;
void bc_segment_reader_close(struct bc_segment_reader *reader);

/* Restricts reading to bytes [offset, end) of the file, which must start with a chunk. The fd must
 * be seekable. Returns 0 or a negative errno. */
int bc_segment_reader_range(
	struct bc_segment_reader *reader, uint64_t offset, uint64_t end) BC_MUST_CHECK;

/* From now on, passes over the records of the chunks that needs() rejects by their headers (NULL:
 * all) without reading them, unless what follows is unknown. `fd` is a descriptor of the regular
 * file that is read, from its start or a range. */
void bc_segment_reader_skip_records(struct bc_segment_reader *reader, int fd,
	bool (*needs)(void *context, const struct bc_chunk *chunk), void *context);

/* Lets other cores decode the chunks that needs() accepts (NULL: all), and do the work (NULL: none)
 * on them, if `fd` has a single sealed segment, which is read from its start. `fd` is a descriptor
 * of the regular file. The reader finds the same; what can't be decoded ahead is decoded when its
 * turn comes. Frames that were are not read again, and their records are not in the caller's chunk:
 * use bc_segment_reader_records(). Call it at most once, before the first chunk is read. */
void bc_segment_reader_decode_ahead(struct bc_segment_reader *reader, int fd,
	bool (*needs)(void *context, const struct bc_chunk_info *info), void *context,
	const struct bc_chunk_work *work);

/* After BC_FOUND_CHUNK: its records, and the result of the work on them, or NULL. Valid until the
 * next read. */
const uint8_t *bc_segment_reader_records(const struct bc_segment_reader *reader, void **result);

/* From now on, reports each node of a page summary, with its hash, which is valid. `number` nodes
 * are before it in the summary. An unknown node has 0 bytes. */
void bc_segment_reader_on_node(struct bc_segment_reader *reader,
	void (*on_node)(void *context, uint32_t number, const uint8_t *node, size_t bytes),
	void *context);

/* Returns the next enum bc_segment_found, or a negative errno if reading fails. `chunk` is
 * filled in for BC_FOUND_CHUNK and otherwise unspecified. */
int bc_segment_read(struct bc_segment_reader *reader, struct bc_chunk *chunk) BC_MUST_CHECK;

/* The header of the current segment, or NULL if it had no valid one. Valid until the next read. */
const struct bc_segment_header *bc_segment_reader_header(const struct bc_segment_reader *reader);

/* After BC_FOUND_DAMAGE. Valid until the next read. */
const struct bc_segment_damage *bc_segment_reader_damage(const struct bc_segment_reader *reader);

/* After BC_FOUND_CHUNK, without bc_segment_reader_decode_ahead(): the chunk as in the file, header
 * and frame. After BC_FOUND_SEGMENT: the header's frame. Valid until the next read. */
const uint8_t *bc_segment_reader_encoded(
	const struct bc_segment_reader *reader, size_t *header_bytes);

/* The offset in the stream of the last result. */
uint64_t bc_segment_reader_offset(const struct bc_segment_reader *reader);

/* After BC_FOUND_END: whether the last thing read was a valid index. */
bool bc_segment_reader_is_sealed(const struct bc_segment_reader *reader);

#endif
