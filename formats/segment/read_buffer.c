#include "formats/segment/read_buffer.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/bytes.h"

#define MAGIC_FIRST 0x184D2A50u

void bc_read_buffer_open(struct bc_read_buffer *b, struct bc_input_stream stream, uint8_t *bytes,
	size_t capacity, const uint8_t *head, size_t head_bytes)
{
	assert(head_bytes <= capacity);
	*b = (struct bc_read_buffer){
		.stream = stream,
		.read_end = UINT64_MAX,
		.end = head_bytes,
		.capacity = capacity,
		.bytes = bytes,
	};
	if (head_bytes != 0)
		memcpy(bytes, head, head_bytes);
}

int bc_read_buffer_range(struct bc_read_buffer *b, uint64_t offset, uint64_t end)
{
	if (lseek(b->stream.fd, (off_t)offset, SEEK_SET) < 0)
		return -errno;
	b->at_end = false;
	b->start = 0;
	b->end = 0;
	b->offset = offset;
	b->read_end = end;
	return 0;
}

int bc_read_buffer_fill(struct bc_read_buffer *b, size_t need)
{
	assert(need <= b->capacity);
	if (b->start + need > b->capacity) {
		memmove(b->bytes, bc_read_buffer_data(b), bc_read_buffer_bytes(b));
		b->end -= b->start;
		b->start = 0;
	}
	while (bc_read_buffer_bytes(b) < need && !b->at_end) {
		size_t room = b->capacity - b->end;
		uint64_t left = b->read_end - (b->offset + bc_read_buffer_bytes(b));
		ssize_t n = left == 0 ? 0
				      : bc_input_stream_read(b->stream, b->bytes + b->end,
						left < room ? (size_t)left : room);
		if (n < 0)
			return (int)n;
		b->at_end = n == 0;
		b->end += (size_t)n;
	}
	return bc_read_buffer_bytes(b) >= need;
}

int bc_read_buffer_seek_magic(struct bc_read_buffer *b)
{
	for (;;) {
		/* The magics differ only in the low three bits. */
		const uint8_t *p = bc_read_buffer_data(b);
		size_t n = bc_read_buffer_bytes(b);
		size_t at = 0;
		while (at + 4 <= n && (bc_le32(p + at) & ~7u) != MAGIC_FIRST)
			at++;
		bc_read_buffer_consume(b, at);
		if (at + 4 <= n)
			return 1;
		if (b->at_end) {
			bc_read_buffer_consume(b, bc_read_buffer_bytes(b));
			return 0;
		}
		int rc = bc_read_buffer_fill(b, bc_read_buffer_bytes(b) + 1);
		if (rc < 0)
			return rc;
	}
}
