/* bcp1 frames: writing them, finding them in a stream, and reading streams by the receiver's rules.
 *
 * bc_bcp1_next() looks for a magic, then a header with a valid CRC, then a payload with a valid
 * CRC. Frames that are whole in the caller's bytes are used there; only one that is cut by the end
 * of a piece is copied to the reader's buffer. Invariant: each byte of the stream is counted once,
 * as part of a frame or as skipped. After a bad payload, the search continues one byte after the
 * start of its header, because a frame may start in it.
 *
 * bc_frames_next() adds what a header says about the frames before it: gaps, epochs, triggers. They
 * wait for a frame with samples, or the end; gaps with the same cause are merged. */
#include "formats/bus/bcp1.h"

#include <errno.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/bus/sample.h"

static const uint8_t magic[4] = {'B', 'C', 'P', '1'};

/* The header's CRC covers the bytes before it. */
#define CRC_AT 28

void bc_bcp1_write_header(uint8_t out[BC_BCP1_HEADER_BYTES], const struct bc_bcp1_header *header)
{
	memcpy(out, magic, sizeof(magic));
	bc_write_le16(out + 4, header->flags);
	out[6] = header->proc;
	out[7] = 0;
	bc_write_le32(out + 8, header->sequence);
	bc_write_le32(out + 12, header->samples);
	bc_write_le64(out + 16, header->tick);
	bc_write_le32(out + 24, header->lost);
	bc_write_le32(out + CRC_AT, libdeflate_crc32(0, out, CRC_AT));
}

size_t bc_bcp1_write_frame(uint8_t *frame, const struct bc_bcp1_header *header)
{
	size_t payload = (size_t)header->samples * BC_BCP1_SAMPLE_BYTES;
	uint8_t *samples = frame + BC_BCP1_HEADER_BYTES;

	bc_bcp1_write_header(frame, header);
	if (payload != 0)
		bc_write_le32(samples + payload, libdeflate_crc32(0, samples, payload));
	return bc_bcp1_frame_bytes(header->samples);
}

bool bc_bcp1_read_header(struct bc_bcp1_header *header, const uint8_t in[BC_BCP1_HEADER_BYTES])
{
	if (memcmp(in, magic, sizeof(magic)) != 0 ||
		bc_le32(in + CRC_AT) != libdeflate_crc32(0, in, CRC_AT))
		return false;
	header->flags = bc_le16(in + 4);
	header->proc = in[6];
	header->sequence = bc_le32(in + 8);
	header->samples = bc_le32(in + 12);
	header->tick = bc_le64(in + 16);
	header->lost = bc_le32(in + 24);
	return header->samples <= BC_BCP1_SAMPLES_MAX && header->tick < BC_TICK_END;
}

void bc_bcp1_reader_init(struct bc_bcp1_reader *reader)
{
	reader->skipped_bytes = 0;
	reader->offset = 0;
	reader->start = 0;
	reader->end = 0;
}

/* The offset in n bytes of the first magic, which the end may cut off; n: there is none. */
static size_t find_magic(const uint8_t *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		const uint8_t *first = memchr(p + at, magic[0], n - at);
		if (first == NULL)
			return n;
		at = (size_t)(first - p);
		size_t rest = n - at < sizeof(magic) ? n - at : sizeof(magic);
		if (memcmp(first, magic, rest) == 0)
			return at;
		at++;
	}
	return n;
}

/* The bytes being examined: the buffered ones if there are any, otherwise the caller's. Frames that
 * are whole in the caller's bytes are never copied. */
struct input {
	struct bc_bcp1_reader *reader;
	const uint8_t **data;
	size_t *bytes;
};

static bool is_buffered(const struct input *in)
{
	return in->reader->start != in->reader->end;
}

static const uint8_t *input_data(const struct input *in)
{
	return is_buffered(in) ? in->reader->buffer + in->reader->start : *in->data;
}

static size_t input_bytes(const struct input *in)
{
	return is_buffered(in) ? in->reader->end - in->reader->start : *in->bytes;
}

static void consume_input(struct input *in, size_t n)
{
	in->reader->offset += n;
	if (is_buffered(in)) {
		in->reader->start += n;
	} else if (n != 0) {
		*in->data += n;
		*in->bytes -= n;
	}
}

static void skip_input(struct input *in, size_t n)
{
	consume_input(in, n);
	in->reader->skipped_bytes += n;
}

/* Appends the caller's bytes to the buffered ones until `need` are buffered or none is left. */
static void buffer_input(struct input *in, size_t need)
{
	struct bc_bcp1_reader *r = in->reader;
	size_t buffered = r->end - r->start;
	size_t more = need - buffered < *in->bytes ? need - buffered : *in->bytes;

	if (r->end + more > sizeof(r->buffer)) {
		memmove(r->buffer, r->buffer + r->start, buffered);
		r->start = 0;
		r->end = buffered;
	}
	memcpy(r->buffer + r->end, *in->data, more);
	r->end += more;
	*in->data += more;
	*in->bytes -= more;
}

/* A frame's ticks: the header's, then the samples' deltas added one by one. */
static bool has_valid_ticks(const struct bc_bcp1_header *header, const uint8_t *samples)
{
	uint64_t tick = header->tick;

	if (tick < BC_TICK_END - BC_BCP1_SAMPLES_MAX * UINT64_C(0xFFFF))
		return true;
	for (uint32_t i = 1; i < header->samples; i++)
		tick += bc_le16(samples + (size_t)i * BC_BCP1_SAMPLE_BYTES + BC_SAMPLE_BYTES);
	return tick < BC_TICK_END;
}

enum bc_bcp1_found bc_bcp1_next(struct bc_bcp1_reader *reader, const uint8_t **data, size_t *bytes,
	bool last, struct bc_bcp1_frame *frame)
{
	struct input in = {.reader = reader, .data = data, .bytes = bytes};

	for (;;) {
		skip_input(&in, find_magic(input_data(&in), input_bytes(&in)));
		if (input_bytes(&in) == 0)
			return BC_BCP1_MORE;

		size_t need = BC_BCP1_HEADER_BYTES;
		bool is_header = false;
		if (input_bytes(&in) >= need) {
			is_header = bc_bcp1_read_header(&frame->header, input_data(&in));
			if (!is_header) {
				skip_input(&in, 1);
				continue;
			}
			need = bc_bcp1_frame_bytes(frame->header.samples);
		}
		if (input_bytes(&in) < need) {
			if (*bytes != 0) {
				buffer_input(&in, need);
				continue;
			}
			if (!last)
				return BC_BCP1_MORE;
			if (!is_header) {
				skip_input(&in, 1);
				continue;
			}
		}

		const uint8_t *samples = input_data(&in) + BC_BCP1_HEADER_BYTES;
		size_t payload = (size_t)frame->header.samples * BC_BCP1_SAMPLE_BYTES;
		frame->offset = reader->offset;
		if (input_bytes(&in) < need ||
			(payload != 0 && bc_le32(samples + payload) !=
						 libdeflate_crc32(0, samples, payload)) ||
			!has_valid_ticks(&frame->header, samples)) {
			frame->samples = NULL;
			skip_input(&in, 1);
			return BC_BCP1_DAMAGED;
		}
		frame->samples = samples;
		consume_input(&in, need);
		return BC_BCP1_FRAME;
	}
}

/* ---- saved streams */

int bc_frames_open(struct bc_frames **frames, struct bc_input_stream stream)
{
	struct bc_frames *f = malloc(sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	memset(f, 0, offsetof(struct bc_frames, reader));
	bc_bcp1_reader_init(&f->reader);
	f->stream = stream;
	f->data = f->buffer;
	*frames = f;
	return 0;
}

void bc_frames_close(struct bc_frames *frames)
{
	free(frames);
}

/* Gaps of the same cause at the same place are merged. */
static void add_gap(struct bc_frames *f, enum bc_gap_cause cause, bool is_exact, uint64_t lost)
{
	struct bc_frames_gap *gap = &f->gaps_found[cause];

	if (!f->has_gap[cause])
		*gap = (struct bc_frames_gap){
			.cause = cause, .is_exact = true, .offset = f->frame.offset};
	f->has_gap[cause] = true;
	gap->is_exact &= is_exact;
	gap->lost += lost;
}

/* Evaluates a valid header, whether or not its samples are whole. */
static void process_header(struct bc_frames *f)
{
	const struct bc_bcp1_header *header = &f->frame.header;

	if (f->has_sequence && header->sequence != f->sequence)
		add_gap(f, BC_GAP_SEQUENCE, false, 0);
	if ((header->flags & BC_BCP1_LOSS) != 0)
		add_gap(f, BC_GAP_BOARD, header->lost != BC_BCP1_LOST_MANY, header->lost);
	f->has_sequence = (header->flags & BC_BCP1_LAST) == 0;
	f->sequence = header->sequence + 1;
	f->epoch += header->tick < f->tick;
	f->tick = header->tick;
	f->triggers += (header->flags & BC_BCP1_TRIGGER) != 0;
}

static void process_damaged_frame(struct bc_frames *f)
{
	const struct bc_bcp1_header *header = &f->frame.header;

	process_header(f);
	add_gap(f, BC_GAP_CRC, true, header->samples);
	f->damaged_end = f->frame.offset + bc_bcp1_frame_bytes(header->samples);
	snprintf(f->damaged, sizeof(f->damaged),
		"frame %" PRIu32 " (%" PRIu32 " sample%s): ", header->sequence, header->samples,
		header->samples == 1 ? "" : "s");
}

/* Reports the bytes between the last whole frame and `offset` as damage. */
static void set_damage(struct bc_frames *f, uint64_t offset)
{
	f->has_damage = offset > f->whole_end;
	if (!f->has_damage)
		return;
	f->damage.offset = f->whole_end;
	f->damage.bytes = offset - f->whole_end;
	const char *what = f->damaged_end == 0 ? "bytes outside any frame"
			   : f->is_over && f->damaged_end > offset
				   ? "torn: the file ends in it"
				   : "wrong checksum of its samples";
	snprintf(f->damage.what, sizeof(f->damage.what), "%s%s",
		f->damaged_end != 0 ? f->damaged : "", what);
	f->damaged_end = 0;
}

static void process_frame(struct bc_frames *f)
{
	const struct bc_bcp1_header *header = &f->frame.header;

	set_damage(f, f->frame.offset);
	process_header(f);
	for (uint32_t i = 1; i < header->samples; i++)
		f->tick += bc_le16(
			f->frame.samples + (size_t)i * BC_BCP1_SAMPLE_BYTES + BC_SAMPLE_BYTES);
	f->has_frame = true;
	f->whole_end = f->reader.offset;
	f->frames++;
	f->samples += header->samples;
	f->has_last = (header->flags & BC_BCP1_LAST) != 0;
}

/* Reads up to the next frame, damaged or not, or the end. Returns 0 or a negative errno. */
static int read_frame(struct bc_frames *f)
{
	for (;;) {
		switch (bc_bcp1_next(&f->reader, &f->data, &f->bytes, f->is_read, &f->frame)) {
		case BC_BCP1_FRAME:
			process_frame(f);
			return 0;
		case BC_BCP1_DAMAGED:
			process_damaged_frame(f);
			return 0;
		case BC_BCP1_MORE:
			break;
		}
		if (f->is_read) {
			f->is_over = true;
			set_damage(f, f->reader.offset);
			return 0;
		}
		ssize_t n = bc_input_stream_read(f->stream, f->buffer, sizeof(f->buffer));
		if (n < 0 && n != -EBADMSG)
			return (int)n;
		f->error = n < 0 ? (int)n : 0;
		f->is_read = n <= 0;
		f->data = f->buffer;
		f->bytes = n > 0 ? (size_t)n : 0;
	}
}

/* Moves the next pending gap to f->gap. Returns false if none is pending. */
static bool pop_gap(struct bc_frames *f)
{
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		if (!f->has_gap[cause])
			continue;
		f->has_gap[cause] = false;
		f->gap = f->gaps_found[cause];
		f->gaps++;
		f->lost += f->gap.lost;
		return true;
	}
	return false;
}

int bc_frames_next(struct bc_frames *f)
{
	for (;;) {
		if (f->has_damage) {
			f->has_damage = false;
			return BC_FRAMES_DAMAGE;
		}
		bool is_place = f->is_over || (f->has_frame && f->frame.header.samples != 0);
		if (is_place && pop_gap(f))
			return BC_FRAMES_GAP;
		if (is_place && f->triggers != 0) {
			f->triggers--;
			return BC_FRAMES_TRIGGER;
		}
		if (f->has_frame) {
			f->has_frame = false;
			return BC_FRAMES_FRAME;
		}
		if (f->is_over)
			return f->error != 0 ? f->error : BC_FRAMES_END;
		int rc = read_frame(f);
		if (rc < 0)
			return rc;
	}
}
