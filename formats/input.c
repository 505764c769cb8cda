#include "formats/input.h"

#include <errno.h>
#include <lz4frame.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/segment.h"

#define PACKED_BYTES (1u << 18)

/* The length that stands before each block of an LZ4 frame. */
#define LENGTH_BYTES 4u

struct bc_input {
	struct bc_stream stream;
	LZ4F_dctx *dctx; /* NULL: not compressed */
	bool is_between; /* compressed: between two LZ4 frames, where the bytes may end */
	size_t hint;     /* compressed: bytes that the decoder asks for */
	size_t start;    /* bytes read and not yet given: packed[start .. end) */
	size_t end;
	uint8_t packed[PACKED_BYTES];
};

_Static_assert(PACKED_BYTES >= BC_PROBE_BYTES, "the head is kept in the buffer");

/* Reads on until the format is told. */
static int read_head(struct bc_input *in, enum bc_format wanted, struct bc_probe *probe)
{
	for (;;) {
		size_t room = BC_PROBE_BYTES - in->end;
		ssize_t n = bc_stream_read(in->stream, in->packed + in->end, room);
		if (n < 0)
			return (int)n;
		in->end += (size_t)n;
		bool is_told = bc_probe(probe, in->packed, in->end, n == 0);
		if (wanted != BC_FORMAT_UNKNOWN) {
			/* Only whether it is compressed is wanted, and that takes four bytes; but a
			 * raw capture is one, whoever names its form. */
			if (n != 0 && (in->end < 4 ||
					      (!is_told && bc_may_be_capture(in->packed, in->end))))
				continue;
			probe->is_capture &= probe->format == wanted;
			/* A segment named as one of the plain formats: what LZ4 makes of it. */
			if (probe->format == BC_FORMAT_SEGMENT && wanted != BC_FORMAT_SEGMENT)
				probe->is_lz4 = true;
			probe->format = wanted;
			is_told = true;
		}
		if (is_told)
			return probe->format != BC_FORMAT_UNKNOWN ? 0 : -EINVAL;
	}
}

/* Whether the stream is a regular file that ends as a sealed segment does. */
static bool ends_as_segment(int fd)
{
	uint8_t trailer[BC_TRAILER_BYTES];
	uint64_t index_offset;
	uint64_t file_bytes;
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= BC_TRAILER_BYTES &&
	       pread(fd, trailer, sizeof(trailer), st.st_size - BC_TRAILER_BYTES) ==
		       (ssize_t)sizeof(trailer) &&
	       bc_trailer_read(&index_offset, &file_bytes, trailer);
}

int bc_input_open(struct bc_input **input, struct bc_stream stream, enum bc_format wanted,
	struct bc_probe *probe)
{
	struct bc_input *in = malloc(sizeof(*in));

	memset(probe, 0, sizeof(*probe));
	if (in == NULL)
		return -ENOMEM;
	memset(in, 0, offsetof(struct bc_input, packed));
	in->stream = stream;
	in->is_between = true;
	int rc = read_head(in, wanted, probe);
	if (rc == -EINVAL && ends_as_segment(stream.fd)) {
		memset(probe, 0, sizeof(*probe));
		probe->format = BC_FORMAT_SEGMENT;
		rc = 0;
	}
	if (rc == 0 && probe->is_lz4 && probe->format != BC_FORMAT_SEGMENT &&
		LZ4F_isError(LZ4F_createDecompressionContext(&in->dctx, LZ4F_VERSION)))
		rc = -ENOMEM;
	if (rc != 0) {
		bc_input_close(in);
		return rc;
	}
	*input = in;
	return 0;
}

void bc_input_close(struct bc_input *in)
{
	if (in == NULL)
		return;
	LZ4F_freeDecompressionContext(in->dctx);
	free(in);
}

/* Gives the decoder so many of the bytes read. Returns how many it gave, or -EBADMSG. */
static ssize_t decode(struct bc_input *in, uint8_t *out, size_t room, size_t bytes)
{
	size_t in_now = bytes;
	size_t out_now = room;

	in->hint = LZ4F_decompress(in->dctx, out, &out_now, in->packed + in->start, &in_now, NULL);
	if (LZ4F_isError(in->hint))
		return -EBADMSG;
	in->start += in_now;
	if (bytes != 0)
		in->is_between = in->hint == 0;
	return (ssize_t)out_now;
}

static ssize_t read_packed(struct bc_input *in, uint8_t *out, size_t room)
{
	for (;;) {
		/* A call that finds damage doesn't tell what it decoded before it. So each is given
		 * no more than one thing to look at: first none, for what is decoded already, then
		 * a block without the next one's length, which the decoder asks for with it. */
		ssize_t n = decode(in, out, room, 0);
		if (n != 0)
			return n;
		if (in->start == in->end) {
			n = bc_stream_read(in->stream, in->packed, PACKED_BYTES);
			if (n < 0)
				return n;
			in->start = 0;
			in->end = (size_t)n;
			if (n == 0)
				return in->is_between ? 0 : -EBADMSG;
		}
		size_t bytes = in->hint > LENGTH_BYTES ? in->hint - LENGTH_BYTES : LENGTH_BYTES;
		n = decode(
			in, out, room, bytes < in->end - in->start ? bytes : in->end - in->start);
		if (n != 0)
			return n;
	}
}

ssize_t bc_input_read(struct bc_input *in, uint8_t *out, size_t room)
{
	if (in->dctx != NULL)
		return read_packed(in, out, room);
	if (in->start == in->end)
		return bc_stream_read(in->stream, out, room);
	size_t n = in->end - in->start < room ? in->end - in->start : room;
	memcpy(out, in->packed + in->start, n);
	in->start += n;
	return (ssize_t)n;
}

int bc_input_segments(struct bc_input *in, struct bc_segment_reader **reader)
{
	return bc_segment_reader_open(
		reader, in->stream, in->packed + in->start, in->end - in->start);
}

int bc_input_capture(struct bc_input *in, struct bc_raw_reader **reader)
{
	return bc_raw_reader_open(reader, in->stream, in->packed + in->start, in->end - in->start);
}
