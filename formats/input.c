#include "formats/input.h"

#include <errno.h>
#include <lz4frame.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PACKED_BYTES (1u << 18)

struct bc_input {
	struct bc_stream stream;
	LZ4F_dctx *dctx; /* NULL: not compressed */
	bool is_between; /* compressed: between two LZ4 frames, where the bytes may end */
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
			/* Only whether it is compressed is wanted, and that takes four bytes. */
			if (in->end < 4 && n != 0)
				continue;
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

static ssize_t read_packed(struct bc_input *in, uint8_t *out, size_t room)
{
	for (;;) {
		if (in->start == in->end) {
			ssize_t n = bc_stream_read(in->stream, in->packed, PACKED_BYTES);
			if (n < 0)
				return n;
			in->start = 0;
			in->end = (size_t)n;
			if (n == 0)
				return in->is_between ? 0 : -EBADMSG;
		}
		size_t in_now = in->end - in->start;
		size_t out_now = room;
		size_t hint = LZ4F_decompress(
			in->dctx, out, &out_now, in->packed + in->start, &in_now, NULL);
		if (LZ4F_isError(hint))
			return -EBADMSG;
		in->start += in_now;
		in->is_between = hint == 0;
		if (out_now != 0)
			return (ssize_t)out_now;
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
