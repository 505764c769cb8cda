/* A window on a stream, for readers that look at things whole and go on after damage: as much is
 * held as is asked for, what is done with is taken away. formats/segment/segment_reader.h
 * looks through one. */
#ifndef BC_FORMATS_SEGMENT_READ_BUFFER_H
#define BC_FORMATS_SEGMENT_READ_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/input_stream.h"
#include "formats/base/must_check.h"

struct bc_read_buffer {
	struct bc_input_stream stream;
	bool at_end;       /* the stream has no more */
	uint64_t read_end; /* no byte at or past this offset is read */
	uint64_t offset;   /* of the first byte held, bytes[start] */
	size_t start;
	size_t end;
	size_t room;
	uint8_t *bytes; /* the caller's, `room` of them */
};

/* Begins at the stream's present position; `head` are bytes that were read from it before, no more
 * than there is room for. */
void bc_read_buffer_open(struct bc_read_buffer *window, struct bc_input_stream stream,
	uint8_t *bytes, size_t room, const uint8_t *head, size_t head_bytes);

/* From now on shows [offset, end). The fd must be seekable. Returns 0 or a negative errno. */
int bc_read_buffer_range(
	struct bc_read_buffer *window, uint64_t offset, uint64_t end) BC_MUST_CHECK;

/* Tries to hold `need` bytes, no more than there is room for. Returns 1 if they are there, 0 if the
 * bytes end before, or a negative errno. */
int bc_read_buffer_fill(struct bc_read_buffer *window, size_t need) BC_MUST_CHECK;

static inline const uint8_t *bc_read_buffer_data(const struct bc_read_buffer *window)
{
	return window->bytes + window->start;
}

static inline size_t bc_read_buffer_bytes(const struct bc_read_buffer *window)
{
	return window->end - window->start;
}

static inline void bc_read_buffer_consume(struct bc_read_buffer *window, size_t bytes)
{
	window->start += bytes;
	window->offset += bytes;
}

/* Goes on to the next place, from here on, with a skippable frame's magic that one of our files
 * uses: 0x184D2A50 to 0x184D2A57. Returns 1, 0 at the end of the bytes, or a negative errno. */
int bc_read_buffer_seek_magic(struct bc_read_buffer *window) BC_MUST_CHECK;

#endif
