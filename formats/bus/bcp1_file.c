#include "formats/bus/bcp1_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/bus/sample.h"

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

/* Moves the next pending gap to f->gap. Returns false if there is none. */
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
