/* Opens a trace: reads its head, has its compression and format detected, and then reads on,
 * decompressed, from the first byte. The head stays in `packed` until it has been read again as
 * data. */
#include "formats/codec/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/text.h"
#include "formats/segment/segment.h"

#define PACKED_BYTES (1u << 18)

/* Enough to tell what is not text. */
#define HEAD_BYTES 4096u

struct bc_input {
	struct bc_input_stream stream;
	struct bc_unpacker *unpacker; /* NULL: not compressed */
	enum bc_packing packing;
	unsigned window_log;
	const char *layout;
	uint64_t read_bytes; /* bytes read from the stream */
	size_t start;        /* packed[start, end) have not been returned yet */
	size_t end;
	uint8_t packed[PACKED_BYTES];
};

_Static_assert(PACKED_BYTES >= BC_PROBE_BYTES, "the head is kept in the buffer");

/* True if the input, decompressed if need be, can't be text; sets probe->err. Binary records may
 * begin with the same bytes. */
static bool begins_as_foreign(const struct bc_input *in, struct bc_probe *probe)
{
	uint8_t inner[HEAD_BYTES];
	const uint8_t *head = in->packed;
	ssize_t n = (ssize_t)in->end;

	if (probe->packing != BC_PACKING_NONE) {
		head = inner;
		n = bc_unpack_head(
			inner, sizeof(inner), probe->packing, in->packed, in->end, in->window_log);
	}
	return n > 0 && bc_describe_foreign(probe->err, sizeof(probe->err), probe->packing, head,
				(size_t)n, false);
}

/* Sets the probe for a format that is given. Returns 0 or -EINVAL. */
static int use_given(const struct bc_input *in, struct bc_probe *probe, enum bc_format given)
{
	bool is_segment = probe->format == BC_FORMAT_SEGMENT;

	if (bc_format_info(given)->is_text && !is_segment && begins_as_foreign(in, probe))
		return -EINVAL;
	if (is_segment && given != BC_FORMAT_SEGMENT) {
		if (probe->packing != BC_PACKING_NONE) {
			snprintf(probe->err, sizeof(probe->err),
				"a segment compressed with %s, which can only be read as a segment",
				bc_packing_name(probe->packing));
			return -EINVAL;
		}
		/* It is to be read as one of the plain formats: its decompressed bytes. */
		probe->packing = probe->frames;
	} else if (!is_segment && given == BC_FORMAT_SEGMENT && probe->packing == probe->frames) {
		/* No intact header was found, but its frames. */
		probe->packing = BC_PACKING_NONE;
	}
	probe->format = given;
	return 0;
}

/* Reads until the format is known. */
static int read_head(
	struct bc_input *in, enum bc_format given, unsigned window_log, struct bc_probe *probe)
{
	for (;;) {
		size_t capacity = BC_PROBE_BYTES - in->end;
		ssize_t n = bc_input_stream_read(in->stream, in->packed + in->end, capacity);
		/* What was read before a stop is all there is. */
		bool is_stopped = n == -ECANCELED && in->end != 0;
		if (n < 0 && !is_stopped)
			return (int)n;
		n = is_stopped ? 0 : n;
		in->end += (size_t)n;
		in->read_bytes = in->end;
		bool is_known = bc_probe(probe, in->packed, in->end, n == 0, window_log);
		if (given != BC_FORMAT_UNKNOWN) {
			/* The format is given, so a few bytes show whether the input is compressed.
			 * But whether LZ4 or zstd is around a segment must be known. */
			if (n != 0 && !is_known &&
				(given == BC_FORMAT_SEGMENT ||
					!bc_packing_is_certain(in->packed, in->end)))
				continue;
			return use_given(in, probe, given);
		}
		if (is_known)
			return probe->format != BC_FORMAT_UNKNOWN ? 0
			       : is_stopped                       ? -ECANCELED
								  : -EINVAL;
	}
}

/* True if the stream is a regular file that ends like a sealed segment. */
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

int bc_input_open(struct bc_input **input, struct bc_input_stream stream, enum bc_format given,
	unsigned window_log, struct bc_probe *probe)
{
	struct bc_input *in = malloc(sizeof(*in));

	memset(probe, 0, sizeof(*probe));
	if (in == NULL)
		return -ENOMEM;
	memset(in, 0, offsetof(struct bc_input, packed));
	in->stream = stream;
	in->window_log = window_log;
	int rc = read_head(in, given, window_log, probe);
	if (rc == -EINVAL && given == BC_FORMAT_UNKNOWN && ends_as_segment(stream.fd)) {
		*probe = (struct bc_probe){.format = BC_FORMAT_SEGMENT, .frames = probe->frames};
		rc = 0;
	}
	in->layout = probe->layout;
	if (rc == 0 && probe->packing != BC_PACKING_NONE) {
		in->packing = probe->packing;
		in->unpacker = bc_unpack_open(in->packing, window_log);
		rc = in->unpacker != NULL ? 0 : -ENOMEM;
	}
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
	bc_unpack_close(in->unpacker);
	free(in);
}

static ssize_t read_stream(struct bc_input *in, uint8_t *out, size_t capacity)
{
	ssize_t n = bc_input_stream_read(in->stream, out, capacity);

	in->read_bytes += n > 0 ? (uint64_t)n : 0;
	return n;
}

static ssize_t read_packed(struct bc_input *in, uint8_t *out, size_t capacity)
{
	size_t consumed;

	for (;;) {
		/* First, what the decoder still holds. */
		ssize_t n = bc_unpack(in->unpacker, out, capacity, NULL, 0, &consumed);
		if (n != 0)
			return n;
		if (in->start == in->end) {
			n = read_stream(in, in->packed, PACKED_BYTES);
			if (n < 0)
				return n;
			in->start = 0;
			in->end = (size_t)n;
			if (n == 0)
				return bc_unpack_may_end(in->unpacker) ? 0 : -EBADMSG;
		}
		n = bc_unpack(in->unpacker, out, capacity, in->packed + in->start,
			in->end - in->start, &consumed);
		in->start += consumed;
		if (n != 0)
			return n;
	}
}

ssize_t bc_input_read(struct bc_input *in, uint8_t *out, size_t capacity)
{
	if (in->unpacker != NULL)
		return read_packed(in, out, capacity);
	if (in->start == in->end)
		return read_stream(in, out, capacity);
	size_t n = in->end - in->start < capacity ? in->end - in->start : capacity;
	memcpy(out, in->packed + in->start, n);
	in->start += n;
	return (ssize_t)n;
}

/* Parses the header of a segment that starts here. Returns false if it is invalid or not whole. */
static bool read_header(struct bc_segment_header *header, const uint8_t *head, size_t bytes)
{
	if (bytes < BC_EMPTY_FRAME_BYTES + BC_SKIPPABLE_BYTES)
		return false;
	head += BC_EMPTY_FRAME_BYTES;
	bytes -= BC_EMPTY_FRAME_BYTES;
	size_t length = bc_segment_header_bytes(head);
	return length != 0 && length <= bytes && bc_segment_header_read(header, head, length);
}

bool bc_input_segment_header(const struct bc_input *in, struct bc_segment_header *header)
{
	const uint8_t *head = in->packed + in->start;
	size_t bytes = in->end - in->start;

	if (in->unpacker == NULL)
		return read_header(header, head, bytes);
	size_t capacity = BC_EMPTY_FRAME_BYTES + BC_SEGMENT_HEADER_MAX;
	uint8_t *plain = malloc(capacity);
	ssize_t n = plain != NULL ? bc_unpack_head(plain, capacity, in->packing, head, bytes,
					    in->window_log)
				  : 0;
	bool is_whole = n > 0 && read_header(header, plain, (size_t)n);
	free(plain);
	return is_whole;
}

const char *bc_input_layout(const struct bc_input *in)
{
	return in->layout;
}

uint64_t bc_input_position(const struct bc_input *in)
{
	return in->read_bytes - (in->end - in->start);
}

static ssize_t read_unpacked(void *context, void *out, size_t capacity)
{
	return bc_input_read(context, out, capacity);
}

struct bc_input_stream bc_input_stream(struct bc_input *in)
{
	struct bc_input_stream stream = in->stream;

	stream.read = read_unpacked;
	stream.context = in;
	return stream;
}

/* The frames of a segment belong to its format; compression around it is undone first. */
int bc_input_segments(struct bc_input *in, struct bc_segment_reader **reader)
{
	if (in->unpacker != NULL)
		return bc_segment_reader_open(reader, bc_input_stream(in), NULL, 0);
	return bc_segment_reader_open(
		reader, in->stream, in->packed + in->start, in->end - in->start);
}
