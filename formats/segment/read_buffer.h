/* A buffer over a stream, for a reader that needs whole structures in memory and searches for the
 * next one after damage. Used by formats/segment/segment_reader.h. */
#ifndef BC_FORMATS_SEGMENT_READ_BUFFER_H
#define BC_FORMATS_SEGMENT_READ_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/input_stream.h"
#include "formats/base/must_check.h"

struct bc_read_buffer {
	struct bc_input_stream stream;
	bool at_end;       /* the stream has ended */
	uint64_t read_end; /* reading stops before this offset */
	uint64_t offset;   /* of bytes[start] in the stream */
	size_t start;      /* the buffered bytes: bytes[start .. end) */
	size_t end;
	size_t capacity;
	uint8_t *bytes; /* owned by the caller */
};

/* Starts at the stream's current position. `head` is data already read from it, at most `capacity`
 * bytes. */
void bc_read_buffer_open(struct bc_read_buffer *buffer, struct bc_input_stream stream,
	uint8_t *bytes, size_t capacity, const uint8_t *head, size_t head_bytes);

/* Drops the buffered bytes and reads only offset .. end from now on. The fd must be seekable.
 * Returns 0 or a negative errno. */
int bc_read_buffer_range(
	struct bc_read_buffer *buffer, uint64_t offset, uint64_t end) BC_MUST_CHECK;

/* Reads until `need` bytes are buffered, at most the capacity. Returns 1, 0 if the stream ends
 * before, or a negative errno. */
int bc_read_buffer_fill(struct bc_read_buffer *buffer, size_t need) BC_MUST_CHECK;

static inline const uint8_t *bc_read_buffer_data(const struct bc_read_buffer *buffer)
{
	return buffer->bytes + buffer->start;
}

static inline size_t bc_read_buffer_bytes(const struct bc_read_buffer *buffer)
{
	return buffer->end - buffer->start;
}

static inline void bc_read_buffer_consume(struct bc_read_buffer *buffer, size_t bytes)
{
	buffer->start += bytes;
	buffer->offset += bytes;
}

/* Skips to the next magic of one of our skippable frames, 0x184D2A50 .. 0x184D2A57, which may be
 * here. Returns 1, 0 if the stream ends first, or a negative errno. */
int bc_read_buffer_seek_magic(struct bc_read_buffer *buffer) BC_MUST_CHECK;

#endif
