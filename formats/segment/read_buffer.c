#include "formats/segment/read_buffer.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "formats/base/bytes.h"

#define MAGIC_FIRST 0x184D2A50u

void bc_read_buffer_open(struct bc_read_buffer *w, struct bc_input_stream stream, uint8_t *bytes,
	size_t room, const uint8_t *head, size_t head_bytes)
{
	assert(head_bytes <= room);
	*w = (struct bc_read_buffer){
		.stream = stream,
		.read_end = UINT64_MAX,
		.end = head_bytes,
		.room = room,
		.bytes = bytes,
	};
	if (head_bytes != 0)
		memcpy(bytes, head, head_bytes);
}

int bc_read_buffer_range(struct bc_read_buffer *w, uint64_t offset, uint64_t end)
{
	if (lseek(w->stream.fd, (off_t)offset, SEEK_SET) < 0)
		return -errno;
	w->at_end = false;
	w->start = 0;
	w->end = 0;
	w->offset = offset;
	w->read_end = end;
	return 0;
}

int bc_read_buffer_fill(struct bc_read_buffer *w, size_t need)
{
	assert(need <= w->room);
	if (w->start + need > w->room) {
		memmove(w->bytes, bc_read_buffer_data(w), bc_read_buffer_bytes(w));
		w->end -= w->start;
		w->start = 0;
	}
	while (bc_read_buffer_bytes(w) < need && !w->at_end) {
		size_t room = w->room - w->end;
		uint64_t left = w->read_end - (w->offset + bc_read_buffer_bytes(w));
		ssize_t n = left == 0 ? 0
				      : bc_input_stream_read(w->stream, w->bytes + w->end,
						left < room ? (size_t)left : room);
		if (n < 0)
			return (int)n;
		w->at_end = n == 0;
		w->end += (size_t)n;
	}
	return bc_read_buffer_bytes(w) >= need;
}

int bc_read_buffer_seek_magic(struct bc_read_buffer *w)
{
	for (;;) {
		/* All the magics end in the same three bytes; the first tells them apart. */
		const uint8_t *p = bc_read_buffer_data(w);
		size_t n = bc_read_buffer_bytes(w);
		size_t at = 0;
		while (at + 4 <= n && (bc_le32(p + at) & ~7u) != MAGIC_FIRST)
			at++;
		bc_read_buffer_consume(w, at);
		if (at + 4 <= n)
			return 1;
		if (w->at_end) {
			bc_read_buffer_consume(w, bc_read_buffer_bytes(w));
			return 0;
		}
		int rc = bc_read_buffer_fill(w, bc_read_buffer_bytes(w) + 1);
		if (rc < 0)
			return rc;
	}
}
