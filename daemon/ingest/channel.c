/* One chunk is filled at a time (`filling`). Records are stamped into it, filtered, shown to
 * viewers and searched for triggers there. The state decides about the rest:
 *
 *     state       a full chunk         a gap         a trigger may     if no slot is free
 *     idle        is discarded         doesn't count start             samples are idle
 *     flight      enters the ring      is kept       start, snapshot   the oldest chunk is reused
 *                                                    or mark
 *     recording   goes to the encoder  is recorded   stop or mark      the source waits, or samples
 *                                                                      are lost: a gap
 *     ending      as idle or flight    is ignored    mark, in flight   samples are idle
 *
 * Ending is not in enum bc_channel_state: when a recording ends, the channel is idle or in flight
 * at once, and usually its last chunk is sent at once. But if the waiting gaps need another slot
 * and none is free, `ending` is set until one is, and those gaps belong to the ended recording. A
 * start that a trigger would cause meanwhile is not remembered: by then its record may be
 * discarded, and the trigger removed.
 *
 * Invariants:
 *   - A record in `filling`, in the ring or in `last` is counted once as in_flight: code that
 *     removes it calls count_idle(), or sends it to the encoder, and it is counted when written.
 *   - `recording` and `ending` are never both set.
 *   - A position `at` counts records of `filling`. Splitting or trimming that chunk moves it.
 *   - `sent` + the records in `filling` is the next record's number in the recording.
 *
 * In this file: chunks and slots; filling, gaps and events; ending segments and recordings;
 * starting recordings; limits; questions. */
#include "daemon/ingest/channel.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/source/source.h"
#include "daemon/ingest/clock_map.h"
#include "daemon/ingest/pending_gaps.h"
#include "daemon/ingest/pipeline.h"
#include "daemon/ingest/record_filter.h"
#include "daemon/ingest/trigger_engine.h"
#include "formats/base/clock.h"
#include "formats/bus/chunk.h"
#include "formats/bus/stamp.h"
#include "formats/bus/tick_time.h"

struct bc_channel {
	struct bc_channel_options options;
	struct bc_counts *counts;
	uv_timer_t flush;
	enum bc_channel_state state;

	struct bc_slot *filling; /* NULL: the next record needs a slot */
	uint64_t tick;           /* of the latest record; the next chunk starts here */
	uint32_t epoch;
	struct bc_pending_gaps gaps;   /* they precede the next record */
	struct bc_overwrite_ring ring; /* empty unless in flight */
	uint64_t clock_hz;
	struct bc_clock_map clock; /* of this epoch; used if the clock rate is known: */
	bool has_wall;             /* the time of day is that of the source, not the host's: */
	struct bc_clock_point wall;
	bool is_filtering; /* the records being stamped will be filtered */
	struct bc_record_filter_state filter_state;
	bool may_start;       /* the recorder lets triggers start a recording */
	bool has_started;     /* the decoder has asked for a chunk */
	uint32_t search_from; /* position at which the trigger search continues */
	uint64_t last_ns;

	/* The recording in progress. */
	const struct bc_recording_info *recording; /* the recorder's; NULL: none */
	uint64_t sent;                             /* records sent to the encoder */
	struct bc_losses losses;                   /* in the gaps sent */
	uint64_t records_max;
	bool is_detached; /* its first record has not arrived, and must have no delta */
	struct bc_channel_segment segment;
	bool has_cut; /* a cut waits for a free slot */

	/* An ended recording, and its last chunk, which is not sent; NULL: an empty one. */
	const struct bc_recording_info *ending;
	struct bc_slot *last;
};

/* Returns the number of records in the chunk being filled. */
static inline uint32_t filled(const struct bc_channel *ch)
{
	return ch->filling != NULL ? ch->filling->chunk.info.records : 0;
}

/* Returns the slot with the oldest record, or NULL if nothing is in the ring or being filled. */
static struct bc_slot *first_slot(const struct bc_channel *ch)
{
	struct bc_slot *oldest = bc_overwrite_ring_peek(&ch->ring);

	return oldest != NULL ? oldest : ch->filling;
}

/* Returns the position at which the recording reaches its record limit, or the chunk's end. */
static uint32_t full_position(const struct bc_channel *ch)
{
	uint32_t have = filled(ch);

	if (ch->state != BC_CHANNEL_RECORDING || ch->records_max == 0 ||
		ch->records_max - ch->sent >= have)
		return have;
	return (uint32_t)(ch->records_max - ch->sent);
}

/* Chunks and slots */

/* The time of day minus the monotonic time: of some readings, the one that took the least time. */
static int64_t real_ns(void)
{
	uint64_t least_ns = UINT64_MAX;
	int64_t ns = 0;

	for (int i = 0; i < 3; i++) {
		uint64_t before = uv_hrtime();
		int64_t wall_ns = bc_wall_ns();
		uint64_t took_ns = uv_hrtime() - before;
		ns = took_ns < least_ns ? wall_ns - (int64_t)(before + took_ns / 2) : ns;
		least_ns = took_ns < least_ns ? took_ns : least_ns;
	}
	return ns;
}

static void begin_clock(struct bc_channel *ch)
{
	bc_clock_map_begin(&ch->clock, ch->clock_hz, real_ns());
}

/* True if the clock map gives chunks their time of day. */
static bool has_clock(const struct bc_channel *ch)
{
	return ch->options.is_live && !ch->has_wall && ch->clock_hz != 0;
}

/* Returns the time of day of a tick by the source's clock, or what it is now. */
static int64_t start_wall_ns(const struct bc_channel *ch, uint64_t tick)
{
	int64_t ns;

	if (!ch->has_wall)
		return bc_wall_ns();
	(void)bc_tick_time(&ns, ch->wall, tick);
	return ns;
}

/* Gives a chunk its time of day by the clock map: when its first records have arrived, or if too
 * little is known then, when it is complete. */
static void settle_wall(struct bc_channel *ch, struct bc_chunk_info *info, bool is_complete)
{
	if (!has_clock(ch) || info->records == 0 || (is_complete && ch->clock.has_offset))
		return;
	enum bc_clock_map_news news = bc_clock_map_settle(
		&ch->clock, info->first_tick, real_ns(), is_complete);
	info->wall_ns = bc_clock_map_time(&ch->clock, info->first_tick);
	if (news != BC_CLOCK_AS_BEFORE && ch->options.on_clock != NULL)
		ch->options.on_clock(ch->options.context, news, ch->clock.news_ns);
}

/* Returns how much later record n of a slot is than its first: by its tick, or if the clock rate is
 * unknown, by when it arrived. */
static int64_t later_ns(const struct bc_channel *ch, const struct bc_slot *slot, uint32_t n)
{
	const struct bc_chunk_info *info = &slot->chunk.info;
	int64_t ns;

	if (n >= info->records || ch->clock_hz == 0)
		return (int64_t)bc_slot_arrival_ns(slot, n);
	(void)bc_tick_time(&ns, bc_chunk_clock(info, ch->clock_hz), bc_chunk_tick(&slot->chunk, n));
	return ns - info->wall_ns;
}

/* Shows the events after a chunk's last record. Nothing more may be added to it. */
static void finish_chunk(struct bc_channel *ch, const struct bc_chunk *chunk)
{
	if (ch->options.viewer != NULL)
		ch->options.viewer->end(ch->options.viewer->context, chunk);
	if (ch->options.triggers != NULL)
		bc_trigger_engine_finish_chunk(ch->options.triggers, chunk);
}

/* Counts records in chunks that will not be part of a recording. */
static void count_idle(struct bc_channel *ch, uint32_t records)
{
	ch->counts->in_flight -= records;
	ch->counts->dropped_idle += records;
}

/* Empties the chunk being filled. */
static void discard_filling(struct bc_channel *ch)
{
	struct bc_chunk *chunk = &ch->filling->chunk;

	count_idle(ch, chunk->info.records);
	bc_chunk_reset(chunk, ch->tick, ch->epoch);
}

/* Empties a slot to continue after the channel's latest record. */
static void reset_slot(struct bc_channel *ch, struct bc_slot *slot)
{
	slot->cut_after = false;
	slot->is_last = false;
	slot->recording = NULL;
	slot->since_ns = uv_hrtime();
	slot->until_ns = slot->since_ns;
	bc_chunk_reset(&slot->chunk, ch->tick, ch->epoch);
	slot->chunk.info.wall_ns = start_wall_ns(ch, ch->tick);
}

/* Discards the oldest chunk of the overwrite ring, which must not be empty. */
static void drop_oldest(struct bc_channel *ch)
{
	struct bc_slot *slot = bc_overwrite_ring_pop(&ch->ring);

	count_idle(ch, slot->chunk.info.records);
	bc_pipeline_give_back(ch->options.pipeline, slot);
}

/* Sends a slot to the encoder, with the number of its first record and the losses so far. */
static void send_slot(
	struct bc_channel *ch, struct bc_slot *slot, const struct bc_recording_info *recording)
{
	struct bc_chunk_info *info = &slot->chunk.info;

	slot->recording = recording;
	info->recording_tag = recording->tag;
	info->first_record = ch->sent;
	ch->sent += info->records;
	bc_losses_add_chunk(&ch->losses, &slot->chunk);
	info->totals = bc_losses_totals(&ch->losses);
	bc_pipeline_send(ch->options.pipeline, slot);
}

/* Filling */

static bool send_end(struct bc_channel *ch);

static bool send_cut(struct bc_channel *ch);

/* Returns an empty slot, or NULL if none is free. The end of the previous recording gets a slot
 * first. In flight, the ring's oldest chunk is reused: newer records are worth more. */
static struct bc_slot *open_slot(struct bc_channel *ch)
{
	if (ch->ending != NULL && !send_end(ch))
		return NULL;
	struct bc_slot *slot = bc_pipeline_pop(ch->options.pipeline);
	if (slot == NULL && ch->state == BC_CHANNEL_FLIGHT) {
		slot = bc_overwrite_ring_pop(&ch->ring);
		if (slot != NULL)
			count_idle(ch, slot->chunk.info.records);
	}
	if (slot == NULL)
		return NULL;
	reset_slot(ch, slot);
	return slot;
}

/* Ends the chunk being filled ("a full chunk" in the table). Its slot is kept only if idle. */
void bc_channel_submit(struct bc_channel *ch)
{
	struct bc_slot *slot = ch->filling;

	if (slot == NULL || bc_chunk_is_empty(&slot->chunk))
		return;
	finish_chunk(ch, &slot->chunk);
	switch (ch->state) {
	case BC_CHANNEL_IDLE:
		discard_filling(ch);
		return;
	case BC_CHANNEL_FLIGHT:
		settle_wall(ch, &slot->chunk.info, true);
		/* Discard the oldest chunks while the ring's limits hold without them. */
		while (bc_overwrite_ring_is_over(&ch->ring, slot->chunk.info.records, uv_hrtime()))
			drop_oldest(ch);
		bc_overwrite_ring_add(&ch->ring, slot);
		break;
	case BC_CHANNEL_RECORDING:
		uv_timer_stop(&ch->flush);
		settle_wall(ch, &slot->chunk.info, true);
		send_slot(ch, slot, ch->recording);
		break;
	}
	ch->filling = NULL;
}

/* Returns whether the source waits before a new chunk is opened for its data. */
static bool must_wait(struct bc_channel *ch)
{
	return ch->filling == NULL && ch->options.can_wait &&
	       bc_pipeline_is_ahead(ch->options.pipeline);
}

/* Returns the chunk being filled, with the waiting gaps written and room for one more event and an
 * anchor; NULL if no slot is free. A chunk without that room is submitted first. */
static struct bc_chunk *filling_chunk(struct bc_channel *ch)
{
	uint32_t events = bc_pending_gaps_count(&ch->gaps) + 2;

	if (ch->has_cut && !send_cut(ch))
		return NULL;
	if (ch->filling != NULL && !bc_chunk_is_empty(&ch->filling->chunk) &&
		!bc_chunk_has_room(&ch->filling->chunk, events))
		bc_channel_submit(ch);
	if (ch->filling != NULL && ch->filling->chunk.info.records == 0) {
		/* Opened for dropped samples or a mark, or emptied: its records begin now. */
		struct bc_chunk_info *info = &ch->filling->chunk.info;
		info->epoch = ch->epoch;
		info->first_tick = ch->tick;
		info->last_tick = ch->tick;
		info->wall_ns = start_wall_ns(ch, ch->tick);
		ch->filling->since_ns = uv_hrtime();
	}
	if (ch->filling == NULL)
		ch->filling = open_slot(ch);
	if (ch->filling == NULL)
		return NULL;
	bc_pending_gaps_write(&ch->gaps, &ch->filling->chunk);
	return &ch->filling->chunk;
}

/* All records of a chunk are of one epoch. */
void bc_channel_begin_epoch(
	struct bc_channel *ch, struct bc_stamper *stamper, uint32_t epoch, uint64_t tick)
{
	bc_channel_submit(ch);
	bc_stamper_begin(stamper, epoch, tick);
	ch->epoch = epoch;
	ch->tick = tick;
	ch->has_wall = false;
	begin_clock(ch);
}

/* Before each stamping call. The first record of a recording is stamped without a delta. */
struct bc_chunk *bc_channel_chunk(struct bc_channel *ch, struct bc_stamper *stamper)
{
	ch->has_started = true;
	bc_channel_check_full(ch);
	if (ch->is_detached)
		stamper->is_first = true;
	ch->is_detached = false;
	struct bc_chunk *chunk = must_wait(ch) ? NULL : filling_chunk(ch);
	ch->is_filtering = chunk != NULL && ch->options.filter != NULL &&
			   !bc_record_filter_keeps_all(ch->options.filter);
	if (ch->is_filtering)
		bc_record_filter_start(&ch->filter_state, stamper, chunk);
	return chunk;
}

void bc_channel_set_wall(struct bc_channel *ch, int64_t wall_ns, uint64_t tick, uint64_t clock_hz)
{
	ch->has_wall = true;
	ch->wall = (struct bc_clock_point){wall_ns, tick, clock_hz};
}

static void on_channel_flush(uv_timer_t *timer);

/* Submits the chunk flush_ns after its first record, so that a slow bus reaches the disk. */
static void start_flush_timer(struct bc_channel *ch)
{
	if (!uv_is_active((uv_handle_t *)&ch->flush))
		uv_timer_start(&ch->flush, on_channel_flush, ch->options.flush_ns / 1000000, 0);
}

/* While chunks wait for the encoder, flushing would only make smaller ones. */
static void on_channel_flush(uv_timer_t *timer)
{
	struct bc_channel *ch = timer->data;

	if (bc_pipeline_is_busy(ch->options.pipeline))
		start_flush_timer(ch);
	else
		bc_channel_submit(ch);
}

/* New records: viewers and triggers */

/* Filters the new records in place. Returns how many remain. */
static uint32_t filter_new(struct bc_channel *ch, struct bc_stamper *stamper, uint32_t kept)
{
	if (!ch->is_filtering)
		return kept;
	uint32_t removed = bc_record_filter_records(
		ch->options.filter, &ch->filter_state, stamper, &ch->filling->chunk, ch->clock_hz);
	ch->counts->dropped_filtered += removed;
	return kept - removed;
}

/* Returns the actions that triggers may perform now: the column "a trigger may" of the table. */
static uint32_t possible_actions(const struct bc_channel *ch)
{
	bool can_start = ch->state != BC_CHANNEL_RECORDING && ch->may_start &&
			 bc_channel_is_ready(ch);
	bool can_stop = ch->state == BC_CHANNEL_RECORDING;
	uint32_t actions = 0;

	/* Before the first data, nothing can be marked or written out. */
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

void bc_channel_limit_triggers(const struct bc_channel *ch)
{
	ch->options.triggers->actions = possible_actions(ch);
	ch->options.triggers->recording_tag = ch->recording != NULL ? ch->recording->tag : 0;
}

void bc_channel_allow_triggers(struct bc_channel *ch, bool may_start)
{
	ch->may_start = may_start;
}

/* Finds the next match before position `end`: shows the engine a chunk that ends there. */
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

/* Searches the records from position `from` for triggers. on_match() performs the action before it
 * returns, which may start or end a recording in the middle of them. Then they are split, and the
 * search continues in the rest of the chunk; `filling` may be another slot, or NULL.
 * Records after the recording's limit are searched only once it has ended (on_full()), because
 * other actions are possible there. */
static void search_triggers(struct bc_channel *ch, uint32_t from)
{
	struct bc_trigger_engine *triggers = ch->options.triggers;
	struct bc_trigger_match match;

	if (triggers == NULL || bc_trigger_engine_is_empty(triggers))
		return;
	ch->search_from = from;
	while (ch->filling != NULL) {
		uint32_t end = full_position(ch);
		bc_channel_limit_triggers(ch);
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

/* Passes the new records to live clients and the trigger engine. */
static void show_new(struct bc_channel *ch, uint32_t from, uint64_t tick_before)
{
	const struct bc_channel_viewer *viewer = ch->options.viewer;
	const struct bc_chunk *chunk = &ch->filling->chunk;

	if (viewer != NULL)
		viewer->records(viewer->context, chunk, from,
			ch->state == BC_CHANNEL_RECORDING ? ch->sent + from : UINT64_MAX,
			tick_before, ch->clock_hz);
	search_triggers(ch, from);
}

/* After each stamping call: counts, filters and shows the new records, then does what the state
 * demands. Viewers and triggers come first: a trigger may change the state within these records. */
void bc_channel_consumed(
	struct bc_channel *ch, struct bc_stamper *stamper, const struct bc_stamped *stamped)
{
	struct bc_chunk_info *info = &ch->filling->chunk.info;
	struct bc_counts *c = ch->counts;
	uint64_t last_tick = info->last_tick;
	uint32_t kept = filter_new(ch, stamper, stamped->kept);
	uint64_t tick_before = ch->tick;
	uint64_t now = uv_hrtime();

	c->received += stamped->consumed;
	c->dropped_invalid += stamped->invalid;
	c->unknown_special += stamped->unknown;
	c->in_flight += kept;
	ch->tick = info->last_tick;
	if (stamped->kept != 0 && has_clock(ch))
		bc_clock_map_arrive(&ch->clock, last_tick, now);
	if (kept == 0)
		return;
	ch->last_ns = now;
	if (info->records == kept) {
		info->wall_ns = start_wall_ns(ch, info->first_tick);
		settle_wall(ch, info, false);
	}
	ch->filling->until_ns = ch->last_ns;
	if (bc_channel_records(ch) == ch->segment.first_record + kept) {
		ch->segment.since_ns = ch->last_ns;
		ch->segment.wall_ns = info->wall_ns;
	}
	show_new(ch, info->records - kept, tick_before);
	if (ch->filling == NULL)
		return;
	switch (ch->state) {
	case BC_CHANNEL_IDLE:
		finish_chunk(ch, &ch->filling->chunk);
		discard_filling(ch);
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

/* Gaps and events */

/* Adds to the gap of this cause after the latest record. In idle, it is not counted as a loss. */
static struct bc_event *add_to_gap(
	struct bc_channel *ch, enum bc_gap_cause cause, uint64_t lost, bool exact)
{
	return bc_pending_gaps_add(&ch->gaps, ch->filling != NULL ? &ch->filling->chunk : NULL,
		cause, lost, exact, ch->state != BC_CHANNEL_IDLE ? &ch->counts->losses : NULL);
}

static void set_duration(struct bc_channel *ch, struct bc_event *gap, uint64_t duration_ns)
{
	if (ch->state != BC_CHANNEL_IDLE)
		ch->counts->losses.away_ns += duration_ns - gap->duration_ns;
	gap->duration_ns = duration_ns;
}

void bc_channel_gap(struct bc_channel *ch, enum bc_gap_cause cause, uint64_t lost, bool exact)
{
	bc_channel_gap_lasting(ch, cause, lost, exact, 0);
}

void bc_channel_gap_lasting(struct bc_channel *ch, enum bc_gap_cause cause, uint64_t lost,
	bool exact, uint64_t duration_ns)
{
	if (ch->ending != NULL)
		return; /* after the end: waiting gaps would become part of the recording */
	struct bc_event *gap = add_to_gap(ch, cause, lost, exact);
	set_duration(ch, gap, gap->duration_ns + duration_ns);
}

/* Samples were skipped for lack of a slot: the column "if no slot is free". They are missing
 * because of the disk while the writer is stuck, else because the buffer is too small. */
void bc_channel_dropped(struct bc_channel *ch, const struct bc_stamped *stamped)
{
	bool is_stuck = bc_pipeline_stats(ch->options.pipeline)->is_stuck;
	enum bc_gap_cause cause = is_stuck ? BC_GAP_DISK : BC_GAP_BUFFER;
	struct bc_counts *c = ch->counts;

	c->received += stamped->consumed;
	c->dropped_invalid += stamped->invalid;
	if (stamped->kept == 0)
		return;
	ch->last_ns = uv_hrtime();
	if (ch->options.viewer != NULL)
		ch->options.viewer->skipped(ch->options.viewer->context, stamped->kept);
	if (ch->state == BC_CHANNEL_IDLE || ch->ending != NULL) {
		c->dropped_idle += stamped->kept;
		return;
	}
	if (cause == BC_GAP_DISK)
		c->dropped_disk += stamped->kept;
	else
		c->dropped_buffer += stamped->kept;
	struct bc_event *gap = add_to_gap(ch, cause, stamped->kept, true);
	set_duration(ch, gap, uv_hrtime() - ch->gaps.since_ns[cause]);
}

/* Adds an event after the last record: to this chunk or, if it has no room, to the next one, where
 * every text fits. Returns false if no slot is free for that. */
static bool append_event(
	struct bc_channel *ch, struct bc_chunk *chunk, struct bc_event *event, const char *text)
{
	event->position = chunk->info.records;
	if (!bc_chunk_add_event(chunk, event, text)) {
		bc_channel_submit(ch);
		chunk = filling_chunk(ch);
		if (chunk == NULL)
			return false;
		event->position = chunk->info.records;
		if (!bc_chunk_add_event(chunk, event, text))
			return false;
	}
	if (ch->state == BC_CHANNEL_RECORDING)
		start_flush_timer(ch);
	return true;
}

bool bc_channel_event(struct bc_channel *ch, struct bc_stamper *stamper,
	const struct bc_event *event, const char *text)
{
	struct bc_event copy = *event;
	struct bc_chunk *chunk = bc_channel_chunk(ch, stamper);

	if (chunk == NULL || !append_event(ch, chunk, &copy, text))
		return false;
	if (event->kind == BC_EVENT_GAP && ch->state != BC_CHANNEL_IDLE)
		bc_losses_add_gap(&ch->counts->losses, event);
	return true;
}

bool bc_channel_mark(struct bc_channel *ch, struct bc_event *event, const char *text)
{
	struct bc_chunk *chunk = NULL;

	if (ch->has_started)
		chunk = ch->filling != NULL ? &ch->filling->chunk : filling_chunk(ch);
	return chunk != NULL && append_event(ch, chunk, event, text);
}

/* Ending: segments and recordings */

/* Sends the chunk being filled, or an empty one: the segment ends after it. Returns false if no
 * slot is free: filling_chunk() tries again before the next record. */
static bool send_cut(struct bc_channel *ch)
{
	if (ch->filling == NULL)
		ch->filling = open_slot(ch);
	if (ch->filling == NULL)
		return false;
	finish_chunk(ch, &ch->filling->chunk);
	settle_wall(ch, &ch->filling->chunk.info, true);
	ch->filling->cut_after = true;
	ch->has_cut = false;
	uv_timer_stop(&ch->flush);
	send_slot(ch, ch->filling, ch->recording);
	ch->filling = NULL;
	return true;
}

/* Records of an empty recording are not in a segment yet, so there is nothing to cut. */
void bc_channel_cut(struct bc_channel *ch)
{
	if (bc_channel_records(ch) == 0)
		return;
	ch->segment.first_record = bc_channel_records(ch);
	ch->has_cut = !send_cut(ch);
}

const struct bc_channel_segment *bc_channel_segment(const struct bc_channel *ch)
{
	return &ch->segment;
}

/* Splits the chunk being filled at position `at` and returns the first part, or NULL if nothing is
 * being filled. The rest stays in the channel, in a new slot; if none is free, it is discarded. */
static struct bc_slot *split_filling(struct bc_channel *ch, uint32_t at)
{
	struct bc_slot *slot = ch->filling;

	ch->filling = NULL;
	if (slot == NULL)
		return NULL;
	settle_wall(ch, &slot->chunk.info, true);
	if (at >= slot->chunk.info.records) {
		finish_chunk(ch, &slot->chunk);
		return slot;
	}
	struct bc_slot *rest = bc_pipeline_pop(ch->options.pipeline);
	uint32_t over = slot->chunk.info.records - at;
	if (rest == NULL) {
		bc_chunk_drop_back(&slot->chunk, at);
		count_idle(ch, over);
		return slot;
	}
	reset_slot(ch, rest);
	int64_t later = later_ns(ch, slot, at);
	rest->since_ns = slot->since_ns + bc_slot_arrival_ns(slot, at);
	rest->until_ns = slot->until_ns;
	bc_chunk_split(&slot->chunk, at, &rest->chunk);
	rest->chunk.info.wall_ns += later;
	ch->filling = rest;
	ch->search_from = ch->search_from > at ? ch->search_from - at : 0;
	return slot;
}

/* Sends the ended recording's last chunk, or an empty one, with the waiting gaps. Returns false if
 * no slot is free: bc_channel_on_slot_free() tries again. */
static bool send_end(struct bc_channel *ch)
{
	while (ch->last == NULL ||
		!bc_chunk_has_room(&ch->last->chunk, bc_pending_gaps_count(&ch->gaps))) {
		if (ch->last != NULL)
			send_slot(ch, ch->last, ch->ending);
		ch->last = bc_pipeline_pop(ch->options.pipeline);
		if (ch->last == NULL)
			return false;
		reset_slot(ch, ch->last);
	}
	bc_pending_gaps_write(&ch->gaps, &ch->last->chunk);
	ch->last->cut_after = true;
	ch->last->is_last = true;
	const struct bc_recording_info *ending = ch->ending;
	ch->ending = NULL;
	send_slot(ch, ch->last, ending);
	ch->last = NULL;
	return true;
}

/* The records before position `at` become the last chunk; the others stay, idle or in flight. */
void bc_channel_finish_recording(struct bc_channel *ch, uint32_t at)
{
	uint32_t full_at = full_position(ch);

	assert(ch->state == BC_CHANNEL_RECORDING);
	uv_timer_stop(&ch->flush);
	at = full_at < filled(ch) && full_at < at ? full_at : at; /* never beyond the limit */
	ch->last = split_filling(ch, at);
	ch->ending = ch->recording;
	ch->recording = NULL;
	ch->has_cut = false;
	ch->records_max = 0;
	ch->state = ch->options.has_flight ? BC_CHANNEL_FLIGHT : BC_CHANNEL_IDLE;
	send_end(ch);
}

/* Only sends the end: starting the next recording is up to the recorder. */
void bc_channel_on_slot_free(struct bc_channel *ch)
{
	if (ch->ending != NULL)
		send_end(ch);
}

/* Starting recordings */

bool bc_channel_is_ready(const struct bc_channel *ch)
{
	return ch->recording == NULL && ch->ending == NULL;
}

/* Discards n records of the chunk being filled or of the ring's oldest, which then starts later. */
static void discard_front(struct bc_channel *ch, struct bc_slot *slot, uint32_t n)
{
	slot->chunk.info.wall_ns += later_ns(ch, slot, n);
	slot->since_ns += bc_slot_arrival_ns(slot, n);
	bc_chunk_drop_front(&slot->chunk, n);
	if (slot == ch->filling)
		ch->search_from = ch->search_from > n ? ch->search_from - n : 0;
	else
		ch->ring.records -= n;
	count_idle(ch, n);
}

/* Discards all but the latest `records` records of ring and chunk. */
static void keep_last_records(struct bc_channel *ch, uint64_t records)
{
	uint32_t unfinished = filled(ch);
	struct bc_slot *oldest;

	while ((oldest = bc_overwrite_ring_peek(&ch->ring)) != NULL) {
		uint64_t held = ch->ring.records + unfinished;
		if (held <= records)
			return;
		if (held - records < oldest->chunk.info.records) {
			discard_front(ch, oldest, (uint32_t)(held - records));
			return;
		}
		drop_oldest(ch);
	}
	if (unfinished > records)
		discard_front(ch, ch->filling, unfinished - (uint32_t)records);
}

/* The number of records of a slot that are more than ago_ns old: by their ticks, or if the clock
 * map does not know these, by when they arrived. */
static uint32_t older_records(
	const struct bc_channel *ch, const struct bc_slot *slot, uint64_t ago_ns)
{
	uint64_t now = uv_hrtime();
	uint64_t since_ns = ago_ns < now ? now - ago_ns : 0;
	uint64_t tick;

	if (slot->chunk.info.epoch == ch->epoch && slot->chunk.info.records != 0 &&
		bc_channel_tick_at(ch, &tick, since_ns))
		return bc_chunk_find_tick(&slot->chunk, 0, tick);
	return bc_slot_records_before(slot, since_ns);
}

/* Discards the records that are more than ago_ns old, but none from position `at` on. */
static void keep_latest(struct bc_channel *ch, uint64_t ago_ns, uint32_t at)
{
	struct bc_slot *oldest;
	uint32_t n;

	while ((oldest = bc_overwrite_ring_peek(&ch->ring)) != NULL) {
		n = older_records(ch, oldest, ago_ns);
		if (n < oldest->chunk.info.records) {
			discard_front(ch, oldest, n);
			return;
		}
		drop_oldest(ch);
	}
	if (ch->filling == NULL)
		return;
	n = older_records(ch, ch->filling, ago_ns);
	discard_front(ch, ch->filling, n < at ? n : at);
}

/* Discards the records that are more than `before` ahead of position `at`. */
static void trim_before(struct bc_channel *ch, const struct bc_time_or_size *before, uint32_t at)
{
	uint32_t have = filled(ch);
	uint64_t after = at < have ? have - at : 0;

	switch (before->unit) {
	case BC_TIME_OR_SIZE_NONE:
		keep_last_records(ch, after);
		return;
	case BC_TIME_OR_SIZE_BYTES:
		keep_last_records(ch, after + before->value / BC_RECORD_BYTES);
		return;
	case BC_TIME_OR_SIZE_TIME:
		keep_latest(ch, before->value, at < have ? at : have);
		return;
	case BC_TIME_OR_SIZE_ALL:
		return;
	}
}

/* Removes the gaps before a recording's first record: they are not part of it. */
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

/* Makes the first record of ring and chunk the recording's first: without gaps before it, and
 * without its delta, which refers to a record outside the recording. If there is no record, this is
 * left to the next one that arrives. */
static void detach_first(struct bc_channel *ch)
{
	struct bc_slot *first;

	do {
		/* An epoch that contains only events gets its own chunk. */
		while ((first = first_slot(ch)) != NULL && first != ch->filling &&
			first->chunk.info.records == 0)
			drop_oldest(ch);
		if (first != NULL)
			strip_gaps(&first->chunk);
		ch->is_detached = first == NULL || first->chunk.info.records == 0;
		if (ch->is_detached) {
			bc_pending_gaps_clear(&ch->gaps);
			return;
		}
		/* A chunk without room for the anchor starts after its first event instead. If all
		 * events are at its end, no record remains: start with the next chunk. */
		while (!bc_chunk_detach(&first->chunk, true)) {
			uint32_t n = first->chunk.events[0].position + 1;
			discard_front(ch, first,
				n < first->chunk.info.records ? n : first->chunk.info.records);
		}
	} while (first->chunk.info.records == 0);
}

/* Returns the position without the records discarded before it. */
uint32_t bc_channel_trim(
	struct bc_channel *ch, const struct bc_time_or_size *before, uint32_t at, int64_t *wall_ns)
{
	uint32_t had = filled(ch);

	assert(bc_channel_is_ready(ch));
	if (ch->filling != NULL) /* the recording's time of start */
		settle_wall(ch, &ch->filling->chunk.info, true);
	trim_before(ch, before, at);
	detach_first(ch);
	uint32_t dropped = had - filled(ch);
	*wall_ns = ch->is_detached ? bc_wall_ns() : first_slot(ch)->chunk.info.wall_ns;
	return at == BC_CHANNEL_NOW ? at : at > dropped ? at - dropped : 0;
}

/* Sends the ring to the encoder, up to the record limit, and discards the rest. */
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
		count_idle(ch, over);
		send_slot(ch, slot, ch->recording);
	}
}

/* The ring goes to the encoder at once; the chunk being filled becomes the recording's next. */
void bc_channel_start_recording(
	struct bc_channel *ch, const struct bc_recording_info *recording, uint64_t records_max)
{
	assert(bc_channel_is_ready(ch));
	ch->recording = recording;
	ch->sent = 0;
	memset(&ch->losses, 0, sizeof(ch->losses));
	ch->records_max = records_max;
	ch->segment = (struct bc_channel_segment){.since_ns = uv_hrtime(), .wall_ns = bc_wall_ns()};
	ch->has_cut = false;
	ch->state = BC_CHANNEL_RECORDING;
	send_ring(ch);
	if (ch->filling != NULL && !bc_chunk_is_empty(&ch->filling->chunk))
		start_flush_timer(ch);
}

/* Limits */

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

/* The limit is checked where records are added, and before the next chunk is opened. */
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

/* Questions */

bool bc_channel_tick_at(const struct bc_channel *ch, uint64_t *tick, uint64_t now_ns)
{
	return has_clock(ch) && bc_clock_map_tick(&ch->clock, tick, now_ns);
}

enum bc_channel_state bc_channel_state(const struct bc_channel *ch)
{
	return ch->state;
}

bool bc_channel_has_started(const struct bc_channel *ch)
{
	return ch->has_started;
}

uint64_t bc_channel_last_ns(const struct bc_channel *ch)
{
	return ch->last_ns;
}

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

/* Sent chunks, the unsent chunk, and the waiting gaps. */
struct bc_losses bc_channel_losses(const struct bc_channel *ch)
{
	bool is_recording = ch->state == BC_CHANNEL_RECORDING;
	const struct bc_slot *unsent = ch->ending != NULL ? ch->last
				       : is_recording     ? ch->filling
							  : NULL;
	struct bc_losses losses = ch->losses;

	if (unsent != NULL)
		bc_losses_add_chunk(&losses, &unsent->chunk);
	if (is_recording || ch->ending != NULL)
		bc_pending_gaps_add_losses(&ch->gaps, &losses);
	return losses;
}

struct bc_overwrite_ring_state bc_channel_flight_state(const struct bc_channel *ch)
{
	const struct bc_slot *first = first_slot(ch);

	if (ch->state != BC_CHANNEL_FLIGHT || first == NULL)
		return (struct bc_overwrite_ring_state){.chunks = 0};
	return (struct bc_overwrite_ring_state){
		.chunks = ch->ring.count + (ch->filling != NULL),
		.records = ch->ring.records + filled(ch),
		.ns = uv_hrtime() - first->since_ns,
	};
}

struct bc_counts *bc_channel_counts(struct bc_channel *ch)
{
	return ch->counts;
}

/* Open and close */

void bc_channel_set_flush(struct bc_channel *ch, uint64_t flush_ns)
{
	ch->options.flush_ns = flush_ns;
}

void bc_channel_set_clock(struct bc_channel *ch, uint64_t clock_hz)
{
	if (ch->clock_hz == clock_hz)
		return;
	bc_channel_submit(ch);
	ch->clock_hz = clock_hz;
	begin_clock(ch);
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

static void on_channel_closed(uv_handle_t *handle)
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
		count_idle(ch, filled(ch));
		bc_pipeline_give_back(ch->options.pipeline, ch->filling);
	}
	uv_close((uv_handle_t *)&ch->flush, on_channel_closed);
}
