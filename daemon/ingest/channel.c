#include "daemon/ingest/channel.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/source/source.h"
#include "daemon/base/clock.h"
#include "daemon/ingest/pipeline.h"
#include "daemon/ingest/raw_keep.h"
#include "daemon/trigger/record_filter.h"
#include "daemon/trigger/trigger_engine.h"
#include "formats/bus/chunk_split.h"
#include "formats/bus/stamp.h"

struct bc_channel {
	struct bc_channel_options options;
	struct bc_counts *counts;
	uv_timer_t flush;
	enum bc_channel_state state;

	struct bc_slot *filling;
	uint64_t tick; /* of the latest record; where a chunk without records goes on */
	uint32_t epoch;
	/* Gaps that wait for a chunk, one of each cause; kind 0: none. */
	struct bc_event pending[BC_GAP_CAUSES];
	uint64_t pending_since_ns[BC_GAP_CAUSES];
	struct bc_overwrite_ring flight;
	uint64_t clock_hz;
	bool is_sifting; /* the records that are being stamped are to be sifted */
	struct bc_record_filter_state sift;
	bool may_record; /* triggers may begin a recording */
	bool has_begun;  /* the decoder has asked for a chunk */
	uint32_t scan;   /* of the chunk being filled, where triggers are looked for next */
	uint64_t last_ns;
	struct bc_gap_sum gaps[BC_GAP_CAUSES];

	/* The recording under way. */
	const struct bc_recording_info *recording;
	uint64_t sent; /* records of it, handed on */
	uint64_t records_max;
	bool is_fresh; /* no delta leads into its first record */
	bool has_cut;  /* a cut waits for a chunk to carry it */
	struct bc_raw_keep raw;
	size_t raw_kept; /* bytes of the piece in hand that are in blocks */

	/* One whose last chunk is still to be sent: `last` if it is filled already. Gaps that wait
	 * are its own until then. */
	const struct bc_recording_info *ending;
	struct bc_slot *last;
};

/* Records in the chunk being filled. */
static inline uint32_t filled(const struct bc_channel *l)
{
	return l->filling != NULL ? l->filling->chunk.info.records : 0;
}

/* Where in the chunk being filled the recording has all it may hold; if nowhere, its end. */
static uint32_t full_position(const struct bc_channel *l)
{
	uint32_t have = filled(l);

	if (l->state != BC_CHANNEL_RECORDING || l->records_max == 0 ||
		l->records_max - l->sent >= have)
		return have;
	return (uint32_t)(l->records_max - l->sent);
}

/* Gaps that wait for a chunk */

static uint32_t count_pending(const struct bc_channel *l)
{
	uint32_t count = 0;

	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		count += l->pending[cause].kind != 0;
	return count;
}

/* Puts them at the end of a chunk, which must have room for them. */
static void write_pending(struct bc_channel *l, struct bc_chunk *chunk)
{
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		struct bc_event *gap = &l->pending[cause];
		if (gap->kind == 0)
			continue;
		gap->position = chunk->info.records;
		if (!bc_chunk_add_event(chunk, gap, NULL))
			assert(!"the caller saw to the room");
		gap->kind = 0;
	}
}

static void forget_pending(struct bc_channel *l)
{
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		l->pending[cause].kind = 0;
}

/* Slots */

/* A chunk gets nothing more. */
static void leave_chunk(struct bc_channel *l, const struct bc_chunk *chunk)
{
	if (l->options.viewer != NULL)
		l->options.viewer->end(l->options.viewer->context, chunk);
	if (l->options.watch != NULL)
		bc_trigger_engine_leave(l->options.watch, chunk);
}

/* A chunk's records are nobody's: counted, and the chunk is empty. */
static void discard(struct bc_channel *l, struct bc_chunk *chunk)
{
	l->counts->in_flight -= chunk->info.records;
	l->counts->dropped_idle += chunk->info.records;
	bc_chunk_reset(chunk, l->tick, l->epoch);
}

/* Gives up the oldest chunk that is held in flight, of which there must be one. */
static void drop_oldest(struct bc_channel *l)
{
	struct bc_slot *slot = bc_overwrite_ring_pop(&l->flight);

	discard(l, &slot->chunk);
	bc_pipeline_give_back(l->options.pipeline, slot);
}

/* Hands on a slot of the recording under way. */
static void send_slot(
	struct bc_channel *l, struct bc_slot *slot, const struct bc_recording_info *recording)
{
	struct bc_chunk_info *info = &slot->chunk.info;

	slot->recording = recording;
	info->recording_tag = recording->tag;
	info->first_record = l->sent;
	l->sent += info->records;
	bc_pipeline_send(l->options.pipeline, slot);
}

/* Sends the ended recording's last chunk, or an empty one, with what waits for it. Returns false
 * when there is none to send yet. */
static bool send_end(struct bc_channel *l)
{
	while (l->last == NULL || !bc_chunk_has_room(&l->last->chunk, count_pending(l)) ||
		(l->last->raw != NULL &&
			!bc_raw_block_has_room(l->last->raw, l->raw.waiting_count, 0))) {
		if (l->last != NULL)
			send_slot(l, l->last, l->ending);
		l->last = bc_pipeline_pop(l->options.pipeline);
		if (l->last == NULL)
			return false;
		l->last->cut_after = false;
		l->last->is_last = false;
		bc_chunk_reset(&l->last->chunk, l->tick, l->epoch);
		l->last->chunk.info.wall_ns = bc_wall_ns();
		if (l->last->raw != NULL)
			bc_raw_keep_begin(&l->raw, l->last->raw, l->ending->tag);
	}
	write_pending(l, &l->last->chunk);
	if (l->last->raw != NULL)
		bc_raw_keep_settle(&l->raw, l->last->raw);
	l->last->cut_after = true;
	l->last->is_last = true;
	const struct bc_recording_info *ending = l->ending;
	l->ending = NULL;
	send_slot(l, l->last, ending);
	l->last = NULL;
	return true;
}

/* An empty slot that goes on where the channel is; NULL: none is free. */
static struct bc_slot *open_slot(struct bc_channel *l)
{
	if (l->ending != NULL && !send_end(l))
		return NULL;
	struct bc_slot *slot = bc_pipeline_pop(l->options.pipeline);
	if (slot == NULL && l->state == BC_CHANNEL_FLIGHT) {
		slot = bc_overwrite_ring_pop(&l->flight);
		if (slot != NULL)
			discard(l, &slot->chunk);
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

/* Makes room in the flight recorder for one chunk more than `behind` records. */
static void trim_flight(struct bc_channel *l, uint64_t behind)
{
	while (bc_overwrite_ring_is_over(&l->flight, behind, uv_hrtime()))
		drop_oldest(l);
}

void bc_channel_submit(struct bc_channel *l)
{
	struct bc_slot *slot = l->filling;

	if (slot == NULL || bc_slot_is_empty(slot))
		return;
	leave_chunk(l, &slot->chunk);
	switch (l->state) {
	case BC_CHANNEL_IDLE:
		discard(l, &slot->chunk);
		return;
	case BC_CHANNEL_FLIGHT:
		trim_flight(l, slot->chunk.info.records);
		bc_overwrite_ring_add(&l->flight, slot);
		break;
	case BC_CHANNEL_RECORDING:
		uv_timer_stop(&l->flush);
		send_slot(l, slot, l->recording);
		break;
	}
	l->filling = NULL;
}

/* Sends the chunk being filled, or an empty one, to carry a cut. Returns false when there is none
 * to send. */
static bool send_cut(struct bc_channel *l)
{
	if (l->filling == NULL)
		l->filling = open_slot(l);
	if (l->filling == NULL)
		return false;
	leave_chunk(l, &l->filling->chunk);
	l->filling->cut_after = true;
	l->has_cut = false;
	uv_timer_stop(&l->flush);
	send_slot(l, l->filling, l->recording);
	l->filling = NULL;
	return true;
}

/* The chunk being filled */

/* The chunk being filled, with room for the gaps that wait, one event more and an anchor; NULL when
 * none is free. */
static struct bc_chunk *filling_chunk(struct bc_channel *l, uint32_t epoch)
{
	uint32_t events = count_pending(l) + 2;

	if (l->has_cut && !send_cut(l))
		return NULL;
	if (l->filling != NULL && !bc_chunk_is_empty(&l->filling->chunk) &&
		(l->filling->chunk.info.epoch != epoch ||
			!bc_chunk_has_room(&l->filling->chunk, events)))
		bc_channel_submit(l);
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
		l->filling = open_slot(l);
	if (l->filling == NULL)
		return NULL;
	write_pending(l, &l->filling->chunk);
	return &l->filling->chunk;
}

struct bc_chunk *bc_channel_chunk(struct bc_channel *l, struct bc_stamper *stamper)
{
	l->has_begun = true;
	bc_channel_check_full(l);
	if (l->epoch != stamper->epoch)
		l->tick = stamper->tick;
	if (l->is_fresh)
		stamper->is_first = true;
	l->is_fresh = false;
	struct bc_chunk *chunk = filling_chunk(l, stamper->epoch);
	l->is_sifting = chunk != NULL && l->options.sift != NULL &&
			!bc_record_filter_keeps_all(l->options.sift);
	if (l->is_sifting)
		bc_record_filter_begin(&l->sift, stamper, chunk);
	return chunk;
}

void bc_channel_set_wall(struct bc_channel *l, int64_t wall_ns)
{
	if (l->filling != NULL && l->filling->chunk.info.records == 0)
		l->filling->chunk.info.wall_ns = wall_ns;
}

static void on_flush(uv_timer_t *timer);

/* Something is in the chunk being filled: it waits no longer than so. */
static void time_flush(struct bc_channel *l)
{
	if (!uv_is_active((uv_handle_t *)&l->flush))
		uv_timer_start(&l->flush, on_flush, l->options.flush_ns / 1000000, 0);
}

/* A flush of a busy pipeline would only make chunks smaller and more. */
static void on_flush(uv_timer_t *timer)
{
	struct bc_channel *l = timer->data;

	if (bc_pipeline_is_busy(l->options.pipeline))
		time_flush(l);
	else
		bc_channel_submit(l);
}

/* Takes out of the new records what isn't wanted. Returns how many stay. */
static uint32_t sift(struct bc_channel *l, struct bc_stamper *stamper, uint32_t kept)
{
	if (!l->is_sifting)
		return kept;
	uint32_t removed = bc_record_filter_records(
		l->options.sift, &l->sift, stamper, &l->filling->chunk, l->clock_hz);
	l->counts->dropped_filtered += removed;
	return kept - removed;
}

uint32_t bc_channel_actions(const struct bc_channel *l)
{
	bool can_start = l->state != BC_CHANNEL_RECORDING && l->may_record &&
			 bc_channel_is_ready(l);
	bool can_stop = l->state == BC_CHANNEL_RECORDING;
	uint32_t actions = 0;

	/* Before anything has come there is no place to mark, and nothing held. */
	if (l->state != BC_CHANNEL_IDLE && l->has_begun)
		actions |= 1u << BC_ACTION_MARK;
	if (can_start)
		actions |= 1u << BC_ACTION_START | 1u << BC_ACTION_TOGGLE;
	if (can_start && l->state == BC_CHANNEL_FLIGHT && l->has_begun)
		actions |= 1u << BC_ACTION_SNAPSHOT;
	if (can_stop)
		actions |= 1u << BC_ACTION_STOP | 1u << BC_ACTION_TOGGLE;
	return actions;
}

/* The next hit before position `end` of the chunk being filled: the watch sees no more of it. */
static bool next_hit(struct bc_channel *l, uint32_t end, struct bc_trigger_match *hit)
{
	struct bc_chunk *chunk = &l->filling->chunk;
	uint32_t records = chunk->info.records;
	uint64_t last_tick = chunk->info.last_tick;
	uint64_t end_tick = end != 0 && end < records ? bc_chunk_tick(chunk, end - 1) : last_tick;

	chunk->info.records = end;
	chunk->info.last_tick = end_tick;
	bool is_hit = bc_trigger_engine_next(l->options.watch, chunk, &l->scan, l->clock_hz, hit);
	chunk->info.records = records;
	chunk->info.last_tick = last_tick;
	return is_hit;
}

/* Looks for triggers in the records from `from` on. What they set off may move those that are still
 * to be looked at, or end the recording before them. */
static void watch_records(struct bc_channel *l, uint32_t from)
{
	struct bc_trigger_engine *watch = l->options.watch;
	struct bc_trigger_match hit;

	if (watch == NULL || bc_trigger_engine_is_empty(watch))
		return;
	l->scan = from;
	while (l->filling != NULL) {
		uint32_t end = full_position(l);
		watch->actions = bc_channel_actions(l);
		if (!next_hit(l, end, &hit)) {
			if (end == filled(l))
				return;
			l->options.on_full(l->options.session, end);
			assert(l->state != BC_CHANNEL_RECORDING);
			continue;
		}
		bc_trigger_engine_acted(watch, &hit);
		bc_trigger_engine_record(&l->filling->chunk, &hit);
		l->options.on_hit(l->options.context, &hit);
	}
}

/* Shows what is new to all that look at it. */
static void show(struct bc_channel *l, uint32_t from, uint64_t tick_before)
{
	const struct bc_channel_viewer *viewer = l->options.viewer;
	const struct bc_chunk *chunk = &l->filling->chunk;

	if (viewer != NULL)
		viewer->records(viewer->context, chunk, from,
			l->state == BC_CHANNEL_RECORDING ? l->sent + from : UINT64_MAX,
			tick_before);
	watch_records(l, from);
}

void bc_channel_consumed(
	struct bc_channel *l, struct bc_stamper *stamper, const struct bc_stamped *stamped)
{
	struct bc_chunk_info *info = &l->filling->chunk.info;
	struct bc_counts *c = l->counts;
	uint32_t kept = sift(l, stamper, stamped->kept);
	uint64_t tick_before = l->tick;

	c->received += stamped->consumed;
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
	case BC_CHANNEL_IDLE:
		leave_chunk(l, &l->filling->chunk);
		discard(l, &l->filling->chunk);
		break;
	case BC_CHANNEL_FLIGHT:
		if (bc_overwrite_ring_wants(&l->flight, l->filling->since_ns, l->last_ns))
			bc_channel_submit(l);
		break;
	case BC_CHANNEL_RECORDING:
		time_flush(l);
		bc_channel_check_full(l);
		break;
	}
}

/* Gaps, and events that are carried over */

/* Adds to what bc_channel_pop_gaps() takes. */
static void sum_gap(
	struct bc_channel *l, enum bc_gap_cause cause, uint64_t gaps, uint64_t lost, bool exact)
{
	l->gaps[cause].gaps += gaps;
	l->gaps[cause].lost += lost;
	l->gaps[cause].is_inexact = l->gaps[cause].is_inexact || !exact;
}

static struct bc_event *placed_gap(struct bc_channel *l, enum bc_gap_cause cause)
{
	struct bc_chunk *chunk = l->filling != NULL ? &l->filling->chunk : NULL;

	for (uint32_t i = chunk != NULL ? chunk->info.events : 0; i-- > 0;) {
		struct bc_event *event = &chunk->events[i];
		if (event->position != chunk->info.records)
			break;
		if (event->kind == BC_EVENT_GAP && event->cause == cause)
			return event;
	}
	return NULL;
}

static struct bc_event *pending_gap(struct bc_channel *l, enum bc_gap_cause cause)
{
	struct bc_event *gap = placed_gap(l, cause);

	if (gap != NULL)
		return gap;
	gap = &l->pending[cause];
	if (gap->kind == 0) {
		*gap = (struct bc_event){
			.kind = BC_EVENT_GAP,
			.cause = (uint8_t)cause,
			.exact = true,
		};
		l->pending_since_ns[cause] = uv_hrtime();
		l->counts->gaps += l->state != BC_CHANNEL_IDLE;
		if (l->state != BC_CHANNEL_IDLE)
			sum_gap(l, cause, 1, 0, true);
	}
	return gap;
}

void bc_channel_gap(struct bc_channel *l, enum bc_gap_cause cause, uint64_t lost, bool exact)
{
	bc_channel_gap_lasting(l, cause, lost, exact, 0);
}

void bc_channel_gap_lasting(struct bc_channel *l, enum bc_gap_cause cause, uint64_t lost,
	bool exact, uint64_t duration_ns)
{
	if (l->ending != NULL)
		return; /* nothing is kept now, and what waits is the ended recording's */
	struct bc_event *gap = pending_gap(l, cause);
	if (l->state != BC_CHANNEL_IDLE)
		sum_gap(l, cause, 0, lost, exact);
	gap->value += lost;
	gap->exact = gap->exact && exact;
	gap->duration_ns += duration_ns;
}

void bc_channel_dropped(struct bc_channel *l, const struct bc_stamped *stamped)
{
	bool is_stuck = bc_pipeline_stats(l->options.pipeline)->is_stuck;
	enum bc_gap_cause cause = is_stuck ? BC_GAP_DISK : BC_GAP_BUFFER;
	struct bc_counts *c = l->counts;

	c->received += stamped->consumed;
	c->dropped_invalid += stamped->invalid;
	if (stamped->kept == 0)
		return;
	l->last_ns = uv_hrtime();
	if (l->options.viewer != NULL)
		l->options.viewer->passed(l->options.viewer->context, stamped->kept);
	if (l->state == BC_CHANNEL_IDLE || l->ending != NULL) {
		c->dropped_idle += stamped->kept;
		return;
	}
	if (cause == BC_GAP_DISK)
		c->dropped_disk += stamped->kept;
	else
		c->dropped_buffer += stamped->kept;
	struct bc_event *gap = pending_gap(l, cause);
	sum_gap(l, cause, 0, stamped->kept, true);
	gap->value += stamped->kept;
	gap->duration_ns = uv_hrtime() - l->pending_since_ns[cause];
}

void bc_channel_pop_gaps(struct bc_channel *l, struct bc_gap_sum sums[BC_GAP_CAUSES])
{
	memcpy(sums, l->gaps, sizeof(l->gaps));
	memset(l->gaps, 0, sizeof(l->gaps));
}

bool bc_channel_event(struct bc_channel *l, struct bc_stamper *stamper,
	const struct bc_event *event, const char *text)
{
	struct bc_event copy = *event;
	struct bc_chunk *chunk = bc_channel_chunk(l, stamper);

	if (chunk == NULL)
		return false;
	copy.position = chunk->info.records;
	if (!bc_chunk_add_event(chunk, &copy, text)) {
		bc_channel_submit(l); /* its texts are full */
		chunk = bc_channel_chunk(l, stamper);
		if (chunk == NULL)
			return false;
		copy.position = 0;
		if (!bc_chunk_add_event(chunk, &copy, text))
			return true; /* longer than any chunk can hold: it came from no segment */
	}
	if (event->kind == BC_EVENT_GAP && l->state != BC_CHANNEL_IDLE) {
		l->counts->gaps++;
		sum_gap(l, event->cause, 1, event->value, event->exact);
	}
	return true;
}

/* Raw bytes */

/* The block for so many entries and bytes more; NULL when none is free. */
static struct bc_raw_block *filling_block(struct bc_channel *l, uint32_t entries, size_t bytes)
{
	if (l->has_cut && !send_cut(l))
		return NULL;
	if (l->filling != NULL && !bc_raw_block_has_room(l->filling->raw, entries, bytes))
		bc_channel_submit(l);
	if (l->filling == NULL)
		l->filling = open_slot(l);
	return l->filling != NULL ? l->filling->raw : NULL;
}

/* What is left of a piece finds no block. */
static void drop_raw(struct bc_channel *l, const struct bc_source_data *data, size_t left)
{
	bool is_stuck = bc_pipeline_stats(l->options.pipeline)->is_stuck;

	bc_raw_keep_drop(
		&l->raw, data, l->raw_kept, is_stuck ? BC_GAP_DISK : BC_GAP_BUFFER, uv_hrtime());
	l->counts->raw_dropped_bytes += left;
}

bool bc_channel_is_raw_fresh(const struct bc_channel *l)
{
	return l->options.keeps_raw && l->state == BC_CHANNEL_RECORDING &&
	       l->raw.form == BC_FORMAT_UNKNOWN;
}

bool bc_channel_keep_raw(struct bc_channel *l, const struct bc_source_data *data, bool is_live)
{
	if (!l->options.keeps_raw || l->state != BC_CHANNEL_RECORDING ||
		!bc_raw_is_form(data->format))
		return true;
	size_t count = data->broken == NULL ? data->count : 0;
	do {
		size_t left = count - l->raw_kept;
		size_t n = left < BC_RAW_BLOCK_BYTES ? left : BC_RAW_BLOCK_BYTES;
		struct bc_raw_block *block = filling_block(l, bc_raw_keep_entries(&l->raw), n);
		if (block == NULL && !is_live)
			return false;
		if (block == NULL) {
			drop_raw(l, data, left);
			break;
		}
		l->counts->raw_dropped_bytes += bc_raw_keep_add(
			&l->raw, block, data, l->raw_kept, n);
		l->raw_kept += n;
		time_flush(l);
	} while (l->raw_kept < count);
	l->raw_kept = 0;
	return true;
}

/* The end of segments and recordings */

void bc_channel_cut(struct bc_channel *l)
{
	if (bc_channel_records(l) != 0)
		l->has_cut = !send_cut(l);
}

/* Parts what the chunk being filled holds from position `at` on: it stays, in a slot of its own. */
static struct bc_slot *split_filling(struct bc_channel *l, uint32_t at)
{
	struct bc_slot *slot = l->filling;

	l->filling = NULL;
	if (slot == NULL)
		return NULL;
	if (at >= slot->chunk.info.records) {
		leave_chunk(l, &slot->chunk);
		return slot;
	}
	struct bc_slot *rest = bc_pipeline_pop(l->options.pipeline);
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

void bc_channel_finish(struct bc_channel *l, uint32_t at)
{
	uint32_t full_at = full_position(l);

	assert(l->state == BC_CHANNEL_RECORDING);
	uv_timer_stop(&l->flush);
	at = full_at < filled(l) && full_at < at ? full_at : at;
	l->last = split_filling(l, at);
	l->ending = l->recording;
	l->recording = NULL;
	l->has_cut = false;
	l->records_max = 0;
	l->state = l->options.is_flight ? BC_CHANNEL_FLIGHT : BC_CHANNEL_IDLE;
	send_end(l);
}

void bc_channel_on_space(struct bc_channel *l)
{
	if (l->ending != NULL)
		send_end(l);
}

/* The beginning of recordings */

bool bc_channel_is_ready(const struct bc_channel *l)
{
	return l->recording == NULL && l->ending == NULL;
}

static void drop_front(struct bc_channel *l, struct bc_chunk *chunk, uint32_t n)
{
	bc_chunk_drop_front(chunk, n);
	if (l->filling != NULL && chunk == &l->filling->chunk)
		l->scan = l->scan > n ? l->scan - n : 0;
	l->counts->in_flight -= n;
	l->counts->dropped_idle += n;
}

/* Gives up what is held beyond the last `records` of it. */
static void keep_records(struct bc_channel *l, uint64_t records)
{
	uint32_t behind = filled(l);
	struct bc_slot *oldest;

	while ((oldest = bc_overwrite_ring_peek(&l->flight)) != NULL) {
		uint64_t held = l->flight.records + behind;
		if (held <= records)
			return;
		if (held - records < oldest->chunk.info.records) {
			uint32_t over = (uint32_t)(held - records);
			drop_front(l, &oldest->chunk, over);
			l->flight.records -= over;
			return;
		}
		drop_oldest(l);
	}
	if (behind > records)
		drop_front(l, &l->filling->chunk, behind - (uint32_t)records);
}

/* Gives up what arrived before a moment; of the chunk being filled nothing at or behind `at`. */
static void keep_since(struct bc_channel *l, uint64_t ns, uint32_t at)
{
	struct bc_slot *oldest;
	uint32_t n;

	while ((oldest = bc_overwrite_ring_peek(&l->flight)) != NULL) {
		n = bc_slot_records_before(oldest, ns);
		if (n < oldest->chunk.info.records) {
			drop_front(l, &oldest->chunk, n);
			l->flight.records -= n;
			return;
		}
		drop_oldest(l);
	}
	if (l->filling == NULL)
		return;
	n = bc_slot_records_before(l->filling, ns);
	drop_front(l, &l->filling->chunk, n < at ? n : at);
}

/* Gives up what comes before the recording's first record. */
static void keep_before(struct bc_channel *l, const struct bc_time_or_size *before, uint32_t at)
{
	uint32_t have = filled(l);
	uint64_t behind = at < have ? have - at : 0;
	uint64_t now = uv_hrtime();

	switch (before->unit) {
	case BC_TIME_OR_SIZE_NONE:
		keep_records(l, behind);
		return;
	case BC_TIME_OR_SIZE_BYTES:
		keep_records(l, behind + before->value / BC_RECORD_BYTES);
		return;
	case BC_TIME_OR_SIZE_TIME:
		keep_since(l, before->value < now ? now - before->value : 0, at < have ? at : have);
		return;
	case BC_TIME_OR_SIZE_ALL:
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
static void detach(struct bc_channel *l)
{
	struct bc_slot *oldest;

	/* An epoch in which nothing came but events has a chunk of its own. */
	while ((oldest = bc_overwrite_ring_peek(&l->flight)) != NULL &&
		oldest->chunk.info.records == 0)
		drop_oldest(l);
	struct bc_slot *first = oldest != NULL ? oldest : l->filling;
	if (first != NULL)
		strip_gaps(&first->chunk);
	l->is_fresh = first == NULL || first->chunk.info.records == 0;
	if (l->is_fresh) {
		forget_pending(l);
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

/* Hands on what was held, up to the limit of the recording: what is beyond that isn't recorded. */
static void send_flight(struct bc_channel *l)
{
	struct bc_slot *slot;

	while ((slot = bc_overwrite_ring_peek(&l->flight)) != NULL) {
		uint64_t room = l->records_max != 0 ? l->records_max - l->sent : UINT64_MAX;
		if (room == 0) {
			drop_oldest(l);
			continue;
		}
		bc_overwrite_ring_pop(&l->flight);
		uint32_t over = slot->chunk.info.records > room
					? slot->chunk.info.records - (uint32_t)room
					: 0;
		if (over != 0)
			bc_chunk_drop_back(&slot->chunk, (uint32_t)room);
		l->counts->in_flight -= over;
		l->counts->dropped_idle += over;
		send_slot(l, slot, l->recording);
	}
}

void bc_channel_allow(struct bc_channel *l, bool may_record)
{
	l->may_record = may_record;
}

uint32_t bc_channel_record(struct bc_channel *l, const struct bc_recording_info *recording,
	const struct bc_time_or_size *before, uint32_t at, uint64_t records_max)
{
	uint32_t had = filled(l);

	assert(bc_channel_is_ready(l));
	keep_before(l, before, at);
	detach(l);
	uint32_t dropped = had - filled(l);
	l->recording = recording;
	l->sent = 0;
	l->records_max = records_max;
	l->has_cut = false;
	l->state = BC_CHANNEL_RECORDING;
	l->raw = (struct bc_raw_keep){.form = BC_FORMAT_UNKNOWN};
	l->raw_kept = 0;
	send_flight(l);
	if (l->filling != NULL && l->filling->raw != NULL)
		bc_raw_keep_begin(&l->raw, l->filling->raw, recording->tag);
	if (l->filling != NULL && !bc_chunk_is_empty(&l->filling->chunk))
		time_flush(l);
	return at == BC_CHANNEL_NOW ? at : at > dropped ? at - dropped : 0;
}

/* How far a recording has come, and its limits */

enum bc_channel_state bc_channel_state(const struct bc_channel *l)
{
	return l->state;
}

uint64_t bc_channel_last_ns(const struct bc_channel *l)
{
	return l->last_ns;
}

uint64_t bc_channel_records(const struct bc_channel *l)
{
	if (l->state != BC_CHANNEL_RECORDING)
		return 0;
	return l->sent + filled(l);
}

uint64_t bc_channel_space(const struct bc_channel *l)
{
	if (l->state != BC_CHANNEL_RECORDING || l->records_max == 0)
		return UINT64_MAX;
	uint64_t records = bc_channel_records(l);
	return records < l->records_max ? l->records_max - records : 0;
}

void bc_channel_check_full(struct bc_channel *l)
{
	if (bc_channel_space(l) == 0)
		l->options.on_full(l->options.session, full_position(l));
}

void bc_channel_set_space(struct bc_channel *l, uint32_t at, uint64_t records)
{
	uint32_t have = filled(l);
	uint64_t max = l->sent + (at < have ? at : have) + records;

	if (l->records_max == 0 || max < l->records_max)
		l->records_max = max;
}

void bc_channel_set_space_until(struct bc_channel *l, uint32_t at, uint64_t tick)
{
	uint32_t have = filled(l);

	if (at >= have)
		return;
	uint32_t end = bc_chunk_find_tick(&l->filling->chunk, at, tick);
	if (end < have)
		bc_channel_set_space(l, at, end - at);
}

struct bc_overwrite_ring_state bc_channel_flight(const struct bc_channel *l)
{
	const struct bc_slot *oldest = bc_overwrite_ring_peek(&l->flight);

	if (oldest == NULL)
		oldest = l->filling;
	bool holds = l->state == BC_CHANNEL_FLIGHT && oldest != NULL;
	return (struct bc_overwrite_ring_state){
		.chunks = holds ? l->flight.count + (l->filling != NULL) : 0,
		.records = holds ? l->flight.records + filled(l) : 0,
		.ns = holds ? uv_hrtime() - oldest->since_ns : 0,
	};
}

struct bc_counts *bc_channel_counts(struct bc_channel *l)
{
	return l->counts;
}

/* Marks */

struct bc_place bc_channel_place(const struct bc_channel *l, uint32_t at)
{
	const struct bc_chunk *chunk = l->filling != NULL ? &l->filling->chunk : NULL;
	uint32_t have = filled(l);

	at = at < have ? at : have;
	return (struct bc_place){
		.record = l->state == BC_CHANNEL_RECORDING ? l->sent + at : UINT64_MAX,
		.tick = at < have ? bc_chunk_tick(chunk, at) : l->tick,
		.epoch = l->epoch,
	};
}

bool bc_channel_has_begun(const struct bc_channel *l)
{
	return l->has_begun;
}

bool bc_channel_mark(struct bc_channel *l, struct bc_event *event, const char *text, uint32_t at)
{
	struct bc_chunk *chunk;

	if (!l->has_begun)
		return false;
	chunk = l->filling != NULL ? &l->filling->chunk : filling_chunk(l, l->epoch);
	if (chunk == NULL)
		return false;
	event->position = at < chunk->info.records ? at : chunk->info.records;
	if (bc_chunk_insert_event(chunk, event, text)) {
		if (l->state == BC_CHANNEL_RECORDING)
			time_flush(l);
		return true;
	}
	if (at < chunk->info.records)
		return false;
	bc_channel_submit(l);
	chunk = filling_chunk(l, l->epoch);
	if (chunk == NULL)
		return false;
	event->position = 0;
	return bc_chunk_insert_event(chunk, event, text);
}

/* Life */

void bc_channel_set_flush(struct bc_channel *l, uint64_t flush_ns)
{
	l->options.flush_ns = flush_ns;
}

void bc_channel_set_clock(struct bc_channel *l, uint64_t clock_hz)
{
	l->clock_hz = clock_hz;
}

int bc_channel_open(struct bc_channel **channel, const struct bc_channel_options *options)
{
	struct bc_channel *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	l->options = *options;
	if (options->is_flight && bc_overwrite_ring_init(&l->flight, &options->flight) != 0) {
		free(l);
		return -ENOMEM;
	}
	l->counts = bc_pipeline_counts(options->pipeline);
	l->state = options->is_flight ? BC_CHANNEL_FLIGHT : BC_CHANNEL_IDLE;
	uv_timer_init(options->loop, &l->flush);
	l->flush.data = l;
	l->last_ns = uv_hrtime();
	*channel = l;
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void bc_channel_close(struct bc_channel *l)
{
	if (l == NULL)
		return;
	assert(l->recording == NULL && l->ending == NULL);
	while (bc_overwrite_ring_peek(&l->flight) != NULL)
		drop_oldest(l);
	bc_overwrite_ring_free(&l->flight);
	if (l->filling != NULL) {
		discard(l, &l->filling->chunk);
		bc_pipeline_give_back(l->options.pipeline, l->filling);
	}
	uv_close((uv_handle_t *)&l->flush, on_closed);
}
