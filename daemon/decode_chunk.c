#include "daemon/decode.h"

#include <inttypes.h>

/* The tick before a chunk's first record: what that record's own delta is added to. */
static uint64_t tick_before(const struct bc_chunk *chunk)
{
	uint32_t time = chunk->info.records != 0 ? bc_le32(chunk->records + 8) : 0;

	return chunk->info.first_tick - (time != BC_TIME_NONE ? time : 0);
}

void bc_decode_begin_chunk(struct bc_decoder *d, const struct bc_source_data *data)
{
	const struct bc_chunk *chunk = data->chunk;
	struct bc_lane *lane = d->options.lane;
	uint64_t tick = tick_before(chunk);

	if (data->missing != 0) {
		bc_lane_gap(lane, BC_GAP_DAMAGED, data->missing, true);
		bc_decode_damage(d, "%" PRIu64 " records are missing before record %" PRIu64,
			data->missing, chunk->info.first_record);
	}
	if (!d->has_begun || chunk->info.epoch != d->stamper.epoch) {
		bc_lane_submit(lane);
		bc_decode_epoch(d, chunk->info.first_tick);
		bc_stamper_next_epoch(&d->stamper, chunk->info.epoch);
		d->stamper.record_tick = tick;
	}
	d->stamper.tick = tick;
	d->next_event = 0;
	d->clock_hz = data->header != NULL && data->header->clock_hz != 0 ? data->header->clock_hz
									  : d->options.clock_hz;
	d->records = (struct bc_records){.at = chunk->records, .source = chunk};
	d->run_kind = BC_RUN_RECORDS;
}

/* Takes the chunk's records up to its next event that is to be carried over, then that event.
 * Returns false when it must wait; sets *is_done behind the last. */
static bool push_event(struct bc_decoder *d, const struct bc_source_data *data, bool *is_done)
{
	const struct bc_chunk *chunk = data->chunk;
	struct bc_lane *lane = d->options.lane;

	while (d->next_event < chunk->info.events &&
		chunk->events[d->next_event].kind == BC_EVENT_ANCHOR)
		d->next_event++;
	bool has_event = d->next_event < chunk->info.events;
	const struct bc_event *event = &chunk->events[d->next_event];
	uint32_t until = has_event ? event->position : chunk->info.records;
	d->run_kind = BC_RUN_RECORDS;
	d->records.count = until - d->records.position;
	if (!bc_decode_drain(d))
		return false;
	*is_done = d->is_over || !has_event;
	if (*is_done)
		return true;
	if (!bc_lane_event(lane, &d->stamper, event, chunk->text + event->text)) {
		if (!d->options.is_live)
			return false;
		if (event->kind == BC_EVENT_GAP)
			bc_lane_gap_lasting(lane,
				event->cause < BC_GAP_CAUSES ? event->cause : BC_GAP_DAMAGED,
				event->value, event->exact, event->duration_ns);
	}
	d->next_event++;
	return true;
}

bool bc_decode_chunk(struct bc_decoder *d, const struct bc_source_data *data)
{
	bool is_done = d->is_over;

	while (!is_done)
		if (!push_event(d, data, &is_done))
			return false;
	d->run_kind = BC_RUN_NONE;
	return true;
}
