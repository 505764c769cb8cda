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
	struct bc_overwrite_ring ring;
	uint64_t clock_hz;
	bool is_filtering; /* the records that are being stamped are to be sifted */
	struct bc_record_filter_state filter_state;
	bool may_start;       /* triggers may begin a recording */
	bool has_started;     /* the decoder has asked for a chunk */
	uint32_t search_from; /* of the chunk being filled, where triggers are looked for next */
	uint64_t last_ns;
	struct bc_gap_sum gaps[BC_GAP_CAUSES];

	/* The recording under way. */
	const struct bc_recording_info *recording;
	uint64_t sent; /* records of it, handed on */
	uint64_t records_max;
	bool is_detached; /* no delta leads into its first record */
	bool has_cut;     /* a cut waits for a chunk to carry it */
	struct bc_raw_keep raw;
	size_t raw_kept; /* bytes of the piece in hand that are in blocks */

	/* One whose last chunk is still to be sent: `last` if it is filled already. Gaps that wait
	 * are its own until then. */
	const struct bc_recording_info *ending;
	struct bc_slot *last;
};

/* Records in the chunk being filled. */
static inline uint32_t filled(const struct bc_channel *ch)
{
	return ch->filling != NULL ? ch->filling->chunk.info.records : 0;
}

/* Where in the chunk being filled the recording has all it may hold; if nowhere, its end. */
static uint32_t full_position(const struct bc_channel *ch)
{
	uint32_t have = filled(ch);

	if (ch->state != BC_CHANNEL_RECORDING || ch->records_max == 0 ||
		ch->records_max - ch->sent >= have)
		return have;
	return (uint32_t)(ch->records_max - ch->sent);
}

/* Gaps that wait for a chunk */

static uint32_t count_pending(const struct bc_channel *ch)
{
	uint32_t count = 0;

	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		count += ch->pending[cause].kind != 0;
	return count;
}

/* Puts them at the end of a chunk, which must have room for them. */
static void write_pending(struct bc_channel *ch, struct bc_chunk *chunk)
{
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		struct bc_event *gap = &ch->pending[cause];
		if (gap->kind == 0)
			continue;
		gap->position = chunk->info.records;
		if (!bc_chunk_add_event(chunk, gap, NULL))
			assert(!"the caller saw to the room");
		gap->kind = 0;
	}
}

static void clear_pending(struct bc_channel *ch)
{
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++)
		ch->pending[cause].kind = 0;
}

/* Slots */

/* A chunk gets nothing more. */
static void finish_chunk(struct bc_channel *ch, const struct bc_chunk *chunk)
{
	if (ch->options.viewer != NULL)
		ch->options.viewer->end(ch->options.viewer->context, chunk);
	if (ch->options.triggers != NULL)
		bc_trigger_engine_finish_chunk(ch->options.triggers, chunk);
}

/* A chunk's records are nobody's: counted, and the chunk is empty. */
static void discard(struct bc_channel *ch, struct bc_chunk *chunk)
{
	ch->counts->in_flight -= chunk->info.records;
	ch->counts->dropped_idle += chunk->info.records;
	bc_chunk_reset(chunk, ch->tick, ch->epoch);
}

/* Gives up the oldest chunk that is held in flight, of which there must be one. */
static void drop_oldest(struct bc_channel *ch)
{
	struct bc_slot *slot = bc_overwrite_ring_pop(&ch->ring);

	discard(ch, &slot->chunk);
	bc_pipeline_give_back(ch->options.pipeline, slot);
}

/* Hands on a slot of the recording under way. */
static void send_slot(
	struct bc_channel *ch, struct bc_slot *slot, const struct bc_recording_info *recording)
{
	struct bc_chunk_info *info = &slot->chunk.info;

	slot->recording = recording;
	info->recording_tag = recording->tag;
	info->first_record = ch->sent;
	ch->sent += info->records;
	bc_pipeline_send(ch->options.pipeline, slot);
}

/* Sends the ended recording's last chunk, or an empty one, with what waits for it. Returns false
 * when there is none to send yet. */
static bool send_end(struct bc_channel *ch)
{
	while (ch->last == NULL || !bc_chunk_has_room(&ch->last->chunk, count_pending(ch)) ||
		(ch->last->raw != NULL &&
			!bc_raw_block_has_room(ch->last->raw, ch->raw.pending_count, 0))) {
		if (ch->last != NULL)
			send_slot(ch, ch->last, ch->ending);
		ch->last = bc_pipeline_pop(ch->options.pipeline);
		if (ch->last == NULL)
			return false;
		ch->last->cut_after = false;
		ch->last->is_last = false;
		bc_chunk_reset(&ch->last->chunk, ch->tick, ch->epoch);
		ch->last->chunk.info.wall_ns = bc_wall_ns();
		if (ch->last->raw != NULL)
			bc_raw_keep_start_block(&ch->raw, ch->last->raw, ch->ending->tag);
	}
	write_pending(ch, &ch->last->chunk);
	if (ch->last->raw != NULL)
		bc_raw_keep_flush(&ch->raw, ch->last->raw);
	ch->last->cut_after = true;
	ch->last->is_last = true;
	const struct bc_recording_info *ending = ch->ending;
	ch->ending = NULL;
	send_slot(ch, ch->last, ending);
	ch->last = NULL;
	return true;
}

/* An empty slot that goes on where the channel is; NULL: none is free. */
static struct bc_slot *open_slot(struct bc_channel *ch)
{
	if (ch->ending != NULL && !send_end(ch))
		return NULL;
	struct bc_slot *slot = bc_pipeline_pop(ch->options.pipeline);
	if (slot == NULL && ch->state == BC_CHANNEL_FLIGHT) {
		slot = bc_overwrite_ring_pop(&ch->ring);
		if (slot != NULL)
			discard(ch, &slot->chunk);
	}
	if (slot == NULL)
		return NULL;
	slot->cut_after = false;
	slot->is_last = false;
	slot->recording = NULL;
	slot->since_ns = uv_hrtime();
	slot->until_ns = slot->since_ns;
	bc_chunk_reset(&slot->chunk, ch->tick, ch->epoch);
	slot->chunk.info.wall_ns = bc_wall_ns();
	if (slot->raw != NULL)
		bc_raw_keep_start_block(
			&ch->raw, slot->raw, ch->recording != NULL ? ch->recording->tag : 0);
	return slot;
}

/* Makes room in the flight recorder for one chunk more than `after` records. */
static void trim_ring(struct bc_channel *ch, uint64_t after)
{
	while (bc_overwrite_ring_is_over(&ch->ring, after, uv_hrtime()))
		drop_oldest(ch);
}

void bc_channel_submit(struct bc_channel *ch)
{
	struct bc_slot *slot = ch->filling;

	if (slot == NULL || bc_slot_is_empty(slot))
		return;
	finish_chunk(ch, &slot->chunk);
	switch (ch->state) {
	case BC_CHANNEL_IDLE:
		discard(ch, &slot->chunk);
		return;
	case BC_CHANNEL_FLIGHT:
		trim_ring(ch, slot->chunk.info.records);
		bc_overwrite_ring_add(&ch->ring, slot);
		break;
	case BC_CHANNEL_RECORDING:
		uv_timer_stop(&ch->flush);
		send_slot(ch, slot, ch->recording);
		break;
	}
	ch->filling = NULL;
}

/* Sends the chunk being filled, or an empty one, to carry a cut. Returns false when there is none
 * to send. */
static bool send_cut(struct bc_channel *ch)
{
	if (ch->filling == NULL)
		ch->filling = open_slot(ch);
	if (ch->filling == NULL)
		return false;
	finish_chunk(ch, &ch->filling->chunk);
	ch->filling->cut_after = true;
	ch->has_cut = false;
	uv_timer_stop(&ch->flush);
	send_slot(ch, ch->filling, ch->recording);
	ch->filling = NULL;
	return true;
}

/* The chunk being filled */

/* The chunk being filled, with room for the gaps that wait, one event more and an anchor; NULL when
 * none is free. */
static struct bc_chunk *filling_chunk(struct bc_channel *ch, uint32_t epoch)
{
	uint32_t events = count_pending(ch) + 2;

	if (ch->has_cut && !send_cut(ch))
		return NULL;
	if (ch->filling != NULL && !bc_chunk_is_empty(&ch->filling->chunk) &&
		(ch->filling->chunk.info.epoch != epoch ||
			!bc_chunk_has_room(&ch->filling->chunk, events)))
		bc_channel_submit(ch);
	ch->epoch = epoch;
	if (ch->filling != NULL && bc_chunk_is_empty(&ch->filling->chunk)) {
		/* Taken for samples that were all dropped, or raw bytes, or left by a chunk that
		 * nobody keeps. */
		struct bc_chunk_info *info = &ch->filling->chunk.info;
		info->epoch = epoch;
		info->first_tick = ch->tick;
		info->last_tick = ch->tick;
		info->wall_ns = bc_wall_ns();
		ch->filling->since_ns = uv_hrtime();
	}
	if (ch->filling == NULL)
		ch->filling = open_slot(ch);
	if (ch->filling == NULL)
		return NULL;
	write_pending(ch, &ch->filling->chunk);
	return &ch->filling->chunk;
}

struct bc_chunk *bc_channel_chunk(struct bc_channel *ch, struct bc_stamper *stamper)
{
	ch->has_started = true;
	bc_channel_check_full(ch);
	if (ch->epoch != stamper->epoch)
		ch->tick = stamper->tick;
	if (ch->is_detached)
		stamper->is_first = true;
	ch->is_detached = false;
	struct bc_chunk *chunk = filling_chunk(ch, stamper->epoch);
	ch->is_filtering = chunk != NULL && ch->options.filter != NULL &&
			   !bc_record_filter_keeps_all(ch->options.filter);
	if (ch->is_filtering)
		bc_record_filter_start(&ch->filter_state, stamper, chunk);
	return chunk;
}

void bc_channel_set_wall(struct bc_channel *ch, int64_t wall_ns)
{
	if (ch->filling != NULL && ch->filling->chunk.info.records == 0)
		ch->filling->chunk.info.wall_ns = wall_ns;
}

static void on_flush(uv_timer_t *timer);

/* Something is in the chunk being filled: it waits no longer than so. */
static void start_flush_timer(struct bc_channel *ch)
{
	if (!uv_is_active((uv_handle_t *)&ch->flush))
		uv_timer_start(&ch->flush, on_flush, ch->options.flush_ns / 1000000, 0);
}

/* A flush of a busy pipeline would only make chunks smaller and more. */
static void on_flush(uv_timer_t *timer)
{
	struct bc_channel *ch = timer->data;

	if (bc_pipeline_is_busy(ch->options.pipeline))
		start_flush_timer(ch);
	else
		bc_channel_submit(ch);
}

/* Takes out of the new records what isn't wanted. Returns how many stay. */
static uint32_t filter_new(struct bc_channel *ch, struct bc_stamper *stamper, uint32_t kept)
{
	if (!ch->is_filtering)
		return kept;
	uint32_t removed = bc_record_filter_records(
		ch->options.filter, &ch->filter_state, stamper, &ch->filling->chunk, ch->clock_hz);
	ch->counts->dropped_filtered += removed;
	return kept - removed;
}

uint32_t bc_channel_possible_actions(const struct bc_channel *ch)
{
	bool can_start = ch->state != BC_CHANNEL_RECORDING && ch->may_start &&
			 bc_channel_is_ready(ch);
	bool can_stop = ch->state == BC_CHANNEL_RECORDING;
	uint32_t actions = 0;

	/* Before anything has come there is no place to mark, and nothing held. */
	if (ch->state != BC_CHANNEL_IDLE && ch->has_started)
		actions |= 1u << BC_ACTION_MARK;
	if (can_start)
		actions |= 1u << BC_ACTION_START | 1u << BC_ACTION_TOGGLE;
	if (can_start && ch->state == BC_CHANNEL_FLIGHT && ch->has_started)
		actions |= 1u << BC_ACTION_SNAPSHOT;
	if (can_stop)
		actions |= 1u << BC_ACTION_STOP | 1u << BC_ACTION_TOGGLE;
	return actions;
}

/* The next hit before position `end` of the chunk being filled: the watch sees no more of it. */
static bool next_match(struct bc_channel *ch, uint32_t end, struct bc_trigger_match *match)
{
	struct bc_chunk *chunk = &ch->filling->chunk;
	uint32_t records = chunk->info.records;
	uint64_t last_tick = chunk->info.last_tick;
	uint64_t end_tick = end != 0 && end < records ? bc_chunk_tick(chunk, end - 1) : last_tick;

	chunk->info.records = end;
	chunk->info.last_tick = end_tick;
	bool is_match = bc_trigger_engine_next(
		ch->options.triggers, chunk, &ch->search_from, ch->clock_hz, match);
	chunk->info.records = records;
	chunk->info.last_tick = last_tick;
	return is_match;
}

/* Looks for triggers in the records from `from` on. What they set off may move those that are still
 * to be looked at, or end the recording before them. */
static void search_triggers(struct bc_channel *ch, uint32_t from)
{
	struct bc_trigger_engine *triggers = ch->options.triggers;
	struct bc_trigger_match match;

	if (triggers == NULL || bc_trigger_engine_is_empty(triggers))
		return;
	ch->search_from = from;
	while (ch->filling != NULL) {
		uint32_t end = full_position(ch);
		triggers->actions = bc_channel_possible_actions(ch);
		if (!next_match(ch, end, &match)) {
			if (end == filled(ch))
				return;
			ch->options.on_full(ch->options.session, end);
			assert(ch->state != BC_CHANNEL_RECORDING);
			continue;
		}
		bc_trigger_engine_fire(triggers, &match);
		bc_trigger_engine_write_event(&ch->filling->chunk, &match);
		ch->options.on_match(ch->options.context, &match);
	}
}

/* Shows what is new to all that look at it. */
static void show_new(struct bc_channel *ch, uint32_t from, uint64_t tick_before)
{
	const struct bc_channel_viewer *viewer = ch->options.viewer;
	const struct bc_chunk *chunk = &ch->filling->chunk;

	if (viewer != NULL)
		viewer->records(viewer->context, chunk, from,
			ch->state == BC_CHANNEL_RECORDING ? ch->sent + from : UINT64_MAX,
			tick_before);
	search_triggers(ch, from);
}

void bc_channel_consumed(
	struct bc_channel *ch, struct bc_stamper *stamper, const struct bc_stamped *stamped)
{
	struct bc_chunk_info *info = &ch->filling->chunk.info;
	struct bc_counts *c = ch->counts;
	uint32_t kept = filter_new(ch, stamper, stamped->kept);
	uint64_t tick_before = ch->tick;

	c->received += stamped->taken;
	c->dropped_invalid += stamped->invalid;
	c->unknown_special += stamped->unknown;
	c->in_flight += kept;
	ch->tick = info->last_tick;
	if (kept == 0)
		return;
	ch->last_ns = uv_hrtime();
	ch->filling->until_ns = ch->last_ns;
	show_new(ch, info->records - kept, tick_before);
	if (ch->filling == NULL)
		return;
	switch (ch->state) {
	case BC_CHANNEL_IDLE:
		finish_chunk(ch, &ch->filling->chunk);
		discard(ch, &ch->filling->chunk);
		break;
	case BC_CHANNEL_FLIGHT:
		if (bc_overwrite_ring_is_due(&ch->ring, ch->filling->since_ns, ch->last_ns))
			bc_channel_submit(ch);
		break;
	case BC_CHANNEL_RECORDING:
		start_flush_timer(ch);
		bc_channel_check_full(ch);
		break;
	}
}

/* Gaps, and events that are carried over */

/* Adds to what bc_channel_pop_gaps() takes. */
static void add_gap_sum(
	struct bc_channel *ch, enum bc_gap_cause cause, uint64_t gaps, uint64_t lost, bool exact)
{
	ch->gaps[cause].gaps += gaps;
	ch->gaps[cause].lost += lost;
	ch->gaps[cause].is_inexact = ch->gaps[cause].is_inexact || !exact;
}

static struct bc_event *latest_gap(struct bc_channel *ch, enum bc_gap_cause cause)
{
	struct bc_chunk *chunk = ch->filling != NULL ? &ch->filling->chunk : NULL;

	for (uint32_t i = chunk != NULL ? chunk->info.events : 0; i-- > 0;) {
		struct bc_event *event = &chunk->events[i];
		if (event->position != chunk->info.records)
			break;
		if (event->kind == BC_EVENT_GAP && event->cause == cause)
			return event;
	}
	return NULL;
}

static struct bc_event *pending_gap(struct bc_channel *ch, enum bc_gap_cause cause)
{
	struct bc_event *gap = latest_gap(ch, cause);

	if (gap != NULL)
		return gap;
	gap = &ch->pending[cause];
	if (gap->kind == 0) {
		*gap = (struct bc_event){
			.kind = BC_EVENT_GAP,
			.cause = (uint8_t)cause,
			.exact = true,
		};
		ch->pending_since_ns[cause] = uv_hrtime();
		ch->counts->gaps += ch->state != BC_CHANNEL_IDLE;
		if (ch->state != BC_CHANNEL_IDLE)
			add_gap_sum(ch, cause, 1, 0, true);
	}
	return gap;
}

void bc_channel_gap(struct bc_channel *ch, enum bc_gap_cause cause, uint64_t lost, bool exact)
{
	bc_channel_gap_lasting(ch, cause, lost, exact, 0);
}

void bc_channel_gap_lasting(struct bc_channel *ch, enum bc_gap_cause cause, uint64_t lost,
	bool exact, uint64_t duration_ns)
{
	if (ch->ending != NULL)
		return; /* nothing is kept now, and what waits is the ended recording's */
	struct bc_event *gap = pending_gap(ch, cause);
	if (ch->state != BC_CHANNEL_IDLE)
		add_gap_sum(ch, cause, 0, lost, exact);
	gap->value += lost;
	gap->exact = gap->exact && exact;
	gap->duration_ns += duration_ns;
}

void bc_channel_dropped(struct bc_channel *ch, const struct bc_stamped *stamped)
{
	bool is_stuck = bc_pipeline_stats(ch->options.pipeline)->is_stuck;
	enum bc_gap_cause cause = is_stuck ? BC_GAP_DISK : BC_GAP_BUFFER;
	struct bc_counts *c = ch->counts;

	c->received += stamped->taken;
	c->dropped_invalid += stamped->invalid;
	if (stamped->kept == 0)
		return;
	ch->last_ns = uv_hrtime();
	if (ch->options.viewer != NULL)
		ch->options.viewer->passed(ch->options.viewer->context, stamped->kept);
	if (ch->state == BC_CHANNEL_IDLE || ch->ending != NULL) {
		c->dropped_idle += stamped->kept;
		return;
	}
	if (cause == BC_GAP_DISK)
		c->dropped_disk += stamped->kept;
	else
		c->dropped_buffer += stamped->kept;
	struct bc_event *gap = pending_gap(ch, cause);
	add_gap_sum(ch, cause, 0, stamped->kept, true);
	gap->value += stamped->kept;
	gap->duration_ns = uv_hrtime() - ch->pending_since_ns[cause];
}

void bc_channel_pop_gaps(struct bc_channel *ch, struct bc_gap_sum sums[BC_GAP_CAUSES])
{
	memcpy(sums, ch->gaps, sizeof(ch->gaps));
	memset(ch->gaps, 0, sizeof(ch->gaps));
}

bool bc_channel_event(struct bc_channel *ch, struct bc_stamper *stamper,
	const struct bc_event *event, const char *text)
{
	struct bc_event copy = *event;
	struct bc_chunk *chunk = bc_channel_chunk(ch, stamper);

	if (chunk == NULL)
		return false;
	copy.position = chunk->info.records;
	if (!bc_chunk_add_event(chunk, &copy, text)) {
		bc_channel_submit(ch); /* its texts are full */
		chunk = bc_channel_chunk(ch, stamper);
		if (chunk == NULL)
			return false;
		copy.position = 0;
		if (!bc_chunk_add_event(chunk, &copy, text))
			return true; /* longer than any chunk can hold: it came from no segment */
	}
	if (event->kind == BC_EVENT_GAP && ch->state != BC_CHANNEL_IDLE) {
		ch->counts->gaps++;
		add_gap_sum(ch, event->cause, 1, event->value, event->exact);
	}
	return true;
}

/* Raw bytes */

/* The block for so many entries and bytes more; NULL when none is free. */
static struct bc_raw_block *filling_block(struct bc_channel *ch, uint32_t entries, size_t bytes)
{
	if (ch->has_cut && !send_cut(ch))
		return NULL;
	if (ch->filling != NULL && !bc_raw_block_has_room(ch->filling->raw, entries, bytes))
		bc_channel_submit(ch);
	if (ch->filling == NULL)
		ch->filling = open_slot(ch);
	return ch->filling != NULL ? ch->filling->raw : NULL;
}

/* What is left of a piece finds no block. */
static void drop_raw(struct bc_channel *ch, const struct bc_source_data *data, size_t left)
{
	bool is_stuck = bc_pipeline_stats(ch->options.pipeline)->is_stuck;

	bc_raw_keep_drop(
		&ch->raw, data, ch->raw_kept, is_stuck ? BC_GAP_DISK : BC_GAP_BUFFER, uv_hrtime());
	ch->counts->raw_dropped_bytes += left;
}

bool bc_channel_is_raw_fresh(const struct bc_channel *ch)
{
	return ch->options.keeps_raw && ch->state == BC_CHANNEL_RECORDING &&
	       ch->raw.form == BC_FORMAT_UNKNOWN;
}

bool bc_channel_keep_raw(struct bc_channel *ch, const struct bc_source_data *data, bool is_live)
{
	if (!ch->options.keeps_raw || ch->state != BC_CHANNEL_RECORDING ||
		!bc_raw_is_form(data->format))
		return true;
	size_t count = data->broken == NULL ? data->count : 0;
	do {
		size_t left = count - ch->raw_kept;
		size_t n = left < BC_RAW_BLOCK_BYTES ? left : BC_RAW_BLOCK_BYTES;
		struct bc_raw_block *block = filling_block(ch, bc_raw_keep_entries(&ch->raw), n);
		if (block == NULL && !is_live)
			return false;
		if (block == NULL) {
			drop_raw(ch, data, left);
			break;
		}
		ch->counts->raw_dropped_bytes += bc_raw_keep_add(
			&ch->raw, block, data, ch->raw_kept, n);
		ch->raw_kept += n;
		start_flush_timer(ch);
	} while (ch->raw_kept < count);
	ch->raw_kept = 0;
	return true;
}

/* The end of segments and recordings */

void bc_channel_cut(struct bc_channel *ch)
{
	if (bc_channel_records(ch) != 0)
		ch->has_cut = !send_cut(ch);
}

/* Parts what the chunk being filled holds from position `at` on: it stays, in a slot of its own. */
static struct bc_slot *split_filling(struct bc_channel *ch, uint32_t at)
{
	struct bc_slot *slot = ch->filling;

	ch->filling = NULL;
	if (slot == NULL)
		return NULL;
	if (at >= slot->chunk.info.records) {
		finish_chunk(ch, &slot->chunk);
		return slot;
	}
	struct bc_slot *rest = bc_pipeline_pop(ch->options.pipeline);
	uint32_t over = slot->chunk.info.records - at;
	if (rest == NULL) {
		bc_chunk_drop_back(&slot->chunk, at);
		ch->counts->in_flight -= over;
		ch->counts->dropped_idle += over;
		return slot;
	}
	rest->since_ns = slot->since_ns;
	rest->until_ns = slot->until_ns;
	rest->cut_after = false;
	rest->is_last = false;
	bc_chunk_split(&slot->chunk, at, &rest->chunk);
	rest->chunk.info.wall_ns = bc_wall_ns();
	if (rest->raw != NULL)
		bc_raw_keep_start_block(&ch->raw, rest->raw, 0);
	ch->filling = rest;
	ch->search_from = ch->search_from > at ? ch->search_from - at : 0;
	return slot;
}

void bc_channel_finish_recording(struct bc_channel *ch, uint32_t at)
{
	uint32_t full_at = full_position(ch);

	assert(ch->state == BC_CHANNEL_RECORDING);
	uv_timer_stop(&ch->flush);
	at = full_at < filled(ch) && full_at < at ? full_at : at;
	ch->last = split_filling(ch, at);
	ch->ending = ch->recording;
	ch->recording = NULL;
	ch->has_cut = false;
	ch->records_max = 0;
	ch->state = ch->options.has_flight ? BC_CHANNEL_FLIGHT : BC_CHANNEL_IDLE;
	send_end(ch);
}

void bc_channel_on_slot_free(struct bc_channel *ch)
{
	if (ch->ending != NULL)
		send_end(ch);
}

/* The beginning of recordings */

bool bc_channel_is_ready(const struct bc_channel *ch)
{
	return ch->recording == NULL && ch->ending == NULL;
}

static void discard_front(struct bc_channel *ch, struct bc_chunk *chunk, uint32_t n)
{
	bc_chunk_drop_front(chunk, n);
	if (ch->filling != NULL && chunk == &ch->filling->chunk)
		ch->search_from = ch->search_from > n ? ch->search_from - n : 0;
	ch->counts->in_flight -= n;
	ch->counts->dropped_idle += n;
}

/* Gives up what is held beyond the last `records` of it. */
static void keep_last_records(struct bc_channel *ch, uint64_t records)
{
	uint32_t after = filled(ch);
	struct bc_slot *oldest;

	while ((oldest = bc_overwrite_ring_peek(&ch->ring)) != NULL) {
		uint64_t held = ch->ring.records + after;
		if (held <= records)
			return;
		if (held - records < oldest->chunk.info.records) {
			uint32_t over = (uint32_t)(held - records);
			discard_front(ch, &oldest->chunk, over);
			ch->ring.records -= over;
			return;
		}
		drop_oldest(ch);
	}
	if (after > records)
		discard_front(ch, &ch->filling->chunk, after - (uint32_t)records);
}

/* Gives up what arrived before a moment; of the chunk being filled nothing at or after `at`. */
static void keep_arrived_since(struct bc_channel *ch, uint64_t ns, uint32_t at)
{
	struct bc_slot *oldest;
	uint32_t n;

	while ((oldest = bc_overwrite_ring_peek(&ch->ring)) != NULL) {
		n = bc_slot_records_before(oldest, ns);
		if (n < oldest->chunk.info.records) {
			discard_front(ch, &oldest->chunk, n);
			ch->ring.records -= n;
			return;
		}
		drop_oldest(ch);
	}
	if (ch->filling == NULL)
		return;
	n = bc_slot_records_before(ch->filling, ns);
	discard_front(ch, &ch->filling->chunk, n < at ? n : at);
}

/* Gives up what comes before the recording's first record. */
static void trim_before(struct bc_channel *ch, const struct bc_time_or_size *before, uint32_t at)
{
	uint32_t have = filled(ch);
	uint64_t after = at < have ? have - at : 0;
	uint64_t now = uv_hrtime();

	switch (before->unit) {
	case BC_TIME_OR_SIZE_NONE:
		keep_last_records(ch, after);
		return;
	case BC_TIME_OR_SIZE_BYTES:
		keep_last_records(ch, after + before->value / BC_RECORD_BYTES);
		return;
	case BC_TIME_OR_SIZE_TIME:
		keep_arrived_since(
			ch, before->value < now ? now - before->value : 0, at < have ? at : have);
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
static void detach_first(struct bc_channel *ch)
{
	struct bc_slot *oldest;

	/* An epoch in which nothing came but events has a chunk of its own. */
	while ((oldest = bc_overwrite_ring_peek(&ch->ring)) != NULL &&
		oldest->chunk.info.records == 0)
		drop_oldest(ch);
	struct bc_slot *first = oldest != NULL ? oldest : ch->filling;
	if (first != NULL)
		strip_gaps(&first->chunk);
	ch->is_detached = first == NULL || first->chunk.info.records == 0;
	if (ch->is_detached) {
		clear_pending(ch);
		return;
	}
	/* Where it is full of events, the recording begins after the first of them. */
	while (!bc_chunk_detach(&first->chunk, true)) {
		uint32_t n = first->chunk.events[0].position + 1;
		n = n < first->chunk.info.records ? n : first->chunk.info.records;
		discard_front(ch, &first->chunk, n);
		if (first == oldest)
			ch->ring.records -= n;
	}
}

/* Hands on what was held, up to the limit of the recording: what is beyond that isn't recorded. */
static void send_ring(struct bc_channel *ch)
{
	struct bc_slot *slot;

	while ((slot = bc_overwrite_ring_peek(&ch->ring)) != NULL) {
		uint64_t left = ch->records_max != 0 ? ch->records_max - ch->sent : UINT64_MAX;
		if (left == 0) {
			drop_oldest(ch);
			continue;
		}
		bc_overwrite_ring_pop(&ch->ring);
		uint32_t over = slot->chunk.info.records > left
					? slot->chunk.info.records - (uint32_t)left
					: 0;
		if (over != 0)
			bc_chunk_drop_back(&slot->chunk, (uint32_t)left);
		ch->counts->in_flight -= over;
		ch->counts->dropped_idle += over;
		send_slot(ch, slot, ch->recording);
	}
}

void bc_channel_allow_triggers(struct bc_channel *ch, bool may_start)
{
	ch->may_start = may_start;
}

uint32_t bc_channel_start_recording(struct bc_channel *ch,
	const struct bc_recording_info *recording, const struct bc_time_or_size *before,
	uint32_t at, uint64_t records_max)
{
	uint32_t had = filled(ch);

	assert(bc_channel_is_ready(ch));
	trim_before(ch, before, at);
	detach_first(ch);
	uint32_t dropped = had - filled(ch);
	ch->recording = recording;
	ch->sent = 0;
	ch->records_max = records_max;
	ch->has_cut = false;
	ch->state = BC_CHANNEL_RECORDING;
	ch->raw = (struct bc_raw_keep){.form = BC_FORMAT_UNKNOWN};
	ch->raw_kept = 0;
	send_ring(ch);
	if (ch->filling != NULL && ch->filling->raw != NULL)
		bc_raw_keep_start_block(&ch->raw, ch->filling->raw, recording->tag);
	if (ch->filling != NULL && !bc_chunk_is_empty(&ch->filling->chunk))
		start_flush_timer(ch);
	return at == BC_CHANNEL_NOW ? at : at > dropped ? at - dropped : 0;
}

/* How far a recording has come, and its limits */

enum bc_channel_state bc_channel_state(const struct bc_channel *ch)
{
	return ch->state;
}

uint64_t bc_channel_last_ns(const struct bc_channel *ch)
{
	return ch->last_ns;
}

uint64_t bc_channel_records(const struct bc_channel *ch)
{
	if (ch->state != BC_CHANNEL_RECORDING)
		return 0;
	return ch->sent + filled(ch);
}

uint64_t bc_channel_records_left(const struct bc_channel *ch)
{
	if (ch->state != BC_CHANNEL_RECORDING || ch->records_max == 0)
		return UINT64_MAX;
	uint64_t records = bc_channel_records(ch);
	return records < ch->records_max ? ch->records_max - records : 0;
}

void bc_channel_check_full(struct bc_channel *ch)
{
	if (bc_channel_records_left(ch) == 0)
		ch->options.on_full(ch->options.session, full_position(ch));
}

void bc_channel_limit_records(struct bc_channel *ch, uint32_t at, uint64_t records)
{
	uint32_t have = filled(ch);
	uint64_t max = ch->sent + (at < have ? at : have) + records;

	if (ch->records_max == 0 || max < ch->records_max)
		ch->records_max = max;
}

void bc_channel_limit_tick(struct bc_channel *ch, uint32_t at, uint64_t tick)
{
	uint32_t have = filled(ch);

	if (at >= have)
		return;
	uint32_t end = bc_chunk_find_tick(&ch->filling->chunk, at, tick);
	if (end < have)
		bc_channel_limit_records(ch, at, end - at);
}

struct bc_overwrite_ring_state bc_channel_flight_state(const struct bc_channel *ch)
{
	const struct bc_slot *oldest = bc_overwrite_ring_peek(&ch->ring);

	if (oldest == NULL)
		oldest = ch->filling;
	bool holds = ch->state == BC_CHANNEL_FLIGHT && oldest != NULL;
	return (struct bc_overwrite_ring_state){
		.chunks = holds ? ch->ring.count + (ch->filling != NULL) : 0,
		.records = holds ? ch->ring.records + filled(ch) : 0,
		.ns = holds ? uv_hrtime() - oldest->since_ns : 0,
	};
}

struct bc_counts *bc_channel_counts(struct bc_channel *ch)
{
	return ch->counts;
}

/* Marks */

struct bc_place bc_channel_place(const struct bc_channel *ch, uint32_t at)
{
	const struct bc_chunk *chunk = ch->filling != NULL ? &ch->filling->chunk : NULL;
	uint32_t have = filled(ch);

	at = at < have ? at : have;
	return (struct bc_place){
		.record = ch->state == BC_CHANNEL_RECORDING ? ch->sent + at : UINT64_MAX,
		.tick = at < have ? bc_chunk_tick(chunk, at) : ch->tick,
		.epoch = ch->epoch,
	};
}

bool bc_channel_has_started(const struct bc_channel *ch)
{
	return ch->has_started;
}

bool bc_channel_mark(struct bc_channel *ch, struct bc_event *event, const char *text, uint32_t at)
{
	struct bc_chunk *chunk;

	if (!ch->has_started)
		return false;
	chunk = ch->filling != NULL ? &ch->filling->chunk : filling_chunk(ch, ch->epoch);
	if (chunk == NULL)
		return false;
	event->position = at < chunk->info.records ? at : chunk->info.records;
	if (bc_chunk_insert_event(chunk, event, text)) {
		if (ch->state == BC_CHANNEL_RECORDING)
			start_flush_timer(ch);
		return true;
	}
	if (at < chunk->info.records)
		return false;
	bc_channel_submit(ch);
	chunk = filling_chunk(ch, ch->epoch);
	if (chunk == NULL)
		return false;
	event->position = 0;
	return bc_chunk_insert_event(chunk, event, text);
}

/* Life */

void bc_channel_set_flush(struct bc_channel *ch, uint64_t flush_ns)
{
	ch->options.flush_ns = flush_ns;
}

void bc_channel_set_clock(struct bc_channel *ch, uint64_t clock_hz)
{
	ch->clock_hz = clock_hz;
}

int bc_channel_open(struct bc_channel **channel, const struct bc_channel_options *options)
{
	struct bc_channel *ch = calloc(1, sizeof(*ch));

	if (ch == NULL)
		return -ENOMEM;
	ch->options = *options;
	if (options->has_flight &&
		bc_overwrite_ring_init(&ch->ring, &options->flight_limits) != 0) {
		free(ch);
		return -ENOMEM;
	}
	ch->counts = bc_pipeline_counts(options->pipeline);
	ch->state = options->has_flight ? BC_CHANNEL_FLIGHT : BC_CHANNEL_IDLE;
	uv_timer_init(options->loop, &ch->flush);
	ch->flush.data = ch;
	ch->last_ns = uv_hrtime();
	*channel = ch;
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void bc_channel_close(struct bc_channel *ch)
{
	if (ch == NULL)
		return;
	assert(ch->recording == NULL && ch->ending == NULL);
	while (bc_overwrite_ring_peek(&ch->ring) != NULL)
		drop_oldest(ch);
	bc_overwrite_ring_free(&ch->ring);
	if (ch->filling != NULL) {
		discard(ch, &ch->filling->chunk);
		bc_pipeline_give_back(ch->options.pipeline, ch->filling);
	}
	uv_close((uv_handle_t *)&ch->flush, on_closed);
}
