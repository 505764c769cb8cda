#include "formats/bus/bcp1_writer.h"

#include <string.h>

#include "formats/base/bytes.h"

#define DELTA_MAX 0xFFFFu

void bc_bcp1_writer_init(struct bc_bcp1_writer *w)
{
	memset(w, 0, offsetof(struct bc_bcp1_writer, frame));
}

/* The next frame's header, which reports any pending loss and trigger. */
static struct bc_bcp1_header next_header(struct bc_bcp1_writer *w, uint64_t tick)
{
	struct bc_bcp1_header header = {.sequence = w->sequence++, .tick = tick};

	if (w->has_loss) {
		header.flags |= BC_BCP1_LOSS;
		header.lost = w->lost < BC_BCP1_LOST_MANY ? (uint32_t)w->lost : BC_BCP1_LOST_MANY;
	}
	if (w->has_trigger)
		header.flags |= BC_BCP1_TRIGGER;
	w->has_loss = false;
	w->has_trigger = false;
	w->lost = 0;
	w->has_started = true;
	return header;
}

static size_t write_empty_frame(
	struct bc_bcp1_writer *w, uint8_t *out, uint64_t tick, uint16_t flags)
{
	struct bc_bcp1_header header = next_header(w, tick);

	header.flags |= flags;
	w->tick = tick;
	return bc_bcp1_write_frame(out, &header);
}

/* Writes the frame that is being filled, if it has samples. */
static size_t flush_frame(struct bc_bcp1_writer *w, uint8_t *out)
{
	if (w->samples == 0)
		return 0;
	struct bc_bcp1_header header = next_header(w, w->first_tick);
	header.samples = w->samples;
	/* If all samples have processor 0, both forms are possible: prefer the one without flag. */
	if (w->is_agents && (!w->is_one_proc || w->has_nibble))
		header.flags |= BC_BCP1_AGENT;
	else
		header.proc = w->proc;
	size_t bytes = bc_bcp1_write_frame(w->frame, &header);
	memcpy(out, w->frame, bytes);
	w->samples = 0;
	return bytes;
}

/* Whether a sample can be added to the frame. */
static bool fits_frame(const struct bc_bcp1_writer *w, unsigned proc, bool is_agent, uint64_t tick)
{
	return w->samples < BC_BCP1_WRITER_SAMPLES && tick >= w->tick &&
	       tick - w->tick <= DELTA_MAX &&
	       ((w->is_one_proc && proc == w->proc) || (w->is_agents && is_agent));
}

static size_t start_epoch(struct bc_bcp1_writer *w, uint8_t *out, uint64_t tick)
{
	size_t n = flush_frame(w, out);

	if (!w->has_started || tick < w->tick)
		return n;
	if (w->tick == 0)
		n += write_empty_frame(w, out + n, 1, 0);
	return n + write_empty_frame(w, out + n, 0, 0);
}

size_t bc_bcp1_writer_add(struct bc_bcp1_writer *w, uint8_t *out,
	const uint8_t sample[BC_SAMPLE_BYTES], unsigned proc, uint64_t tick, bool is_epoch)
{
	unsigned nibble = sample[5] & 15;
	size_t n = 0;

	if (is_epoch)
		n = start_epoch(w, out, tick);
	else if (w->samples != 0 && !fits_frame(w, proc, nibble == proc, tick))
		n = flush_frame(w, out);
	if (w->samples == 0) {
		w->first_tick = tick;
		w->tick = tick;
		w->proc = (uint8_t)proc;
		w->is_one_proc = true;
		w->is_agents = true;
		w->has_nibble = false;
	}
	uint8_t *to = w->frame + BC_BCP1_HEADER_BYTES + (size_t)w->samples * BC_BCP1_SAMPLE_BYTES;
	memcpy(to, sample, BC_SAMPLE_BYTES);
	bc_write_le16(to + BC_SAMPLE_BYTES, (uint16_t)(tick - w->tick));
	w->is_one_proc &= proc == w->proc;
	w->is_agents &= nibble == proc;
	w->has_nibble |= nibble != 0;
	w->tick = tick;
	w->has_started = true;
	w->samples++;
	return n;
}

size_t bc_bcp1_writer_gap(struct bc_bcp1_writer *w, uint8_t *out, uint64_t lost, bool is_exact)
{
	size_t n = flush_frame(w, out);

	/* The first frame can have any number: a skipped number shows only after a frame. */
	if (!is_exact && !w->has_started)
		n += write_empty_frame(w, out + n, 0, 0);
	w->sequence += !is_exact;
	w->has_loss |= is_exact || lost != 0;
	w->lost += lost;
	return n;
}

size_t bc_bcp1_writer_trigger(struct bc_bcp1_writer *w, uint8_t *out)
{
	size_t n = flush_frame(w, out);

	/* A header can report only one trigger. */
	if (w->has_trigger)
		n += write_empty_frame(w, out + n, w->tick, 0);
	w->has_trigger = true;
	return n;
}

size_t bc_bcp1_writer_finish(struct bc_bcp1_writer *w, uint8_t *out)
{
	size_t n = flush_frame(w, out);

	return n + write_empty_frame(w, out + n, w->tick, BC_BCP1_LAST);
}
