#include "daemon/lane_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/clock.h"
#include "formats/chunk_cut.h"

/* Slots */

/* A chunk gets nothing more. */
void bc_lane_leave(struct bc_lane *l, const struct bc_chunk *chunk)
{
	if (l->options.taps != NULL)
		bc_taps_end(l->options.taps, chunk);
	if (l->options.watch != NULL)
		bc_watch_leave(l->options.watch, chunk);
}

void bc_lane_discard(struct bc_lane *l, struct bc_chunk *chunk)
{
	l->counts->in_flight -= chunk->info.records;
	l->counts->dropped_idle += chunk->info.records;
	bc_chunk_reset(chunk, l->tick, l->epoch);
}

void bc_lane_drop_oldest(struct bc_lane *l)
{
	struct bc_slot *slot = bc_flight_take(&l->flight);

	bc_lane_discard(l, &slot->chunk);
	bc_pipeline_give_back(l->options.pipeline, slot);
}

/* Makes room in the flight recorder for one chunk more than `behind` records. */
static void trim_flight(struct bc_lane *l, uint64_t behind)
{
	while (bc_flight_is_over(&l->flight, behind, uv_hrtime()))
		bc_lane_drop_oldest(l);
}

struct bc_slot *bc_lane_take_slot(struct bc_lane *l)
{
	if (l->ending != NULL && !bc_lane_send_end(l))
		return NULL;
	struct bc_slot *slot = bc_pipeline_take(l->options.pipeline);
	if (slot == NULL && l->state == BC_LANE_FLIGHT) {
		slot = bc_flight_take(&l->flight);
		if (slot != NULL)
			bc_lane_discard(l, &slot->chunk);
	}
	if (slot == NULL)
		return NULL;
	slot->cut_after = false;
	slot->is_last = false;
	slot->recording = NULL;
	slot->since_ns = uv_hrtime();
	slot->until_ns = slot->since_ns;
	bc_chunk_reset(&slot->chunk, l->tick, l->epoch);
	slot->chunk.info.wall_ns = bc_wall_ns();
	if (slot->raw != NULL)
		bc_raw_keep_begin(&l->raw, slot->raw, l->recording != NULL ? l->recording->tag : 0);
	return slot;
}

/* Hands on a slot of the recording under way. */
void bc_lane_send_slot(
	struct bc_lane *l, struct bc_slot *slot, const struct bc_recording *recording)
{
	struct bc_chunk_info *info = &slot->chunk.info;

	slot->recording = recording;
	info->recording_tag = recording->tag;
	info->first_record = l->sent;
	l->sent += info->records;
	bc_pipeline_send(l->options.pipeline, slot);
}

void bc_lane_submit(struct bc_lane *l)
{
	struct bc_slot *slot = l->filling;

	if (slot == NULL || bc_slot_is_empty(slot))
		return;
	bc_lane_leave(l, &slot->chunk);
	switch (l->state) {
	case BC_LANE_IDLE:
		bc_lane_discard(l, &slot->chunk);
		return;
	case BC_LANE_FLIGHT:
		trim_flight(l, slot->chunk.info.records);
		bc_flight_add(&l->flight, slot);
		break;
	case BC_LANE_RECORDING:
		uv_timer_stop(&l->flush);
		bc_lane_send_slot(l, slot, l->recording);
		break;
	}
	l->filling = NULL;
}

/* The chunk being filled */

/* The chunk being filled, with room for the gaps that wait, one event more and an anchor; NULL when
 * none is free. */
struct bc_chunk *bc_lane_filling_chunk(struct bc_lane *l, uint32_t epoch)
{
	uint32_t events = bc_lane_count_pending(l) + 2;

	if (l->has_cut && !bc_lane_send_marked(l))
		return NULL;
	if (l->filling != NULL && !bc_chunk_is_empty(&l->filling->chunk) &&
		(l->filling->chunk.info.epoch != epoch ||
			!bc_chunk_has_room(&l->filling->chunk, events)))
		bc_lane_submit(l);
	l->epoch = epoch;
	if (l->filling != NULL && bc_chunk_is_empty(&l->filling->chunk)) {
		/* Taken for samples that were all dropped, or raw bytes, or left by a chunk that
		 * nobody keeps. */
		struct bc_chunk_info *info = &l->filling->chunk.info;
		info->epoch = epoch;
		info->first_tick = l->tick;
		info->last_tick = l->tick;
		info->wall_ns = bc_wall_ns();
		l->filling->since_ns = uv_hrtime();
	}
	if (l->filling == NULL)
		l->filling = bc_lane_take_slot(l);
	if (l->filling == NULL)
		return NULL;
	bc_lane_note_pending(l, &l->filling->chunk);
	return &l->filling->chunk;
}

struct bc_chunk *bc_lane_chunk(struct bc_lane *l, struct bc_stamper *stamper)
{
	l->has_begun = true;
	bc_lane_check_full(l);
	if (l->epoch != stamper->epoch)
		l->tick = stamper->tick;
	if (l->is_fresh)
		stamper->is_first = true;
	l->is_fresh = false;
	struct bc_chunk *chunk = bc_lane_filling_chunk(l, stamper->epoch);
	l->is_sifting = chunk != NULL && l->options.sift != NULL &&
			!bc_sift_keeps_all(l->options.sift);
	if (l->is_sifting)
		bc_sift_begin(&l->sift, stamper, chunk);
	return chunk;
}

void bc_lane_set_wall(struct bc_lane *l, int64_t wall_ns)
{
	if (l->filling != NULL && l->filling->chunk.info.records == 0)
		l->filling->chunk.info.wall_ns = wall_ns;
}

static void on_flush(uv_timer_t *timer);

/* Something is in the chunk being filled: it waits no longer than so. */
void bc_lane_time_flush(struct bc_lane *l)
{
	if (!uv_is_active((uv_handle_t *)&l->flush))
		uv_timer_start(&l->flush, on_flush, l->options.flush_ns / 1000000, 0);
}

/* A flush of a busy pipeline would only make chunks smaller and more. */
static void on_flush(uv_timer_t *timer)
{
	struct bc_lane *l = timer->data;

	if (bc_pipeline_is_busy(l->options.pipeline))
		bc_lane_time_flush(l);
	else
		bc_lane_submit(l);
}

/* Takes out of the new records what isn't wanted. Returns how many stay. */
static uint32_t sift(struct bc_lane *l, struct bc_stamper *stamper, uint32_t kept)
{
	if (!l->is_sifting)
		return kept;
	uint32_t removed = bc_sift_records(
		l->options.sift, &l->sift, stamper, &l->filling->chunk, l->clock_hz);
	l->counts->dropped_filtered += removed;
	return kept - removed;
}

uint32_t bc_lane_actions(const struct bc_lane *l)
{
	bool can_start = l->state != BC_LANE_RECORDING && l->may_record && bc_lane_is_ready(l);
	bool can_stop = l->state == BC_LANE_RECORDING;
	uint32_t actions = 0;

	/* Before anything has come there is no place to mark, and nothing held. */
	if (l->state != BC_LANE_IDLE && l->has_begun)
		actions |= 1u << BC_ACTION_MARK;
	if (can_start)
		actions |= 1u << BC_ACTION_START | 1u << BC_ACTION_TOGGLE;
	if (can_start && l->state == BC_LANE_FLIGHT && l->has_begun)
		actions |= 1u << BC_ACTION_SNAPSHOT;
	if (can_stop)
		actions |= 1u << BC_ACTION_STOP | 1u << BC_ACTION_TOGGLE;
	return actions;
}

/* The next hit before position `end` of the chunk being filled: the watch sees no more of it. */
static bool next_hit(struct bc_lane *l, uint32_t end, struct bc_hit *hit)
{
	struct bc_chunk *chunk = &l->filling->chunk;
	uint32_t records = chunk->info.records;
	uint64_t last_tick = chunk->info.last_tick;
	uint64_t end_tick = end != 0 && end < records ? bc_chunk_tick(chunk, end - 1) : last_tick;

	chunk->info.records = end;
	chunk->info.last_tick = end_tick;
	bool is_hit = bc_watch_next(l->options.watch, chunk, &l->scan, l->clock_hz, hit);
	chunk->info.records = records;
	chunk->info.last_tick = last_tick;
	return is_hit;
}

/* Looks for triggers in the records from `from` on. What they set off may move those that are still
 * to be looked at, or end the recording before them. */
static void watch_records(struct bc_lane *l, uint32_t from)
{
	struct bc_watch *watch = l->options.watch;
	struct bc_hit hit;

	if (watch == NULL || bc_watch_is_empty(watch))
		return;
	l->scan = from;
	while (l->filling != NULL) {
		uint32_t end = bc_lane_full_at(l);
		watch->actions = bc_lane_actions(l);
		if (!next_hit(l, end, &hit)) {
			if (end == bc_lane_filled(l))
				return;
			l->options.on_full(l->options.session, end);
			assert(l->state != BC_LANE_RECORDING);
			continue;
		}
		bc_watch_acted(watch, &hit);
		bc_watch_record(&l->filling->chunk, &hit);
		l->options.on_hit(l->options.context, &hit);
	}
}

/* Shows what is new to all that look at it. */
static void show(struct bc_lane *l, uint32_t from, uint64_t tick_before)
{
	const struct bc_chunk *chunk = &l->filling->chunk;

	if (l->options.mix != NULL)
		bc_mix_records(l->options.mix, chunk, from);
	if (l->options.taps != NULL && !bc_taps_are_empty(l->options.taps))
		bc_taps_records(l->options.taps, chunk, from,
			l->state == BC_LANE_RECORDING ? l->sent + from : BC_TAP_NO_RECORD,
			tick_before);
	watch_records(l, from);
}

void bc_lane_took(struct bc_lane *l, struct bc_stamper *stamper, const struct bc_stamped *stamped)
{
	struct bc_chunk_info *info = &l->filling->chunk.info;
	struct bc_counts *c = l->counts;
	uint32_t kept = sift(l, stamper, stamped->kept);
	uint64_t tick_before = l->tick;

	c->received += stamped->taken;
	c->dropped_invalid += stamped->invalid;
	c->unknown_special += stamped->unknown;
	c->in_flight += kept;
	l->tick = info->last_tick;
	if (kept == 0)
		return;
	l->last_ns = uv_hrtime();
	l->filling->until_ns = l->last_ns;
	show(l, info->records - kept, tick_before);
	if (l->filling == NULL)
		return;
	switch (l->state) {
	case BC_LANE_IDLE:
		bc_lane_leave(l, &l->filling->chunk);
		bc_lane_discard(l, &l->filling->chunk);
		break;
	case BC_LANE_FLIGHT:
		if (bc_flight_wants(&l->flight, l->filling->since_ns, l->last_ns))
			bc_lane_submit(l);
		break;
	case BC_LANE_RECORDING:
		bc_lane_time_flush(l);
		bc_lane_check_full(l);
		break;
	}
}

bool bc_lane_event(struct bc_lane *l, struct bc_stamper *stamper, const struct bc_event *event,
	const char *text)
{
	struct bc_event copy = *event;
	struct bc_chunk *chunk = bc_lane_chunk(l, stamper);

	if (chunk == NULL)
		return false;
	copy.position = chunk->info.records;
	if (!bc_chunk_add_event(chunk, &copy, text)) {
		bc_lane_submit(l); /* its texts are full */
		chunk = bc_lane_chunk(l, stamper);
		if (chunk == NULL)
			return false;
		copy.position = 0;
		if (!bc_chunk_add_event(chunk, &copy, text))
			return true; /* longer than any chunk can hold: it came from no segment */
	}
	if (event->kind == BC_EVENT_GAP && l->state != BC_LANE_IDLE) {
		l->counts->gaps++;
		bc_lane_sum_gap(l, event->cause, 1, event->value, event->exact);
	}
	return true;
}

/* Life */

struct bc_counts *bc_lane_counts(struct bc_lane *l)
{
	return l->counts;
}

void bc_lane_set_flush(struct bc_lane *l, uint64_t flush_ns)
{
	l->options.flush_ns = flush_ns;
}

void bc_lane_set_clock(struct bc_lane *l, uint64_t clock_hz)
{
	l->clock_hz = clock_hz;
}

int bc_lane_open(struct bc_lane **lane, const struct bc_lane_options *options)
{
	struct bc_lane *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	l->options = *options;
	if (options->is_flight && bc_flight_init(&l->flight, &options->flight) != 0) {
		free(l);
		return -ENOMEM;
	}
	l->counts = bc_pipeline_counts(options->pipeline);
	l->state = options->is_flight ? BC_LANE_FLIGHT : BC_LANE_IDLE;
	uv_timer_init(options->loop, &l->flush);
	l->flush.data = l;
	l->last_ns = uv_hrtime();
	*lane = l;
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void bc_lane_close(struct bc_lane *l)
{
	if (l == NULL)
		return;
	assert(l->recording == NULL && l->ending == NULL);
	while (bc_flight_peek(&l->flight) != NULL)
		bc_lane_drop_oldest(l);
	bc_flight_free(&l->flight);
	if (l->filling != NULL) {
		bc_lane_discard(l, &l->filling->chunk);
		bc_pipeline_give_back(l->options.pipeline, l->filling);
	}
	uv_close((uv_handle_t *)&l->flush, on_closed);
}
