#include "daemon/lane_parts.h"

#include <assert.h>
#include <string.h>

#include "daemon/clock.h"
#include "formats/chunk_cut.h"

/* The ends of segments and recordings */

/* Sends the chunk being filled, or an empty one, to carry a cut. Returns false when there is none
 * to send. */
bool bc_lane_send_marked(struct bc_lane *l)
{
	if (l->filling == NULL)
		l->filling = bc_lane_take_slot(l);
	if (l->filling == NULL)
		return false;
	bc_lane_leave(l, &l->filling->chunk);
	l->filling->cut_after = true;
	l->has_cut = false;
	uv_timer_stop(&l->flush);
	bc_lane_send_slot(l, l->filling, l->recording);
	l->filling = NULL;
	return true;
}

void bc_lane_cut(struct bc_lane *l)
{
	if (bc_lane_records(l) != 0)
		l->has_cut = !bc_lane_send_marked(l);
}

/* Sends the ended recording's last chunk, or an empty one, with what waits for it. Returns false
 * when there is none to send yet. */
bool bc_lane_send_end(struct bc_lane *l)
{
	while (l->last == NULL || !bc_chunk_has_room(&l->last->chunk, bc_lane_count_pending(l)) ||
		(l->last->raw != NULL &&
			!bc_raw_block_has_room(l->last->raw, l->raw.waiting_count, 0))) {
		if (l->last != NULL)
			bc_lane_send_slot(l, l->last, l->ending);
		l->last = bc_pipeline_take(l->options.pipeline);
		if (l->last == NULL)
			return false;
		l->last->cut_after = false;
		l->last->is_last = false;
		bc_chunk_reset(&l->last->chunk, l->tick, l->epoch);
		l->last->chunk.info.wall_ns = bc_wall_ns();
		if (l->last->raw != NULL)
			bc_raw_keep_begin(&l->raw, l->last->raw, l->ending->tag);
	}
	bc_lane_note_pending(l, &l->last->chunk);
	if (l->last->raw != NULL)
		bc_raw_keep_settle(&l->raw, l->last->raw);
	l->last->cut_after = true;
	l->last->is_last = true;
	const struct bc_recording *ending = l->ending;
	l->ending = NULL;
	bc_lane_send_slot(l, l->last, ending);
	l->last = NULL;
	return true;
}

/* Parts what the chunk being filled holds from position `at` on: it stays, in a slot of its own. */
static struct bc_slot *part(struct bc_lane *l, uint32_t at)
{
	struct bc_slot *slot = l->filling;

	l->filling = NULL;
	if (slot == NULL)
		return NULL;
	if (at >= slot->chunk.info.records) {
		bc_lane_leave(l, &slot->chunk);
		return slot;
	}
	struct bc_slot *rest = bc_pipeline_take(l->options.pipeline);
	uint32_t over = slot->chunk.info.records - at;
	if (rest == NULL) {
		bc_chunk_drop_back(&slot->chunk, at);
		l->counts->in_flight -= over;
		l->counts->dropped_idle += over;
		return slot;
	}
	rest->since_ns = slot->since_ns;
	rest->until_ns = slot->until_ns;
	rest->cut_after = false;
	rest->is_last = false;
	bc_chunk_split(&slot->chunk, at, &rest->chunk);
	rest->chunk.info.wall_ns = bc_wall_ns();
	if (rest->raw != NULL)
		bc_raw_keep_begin(&l->raw, rest->raw, 0);
	l->filling = rest;
	l->scan = l->scan > at ? l->scan - at : 0;
	return slot;
}

void bc_lane_finish(struct bc_lane *l, uint32_t at)
{
	uint32_t full_at = bc_lane_full_at(l);

	assert(l->state == BC_LANE_RECORDING);
	uv_timer_stop(&l->flush);
	at = full_at < bc_lane_filled(l) && full_at < at ? full_at : at;
	l->last = part(l, at);
	l->ending = l->recording;
	l->recording = NULL;
	l->has_cut = false;
	l->records_max = 0;
	l->state = l->options.is_flight ? BC_LANE_FLIGHT : BC_LANE_IDLE;
	bc_lane_send_end(l);
}

void bc_lane_on_room(struct bc_lane *l)
{
	if (l->ending != NULL)
		bc_lane_send_end(l);
}

/* The beginning of recordings */

bool bc_lane_is_ready(const struct bc_lane *l)
{
	return l->recording == NULL && l->ending == NULL;
}

static void drop_front(struct bc_lane *l, struct bc_chunk *chunk, uint32_t n)
{
	bc_chunk_drop_front(chunk, n);
	if (l->filling != NULL && chunk == &l->filling->chunk)
		l->scan = l->scan > n ? l->scan - n : 0;
	l->counts->in_flight -= n;
	l->counts->dropped_idle += n;
}

/* Gives up what is held beyond the last `records` of it. */
static void keep_records(struct bc_lane *l, uint64_t records)
{
	uint32_t behind = bc_lane_filled(l);
	struct bc_slot *oldest;

	while ((oldest = bc_flight_peek(&l->flight)) != NULL) {
		uint64_t held = l->flight.records + behind;
		if (held <= records)
			return;
		if (held - records < oldest->chunk.info.records) {
			uint32_t over = (uint32_t)(held - records);
			drop_front(l, &oldest->chunk, over);
			l->flight.records -= over;
			return;
		}
		bc_lane_drop_oldest(l);
	}
	if (behind > records)
		drop_front(l, &l->filling->chunk, behind - (uint32_t)records);
}

/* Gives up what arrived before a moment; of the chunk being filled nothing at or behind `at`. */
static void keep_since(struct bc_lane *l, uint64_t ns, uint32_t at)
{
	struct bc_slot *oldest;
	uint32_t n;

	while ((oldest = bc_flight_peek(&l->flight)) != NULL) {
		n = bc_slot_records_before(oldest, ns);
		if (n < oldest->chunk.info.records) {
			drop_front(l, &oldest->chunk, n);
			l->flight.records -= n;
			return;
		}
		bc_lane_drop_oldest(l);
	}
	if (l->filling == NULL)
		return;
	n = bc_slot_records_before(l->filling, ns);
	drop_front(l, &l->filling->chunk, n < at ? n : at);
}

/* Gives up what comes before the recording's first record. */
static void keep_before(struct bc_lane *l, const struct bc_length *before, uint32_t at)
{
	uint32_t have = bc_lane_filled(l);
	uint64_t behind = at < have ? have - at : 0;
	uint64_t now = uv_hrtime();

	switch (before->unit) {
	case BC_LENGTH_NONE:
		keep_records(l, behind);
		return;
	case BC_LENGTH_BYTES:
		keep_records(l, behind + before->value / BC_RECORD_BYTES);
		return;
	case BC_LENGTH_TIME:
		keep_since(l, before->value < now ? now - before->value : 0, at < have ? at : have);
		return;
	case BC_LENGTH_ALL:
		return;
	}
}

/* What is missing before a recording's first record isn't missing in it. */
static void strip_gaps(struct bc_chunk *chunk)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < chunk->info.events; i++) {
		const struct bc_event *event = &chunk->events[i];
		if (event->position != 0 || event->kind != BC_EVENT_GAP)
			chunk->events[n++] = *event;
	}
	chunk->info.events = n;
}

/* No delta leads into the first record of what is held, if there is one. */
static void detach(struct bc_lane *l)
{
	struct bc_slot *oldest;

	/* An epoch in which nothing came but events has a chunk of its own. */
	while ((oldest = bc_flight_peek(&l->flight)) != NULL && oldest->chunk.info.records == 0)
		bc_lane_drop_oldest(l);
	struct bc_slot *first = oldest != NULL ? oldest : l->filling;
	if (first != NULL)
		strip_gaps(&first->chunk);
	l->is_fresh = first == NULL || first->chunk.info.records == 0;
	if (l->is_fresh) {
		bc_lane_forget_pending(l);
		return;
	}
	/* Where it is full of events, the recording begins behind the first of them. */
	while (!bc_chunk_detach(&first->chunk, true)) {
		uint32_t n = first->chunk.events[0].position + 1;
		n = n < first->chunk.info.records ? n : first->chunk.info.records;
		drop_front(l, &first->chunk, n);
		if (first == oldest)
			l->flight.records -= n;
	}
}

uint32_t bc_lane_full_at(const struct bc_lane *l)
{
	uint32_t have = bc_lane_filled(l);

	if (l->state != BC_LANE_RECORDING || l->records_max == 0 ||
		l->records_max - l->sent >= have)
		return have;
	return (uint32_t)(l->records_max - l->sent);
}

void bc_lane_check_full(struct bc_lane *l)
{
	if (bc_lane_room(l) == 0)
		l->options.on_full(l->options.session, bc_lane_full_at(l));
}

/* Hands on what was held, up to the limit of the recording: what is beyond that isn't recorded. */
static void send_flight(struct bc_lane *l)
{
	struct bc_slot *slot;

	while ((slot = bc_flight_peek(&l->flight)) != NULL) {
		uint64_t room = l->records_max != 0 ? l->records_max - l->sent : UINT64_MAX;
		if (room == 0) {
			bc_lane_drop_oldest(l);
			continue;
		}
		bc_flight_take(&l->flight);
		uint32_t over = slot->chunk.info.records > room
					? slot->chunk.info.records - (uint32_t)room
					: 0;
		if (over != 0)
			bc_chunk_drop_back(&slot->chunk, (uint32_t)room);
		l->counts->in_flight -= over;
		l->counts->dropped_idle += over;
		bc_lane_send_slot(l, slot, l->recording);
	}
}

void bc_lane_allow(struct bc_lane *l, bool may_record)
{
	l->may_record = may_record;
}

uint32_t bc_lane_record(struct bc_lane *l, const struct bc_recording *recording,
	const struct bc_length *before, uint32_t at, uint64_t records_max)
{
	uint32_t had = bc_lane_filled(l);

	assert(bc_lane_is_ready(l));
	keep_before(l, before, at);
	detach(l);
	uint32_t dropped = had - bc_lane_filled(l);
	l->recording = recording;
	l->sent = 0;
	l->records_max = records_max;
	l->has_cut = false;
	l->state = BC_LANE_RECORDING;
	l->raw = (struct bc_raw_keep){.form = BC_FORMAT_UNKNOWN};
	l->raw_kept = 0;
	send_flight(l);
	if (l->filling != NULL && l->filling->raw != NULL)
		bc_raw_keep_begin(&l->raw, l->filling->raw, recording->tag);
	if (l->filling != NULL && !bc_chunk_is_empty(&l->filling->chunk))
		bc_lane_time_flush(l);
	return at == BC_LANE_NOW ? at : at > dropped ? at - dropped : 0;
}

uint64_t bc_lane_last_ns(const struct bc_lane *l)
{
	return l->last_ns;
}

enum bc_lane_state bc_lane_state(const struct bc_lane *l)
{
	return l->state;
}

uint64_t bc_lane_records(const struct bc_lane *l)
{
	if (l->state != BC_LANE_RECORDING)
		return 0;
	return l->sent + bc_lane_filled(l);
}

uint64_t bc_lane_room(const struct bc_lane *l)
{
	if (l->state != BC_LANE_RECORDING || l->records_max == 0)
		return UINT64_MAX;
	uint64_t records = bc_lane_records(l);
	return records < l->records_max ? l->records_max - records : 0;
}

void bc_lane_set_room(struct bc_lane *l, uint32_t at, uint64_t records)
{
	uint32_t have = bc_lane_filled(l);
	uint64_t max = l->sent + (at < have ? at : have) + records;

	if (l->records_max == 0 || max < l->records_max)
		l->records_max = max;
}

void bc_lane_set_room_until(struct bc_lane *l, uint32_t at, uint64_t tick)
{
	uint32_t have = bc_lane_filled(l);

	if (at >= have)
		return;
	uint32_t end = bc_chunk_find_tick(&l->filling->chunk, at, tick);
	if (end < have)
		bc_lane_set_room(l, at, end - at);
}

/* Marks */

struct bc_place bc_lane_place(const struct bc_lane *l, uint32_t at)
{
	const struct bc_chunk *chunk = l->filling != NULL ? &l->filling->chunk : NULL;
	uint32_t have = bc_lane_filled(l);

	at = at < have ? at : have;
	return (struct bc_place){
		.record = l->state == BC_LANE_RECORDING ? l->sent + at : UINT64_MAX,
		.tick = at < have ? bc_chunk_tick(chunk, at) : l->tick,
		.epoch = l->epoch,
	};
}

bool bc_lane_has_begun(const struct bc_lane *l)
{
	return l->has_begun;
}

bool bc_lane_mark(struct bc_lane *l, struct bc_event *event, const char *text, uint32_t at)
{
	struct bc_chunk *chunk;

	if (!l->has_begun)
		return false;
	chunk = l->filling != NULL ? &l->filling->chunk : bc_lane_filling_chunk(l, l->epoch);
	if (chunk == NULL)
		return false;
	event->position = at < chunk->info.records ? at : chunk->info.records;
	if (bc_chunk_insert_event(chunk, event, text)) {
		if (l->state == BC_LANE_RECORDING)
			bc_lane_time_flush(l);
		return true;
	}
	if (at < chunk->info.records)
		return false;
	bc_lane_submit(l);
	chunk = bc_lane_filling_chunk(l, l->epoch);
	if (chunk == NULL)
		return false;
	event->position = 0;
	return bc_chunk_insert_event(chunk, event, text);
}

struct bc_flight_state bc_lane_flight(const struct bc_lane *l)
{
	const struct bc_slot *oldest = bc_flight_peek(&l->flight);

	if (oldest == NULL)
		oldest = l->filling;
	bool holds = l->state == BC_LANE_FLIGHT && oldest != NULL;
	return (struct bc_flight_state){
		.chunks = holds ? l->flight.count + (l->filling != NULL) : 0,
		.records = holds ? l->flight.records + bc_lane_filled(l) : 0,
		.ns = holds ? uv_hrtime() - oldest->since_ns : 0,
	};
}
