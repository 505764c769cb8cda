#include "daemon/decode.h"

#include <inttypes.h>

static void count_skipped(struct bc_decoder *d)
{
	bc_lane_counts(d->options.lane)->skipped_bytes += d->bcp1.skipped_bytes - d->skipped;
	d->skipped = d->bcp1.skipped_bytes;
}

/* What a frame's header says beside its samples: a damaged frame's is as good. */
static void take_header(struct bc_decoder *d, const struct bc_bcp1_frame *frame)
{
	const struct bc_bcp1_header *h = &frame->header;
	struct bc_lane *lane = d->options.lane;

	if (d->has_sequence && h->sequence != d->sequence) {
		bc_lane_gap(lane, BC_GAP_SEQUENCE, 0, false);
		bc_decode_damage(d,
			"offset %" PRIu64 ": frame %" PRIu32 " follows where %" PRIu32
			" was expected",
			frame->offset, h->sequence, d->sequence);
	}
	d->sequence = h->sequence + 1;
	d->has_sequence = (h->flags & BC_BCP1_LAST) == 0;
	if (!d->has_sequence && d->options.on_last != NULL)
		d->options.on_last(d->options.context);
	if ((h->flags & BC_BCP1_LOSS) != 0) {
		bc_lane_counts(lane)->board_lost += h->lost;
		d->told_lost += h->lost;
		bc_lane_gap(lane, BC_GAP_BOARD, h->lost, h->lost != BC_BCP1_LOST_MANY);
	}
	if (d->has_tick && (h->tick < d->seen_tick || d->wants_epoch)) {
		bc_lane_submit(lane);
		bc_decode_epoch(d, h->tick);
		bc_stamper_next_epoch(&d->stamper, d->stamper.epoch + 1);
	}
	d->wants_epoch = false;
	d->has_tick = true;
	d->seen_tick = h->tick;
	d->has_trigger = d->has_trigger || (h->flags & BC_BCP1_TRIGGER) != 0;
}

void bc_decode_explain_skipped(struct bc_decoder *d, uint64_t offset)
{
	if (d->skipped != d->explained && !d->is_in_damage)
		bc_decode_damage(d,
			"before offset %" PRIu64 ": %" PRIu64 " bytes of no valid frame", offset,
			d->skipped - d->explained);
	d->explained = d->skipped;
	d->is_in_damage = false;
}

/* Looks for the next frame. Returns false when the bytes are used up. */
static bool next_frame(struct bc_decoder *d, bool is_last)
{
	struct bc_bcp1_frame frame;
	enum bc_bcp1_found found = bc_bcp1_next(&d->bcp1, &d->at, &d->left, is_last, &frame);

	count_skipped(d);
	switch (found) {
	case BC_BCP1_MORE:
		return false;
	case BC_BCP1_DAMAGED:
		d->is_in_damage = true;
		take_header(d, &frame);
		bc_lane_gap(d->options.lane, BC_GAP_CRC, frame.header.samples, false);
		bc_decode_damage(d,
			"offset %" PRIu64 ": frame %" PRIu32 ": its %" PRIu32
			" samples are torn or fail their CRC",
			frame.offset, frame.header.sequence, frame.header.samples);
		return true;
	case BC_BCP1_FRAME:
		bc_decode_explain_skipped(d, frame.offset);
		take_header(d, &frame);
		d->samples = bc_samples_of_frame(&frame);
		d->run_kind = BC_RUN_SAMPLES;
		return true;
	}
	return false;
}

/* Sets the trigger event of the frame in hand. Returns false when it must wait. */
static bool set_trigger(struct bc_decoder *d)
{
	const struct bc_event event = {.kind = BC_EVENT_TRIGGER};

	if (!d->has_trigger || d->is_over)
		return true;
	/* Of a live source it stays until there is a chunk for it. */
	d->has_trigger = !bc_lane_event(d->options.lane, &d->stamper, &event, NULL);
	return !d->has_trigger || d->options.is_live;
}

bool bc_decode_frames(struct bc_decoder *d, bool is_last)
{
	d->is_bcp1 = true;
	do {
		if (!set_trigger(d) || !bc_decode_drain(d))
			return false;
	} while (!d->is_over && next_frame(d, is_last));
	return true;
}
