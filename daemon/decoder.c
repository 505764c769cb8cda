#include "daemon/decoder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/decode.h"

int bc_decoder_open(struct bc_decoder **decoder, const struct bc_decoder_options *options)
{
	struct bc_decoder *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return -ENOMEM;
	d->options = *options;
	d->tick_limit = BC_NO_TICK_LIMIT;
	bc_stamper_init(&d->stamper, options->mapping);
	bc_bcp1_reader_init(&d->bcp1);
	*decoder = d;
	return 0;
}

void bc_decoder_close(struct bc_decoder *d)
{
	free(d);
}

void bc_decoder_set_tick_limit(struct bc_decoder *d, uint64_t tick)
{
	d->tick_limit = tick;
}

void bc_decoder_end(struct bc_decoder *d)
{
	d->is_over = true;
}

bool bc_decoder_is_over(const struct bc_decoder *d)
{
	return d->is_over;
}

void bc_decoder_set_clock(struct bc_decoder *d, uint64_t clock_hz)
{
	d->options.clock_hz = clock_hz;
}

uint64_t bc_decoder_tick(const struct bc_decoder *d)
{
	return d->stamper.tick;
}

size_t bc_decoder_carried(const struct bc_decoder *d, const uint8_t **bytes)
{
	*bytes = d->is_bcp1 ? d->bcp1.hold + d->bcp1.start : d->carry;
	return d->is_bcp1 ? d->bcp1.end - d->bcp1.start : d->carried;
}

void bc_decode_damage(struct bc_decoder *d, const char *format, ...)
{
	char what[160];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	d->options.on_damage(d->options.context, what);
}

void bc_decode_epoch(struct bc_decoder *d, uint64_t first_tick)
{
	d->has_begun = true;
	d->options.on_epoch(d->options.context, first_tick);
}

/* The run in hand, whichever it is */

static uint32_t run_count(const struct bc_decoder *d)
{
	return d->run_kind == BC_RUN_SAMPLES ? d->samples.count : d->records.count;
}

static enum bc_stamp_end stamp(
	struct bc_decoder *d, struct bc_chunk *chunk, struct bc_stamped *stamped)
{
	if (d->run_kind == BC_RUN_SAMPLES)
		return bc_stamp_samples(&d->stamper, &d->samples, d->tick_limit, chunk, stamped);
	return bc_stamp_records(&d->stamper, &d->records, d->tick_limit, chunk, stamped);
}

static enum bc_stamp_end skip(struct bc_decoder *d, struct bc_stamped *stamped)
{
	if (d->run_kind == BC_RUN_SAMPLES)
		return bc_stamp_skip_samples(&d->stamper, &d->samples, d->tick_limit, stamped);
	return bc_stamp_skip_records(&d->stamper, &d->records, d->tick_limit, stamped);
}

/* The tick of the run's next sample. */
static uint64_t next_tick(const struct bc_decoder *d)
{
	return d->run_kind == BC_RUN_SAMPLES ? bc_samples_next_tick(&d->samples)
					     : bc_records_next_tick(&d->stamper, &d->records);
}

/* How much of a run may be taken before the recording is full, and the rest of it put back. */
static uint32_t hold_back(struct bc_decoder *d)
{
	uint64_t room = bc_lane_room(d->options.lane);
	uint32_t *count = d->run_kind == BC_RUN_SAMPLES ? &d->samples.count : &d->records.count;
	uint32_t held = *count > room ? *count - (uint32_t)room : 0;

	*count -= held;
	return held;
}

static void put_back(struct bc_decoder *d, uint32_t held)
{
	if (d->run_kind == BC_RUN_SAMPLES)
		d->samples.count += held;
	else
		d->records.count += held;
}

/* When the first record of the chunk being filled arrived: told by the chunk it comes from. */
static void carry_wall(struct bc_decoder *d)
{
	const struct bc_chunk_info *info = &d->records.source->info;
	double since = d->clock_hz != 0 ? (double)(int64_t)(d->stamper.tick - info->first_tick) *
						  1e9 / (double)d->clock_hz
					: 0;

	if (since < 0 || since > 9e18)
		since = 0;
	bc_lane_set_wall(d->options.lane, info->wall_ns + (int64_t)since);
}

bool bc_decode_drain(struct bc_decoder *d)
{
	struct bc_lane *lane = d->options.lane;
	struct bc_stamped stamped;

	while (!d->is_over && d->run_kind != BC_RUN_NONE && run_count(d) != 0) {
		if (!d->has_begun)
			bc_decode_epoch(d, next_tick(d));
		struct bc_chunk *chunk = bc_lane_chunk(lane, &d->stamper);
		enum bc_stamp_end end;
		uint32_t held = 0;
		if (chunk != NULL) {
			if (d->run_kind == BC_RUN_RECORDS && d->records.source != NULL)
				carry_wall(d);
			held = hold_back(d);
			end = stamp(d, chunk, &stamped);
			put_back(d, held);
			bc_lane_took(lane, &d->stamper, &stamped);
		} else if (d->options.is_live) {
			end = skip(d, &stamped);
			bc_lane_dropped(lane, &stamped);
		} else {
			return false;
		}
		if (d->is_over)
			break;
		if (end == BC_STAMP_FULL) {
			bc_lane_submit(lane);
		} else if (end == BC_STAMP_LIMIT) {
			switch (d->options.on_limit(d->options.context, next_tick(d))) {
			case BC_LIMIT_GO_ON:
				break;
			case BC_LIMIT_WAIT:
				return false;
			case BC_LIMIT_END:
				d->is_over = true;
				break;
			}
		}
	}
	if (d->run_kind == BC_RUN_SAMPLES) {
		d->seen_tick = d->samples.tick;
		d->raw_tick = d->samples.tick;
		d->raw_pace = d->samples.pace;
	}
	d->run_kind = BC_RUN_NONE;
	return true;
}

/* Breaks, and the end */

/* Nothing follows what is held: judges it. Returns false when it must wait. */
static bool judge_rest(struct bc_decoder *d, const char *where)
{
	if (d->is_bcp1) {
		d->left = 0;
		if (!bc_decode_frames(d, true))
			return false;
		bc_decode_explain_skipped(d, d->bcp1.offset);
	}
	if (d->carried != 0) {
		bc_lane_counts(d->options.lane)->skipped_bytes += d->carried;
		bc_decode_damage(d,
			"%s is torn: %zu bytes behind record %" PRIu64 ", fewer than a record has",
			where, d->carried, d->records_read);
		d->carried = 0;
	}
	return true;
}

/* What the board counts as lost, its frames may have told of already. */
static uint64_t untold_loss(struct bc_decoder *d, const struct bc_source_break *broken)
{
	uint64_t lost = broken->lost > d->told_lost ? broken->lost - d->told_lost : 0;

	d->told_lost += lost;
	bc_lane_counts(d->options.lane)->board_lost += lost;
	return lost;
}

/* The stream breaks. Returns false when that must wait. */
static bool push_break(struct bc_decoder *d, const struct bc_source_break *broken)
{
	struct bc_lane *lane = d->options.lane;
	bool is_loss = broken->cause == BC_GAP_BOARD;
	struct bc_event gap = {
		.kind = BC_EVENT_GAP,
		.cause = (uint8_t)broken->cause,
		.duration_ns = broken->duration_ns,
	};

	if (!d->is_judged && broken->is_cut && !judge_rest(d, "the stream before a break"))
		return false;
	if (!d->is_judged) {
		d->is_judged = true;
		d->break_lost = is_loss ? untold_loss(d, broken) : 0;
	}
	gap.value = d->break_lost;
	gap.exact = is_loss;
	bool has_gap = !is_loss || gap.value != 0;
	if (has_gap && !bc_lane_event(lane, &d->stamper, &gap, NULL)) {
		if (!d->options.is_live)
			return false;
		bc_lane_gap_lasting(lane, broken->cause, gap.value, gap.exact, gap.duration_ns);
	}
	if (broken->is_restart) {
		d->has_sequence = false;
		d->wants_epoch = d->is_bcp1;
		d->told_lost = 0;
	}
	return true;
}

bool bc_decoder_push(struct bc_decoder *d, const struct bc_source_data *data)
{
	bool is_done;

	if (d->is_over)
		return true;
	if (!d->in_piece) {
		d->in_piece = true;
		d->at = data->bytes;
		d->left = data->count;
		d->format = data->format;
		d->is_judged = false;
		if (data->format == BC_FORMAT_SEGMENT)
			bc_decode_begin_chunk(d, data);
		if (data->format == BC_FORMAT_RAW6 && data->broken == NULL)
			bc_decode_pace(d, data);
	}
	if (data->broken != NULL) {
		is_done = push_break(d, data->broken);
		d->in_piece = !is_done;
		return is_done;
	}
	switch (data->format) {
	case BC_FORMAT_SEGMENT:
		is_done = bc_decode_chunk(d, data);
		break;
	case BC_FORMAT_BCP1:
		is_done = bc_decode_frames(d, false);
		break;
	default:
		is_done = bc_decode_plain(d);
	}
	d->in_piece = !is_done;
	return is_done;
}

bool bc_decoder_finish(struct bc_decoder *d)
{
	return d->is_over || judge_rest(d, "the end");
}
