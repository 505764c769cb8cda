/* Searches records for triggers, in blocks of up to 64. Each trigger yields a bit mask of the
 * block's records at which it matches; the lowest bit of all masks is the next match. Hold-offs are
 * not checked per record: before the search, each gets the first record that may match again.
 *
 * The search restarts after each match, because its action may change which triggers may act. That
 * costs one pass over the block per match, and nothing per record for triggers that are held off.
 *
 * Invariant: no match is found twice or lost. What is known beyond a search is in the engine: more
 * matches at the same record (`due`, with the record they are at, because a split may have moved or
 * discarded it), and what events at a chunk's end do at the next record (`waiting`, `has_gap`). */
#include "daemon/ingest/trigger_engine.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "formats/base/clock.h"
#include "formats/bus/chunk.h"
#include "formats/bus/stamp.h"
#include "formats/bus/tick_time.h"

void bc_trigger_engine_init(struct bc_trigger_engine *e)
{
	/* `armed` has 290 KB; its entries are set when they are used. */
	memset(e, 0, offsetof(struct bc_trigger_engine, armed));
	e->actions = UINT32_MAX;
}

/* Armed triggers */

static unsigned find_armed(const struct bc_trigger_engine *e, const char *name)
{
	unsigned i = 0;

	while (i < e->count && strcmp(e->armed[i].trigger.name, name) != 0)
		i++;
	return i;
}

const struct bc_trigger *bc_trigger_engine_find(const struct bc_trigger_engine *e, const char *name)
{
	unsigned i = find_armed(e, name);

	return i < e->count ? &e->armed[i].trigger : NULL;
}

int bc_trigger_engine_add(struct bc_trigger_engine *e, const struct bc_trigger *trigger)
{
	unsigned alike = 0;

	if (find_armed(e, trigger->name) < e->count)
		return -EEXIST;
	for (unsigned i = 0; i < e->count; i++)
		alike += e->armed[i].trigger.is_requested == trigger->is_requested;
	if (alike == (trigger->is_requested ? BC_TRIGGERS_REQUESTED : BC_TRIGGERS_CONFIGURED))
		return -ENOSPC;
	if (e->count == 0) { /* no record has been searched */
		e->has_last = false;
		e->has_gap = false;
	}
	e->armed[e->count++] = (struct bc_armed_trigger){.trigger = *trigger};
	return 0;
}

static uint32_t without_bit(uint32_t bits, unsigned i)
{
	uint32_t below = (UINT32_C(1) << i) - 1;

	return (bits & below) | (bits >> 1 & ~below);
}

static void remove_armed(struct bc_trigger_engine *e, unsigned i)
{
	e->count--;
	memmove(&e->armed[i], &e->armed[i + 1], (e->count - i) * sizeof(e->armed[0]));
	e->due = without_bit(e->due, i);
	e->waiting = without_bit(e->waiting, i);
}

int bc_trigger_engine_remove(struct bc_trigger_engine *e, const char *name)
{
	unsigned i = find_armed(e, name);

	if (i == e->count)
		return -ENOENT;
	remove_armed(e, i);
	return 0;
}

void bc_trigger_engine_configure(
	struct bc_trigger_engine *e, const struct bc_trigger *triggers, unsigned count)
{
	for (unsigned i = e->count; i-- > 0;) {
		struct bc_trigger *armed = &e->armed[i].trigger;
		bool keeps = armed->is_requested;
		for (unsigned n = 0; n < count; n++) {
			if (strcmp(armed->name, triggers[n].name) != 0)
				continue;
			keeps = bc_trigger_equal(armed, &triggers[n]);
			armed->filter = triggers[n].filter; /* its region may have moved */
		}
		if (!keeps)
			remove_armed(e, i);
	}
	for (unsigned n = 0; n < count && n < BC_TRIGGERS_CONFIGURED; n++)
		if (find_armed(e, triggers[n].name) == e->count &&
			bc_trigger_engine_add(e, &triggers[n]) != 0)
			return;
}

/* The search */

#define BLOCK_RECORDS BC_FILTER_RECORDS

/* One search of a chunk. */
struct search {
	struct bc_trigger_engine *engine;
	const struct bc_chunk *chunk;
	uint64_t clock_hz;
	uint32_t at;                                /* the block's first record */
	uint32_t n;                                 /* its length */
	uint32_t event;                             /* the first event at or after `at` */
	bool is_head;                               /* `at` is the first record of the batch */
	uint32_t first[BC_TRIGGER_ENGINE_TRIGGERS]; /* the first record at which each may match */
	uint64_t bits[BC_TRIGGER_ENGINE_TRIGGERS];  /* records of the block at which it matches */
	uint32_t no_room; /* marks without space in the chunk, one bit per trigger */

	/* The cache of tick_of(). */
	bool has_tick;
	uint32_t tick_at;
	uint32_t tick_event;
	uint64_t tick;
};

static const uint8_t *engine_record_at(const struct bc_chunk *chunk, uint32_t n)
{
	return chunk->records + (size_t)n * BC_RECORD_BYTES;
}

/* Returns the tick of record n, given the tick of the one before. *event advances to its anchor. */
static uint64_t next_tick(const struct bc_chunk *chunk, uint32_t n, uint64_t tick, uint32_t *event)
{
	uint32_t time = bc_le32(engine_record_at(chunk, n) + 8);

	if (time != BC_TIME_NONE)
		return tick + time;
	for (; *event < chunk->info.events && chunk->events[*event].position <= n; (*event)++)
		if (chunk->events[*event].kind == BC_EVENT_ANCHOR &&
			chunk->events[*event].position == n)
			return chunk->events[*event].value;
	return tick;
}

/* The first record from `from` on whose tick is at least `tick`; `at` is the tick of `from`.
 */
static uint32_t find_tick(const struct bc_chunk *chunk, uint32_t from, uint64_t at, uint64_t tick)
{
	uint32_t event = 0;

	if (chunk->info.last_tick < tick)
		return chunk->info.records;
	while (at < tick && ++from < chunk->info.records)
		at = next_tick(chunk, from, at, &event);
	return from;
}

/* Returns whether a trigger may act now. The answer may change with each match. */
static bool may_act(const struct bc_trigger_engine *e, unsigned i)
{
	const struct bc_trigger *t = &e->armed[i].trigger;

	return (e->actions >> t->action & 1) != 0 &&
	       (t->recording_tag == 0 || t->recording_tag == e->recording_tag);
}

/* Returns the first record at which a trigger may match: where its hold-off has ended. */
static uint32_t first_free(const struct search *s, unsigned i)
{
	const struct bc_armed_trigger *armed = &s->engine->armed[i];
	const struct bc_trigger *t = &armed->trigger;

	if (!may_act(s->engine, i))
		return s->chunk->info.records;
	if (!armed->has_acted || t->holdoff_ns == 0)
		return s->at;
	if (s->clock_hz == 0)
		return bc_now_ns() - armed->acted_ns < t->holdoff_ns ? s->chunk->info.records
								     : s->at;
	if (armed->acted_epoch != s->chunk->info.epoch)
		return s->at;
	uint64_t free = armed->acted_tick + bc_ticks_of_ns(t->holdoff_ns, s->clock_hz);
	return bc_chunk_find_tick(s->chunk, s->at, free);
}

static bool has_mark_room(const struct bc_chunk *chunk, const struct bc_trigger *trigger)
{
	return chunk->info.events < BC_CHUNK_EVENTS &&
	       bc_chunk_count_marks(chunk) < BC_TRIGGER_ENGINE_MARKS_MAX &&
	       strlen(bc_trigger_text(trigger)) <= BC_CHUNK_TEXT_BYTES - chunk->text_bytes;
}

/* Returns whether an event makes a trigger match at the record after it. */
static bool is_of_event(const struct bc_trigger *t, const struct bc_event *event)
{
	return (t->kind == BC_TRIGGER_GAP && event->kind == BC_EVENT_GAP) ||
	       (t->kind == BC_TRIGGER_BOARD && event->kind == BC_EVENT_TRIGGER &&
		       event->text_bytes == 0);
}

/* Returns the ticks between a record without a delta and the one before; 0 if unknown. */
static uint64_t long_delta(const struct search *s, uint32_t n)
{
	const struct bc_trigger_engine *e = s->engine;
	bool is_known = n != 0 || (e->has_last && e->last_epoch == s->chunk->info.epoch);
	uint64_t before = n != 0 ? bc_chunk_tick(s->chunk, n - 1) : e->last_tick;
	uint64_t tick = bc_chunk_tick(s->chunk, n);

	return is_known && tick > before ? tick - before : 0;
}

/* Returns the records of the block that end an idle time: more than `ticks` after the previous
 * record and not after a gap. */
static uint64_t idle_bits(const struct search *s, uint64_t ticks)
{
	const uint8_t *at = engine_record_at(s->chunk, s->at);
	uint64_t bits = 0;

	for (uint32_t i = 0; i < s->n; i++)
		bits |= (uint64_t)(bc_le32(at + (size_t)i * BC_RECORD_BYTES + 8) > ticks ||
				   bc_le32(at + (size_t)i * BC_RECORD_BYTES + 8) == BC_TIME_NONE)
			<< i;
	for (uint64_t left = bits; left != 0; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctzll(left);
		if (bc_le32(at + (size_t)i * BC_RECORD_BYTES + 8) == BC_TIME_NONE &&
			long_delta(s, s->at + i) <= ticks)
			bits ^= UINT64_C(1) << i;
	}
	for (uint32_t e = s->event; e < s->chunk->info.events && bits != 0; e++) {
		const struct bc_event *event = &s->chunk->events[e];
		if (event->position >= s->at + s->n)
			break;
		if (event->kind == BC_EVENT_GAP)
			bits &= ~(UINT64_C(1) << (event->position - s->at));
	}
	if (s->is_head && s->engine->has_gap)
		bits &= ~UINT64_C(1);
	return bits;
}

static uint64_t event_bits(const struct search *s, const struct bc_trigger *t)
{
	uint64_t bits = 0;

	for (uint32_t e = s->event; e < s->chunk->info.events; e++) {
		const struct bc_event *event = &s->chunk->events[e];
		if (event->position >= s->at + s->n)
			break;
		if (is_of_event(t, event))
			bits |= UINT64_C(1) << (event->position - s->at);
	}
	return bits;
}

/* Returns the records of the block at which a trigger matches, ignoring its hold-off. */
static uint64_t matches_of(const struct search *s, const struct bc_armed_trigger *armed)
{
	const struct bc_trigger *t = &armed->trigger;
	uint64_t ticks;

	switch (t->kind) {
	case BC_TRIGGER_RECORD:
		return bc_filter_records(
			&t->filter, engine_record_at(s->chunk, s->at), s->n, &ticks);
	case BC_TRIGGER_BOARD:
	case BC_TRIGGER_GAP:
		return event_bits(s, t);
	case BC_TRIGGER_IDLE:
		if (s->clock_hz == 0)
			return 0;
		return idle_bits(s, bc_ticks_of_ns(t->idle_ns, s->clock_hz)) &
		       ~(uint64_t)(armed->is_silent && s->is_head);
	case BC_TRIGGER_UNSET:
		break;
	}
	return 0;
}

/* Sets the triggers' matches in the block. Returns records with one, except marks without space. */
static uint64_t search_block(struct search *s)
{
	const struct bc_chunk_info *info = &s->chunk->info;
	uint64_t all = 0;

	s->n = info->records - s->at < BLOCK_RECORDS ? info->records - s->at : BLOCK_RECORDS;
	while (s->event < info->events && s->chunk->events[s->event].position < s->at)
		s->event++;
	for (unsigned i = 0; i < s->engine->count; i++) {
		s->bits[i] = 0;
		if (s->first[i] >= s->at + s->n)
			continue;
		s->bits[i] = matches_of(s, &s->engine->armed[i]);
		if (s->is_head)
			s->bits[i] |= s->engine->waiting >> i & 1;
		if (s->first[i] > s->at)
			s->bits[i] &= UINT64_MAX << (s->first[i] - s->at);
		if ((s->no_room >> i & 1) == 0)
			all |= s->bits[i];
	}
	return all;
}

static void start_search(struct search *s)
{
	struct bc_trigger_engine *e = s->engine;

	for (unsigned i = 0; i < e->count; i++) {
		const struct bc_trigger *t = &e->armed[i].trigger;
		s->first[i] = first_free(s, i);
		if (t->action == BC_ACTION_MARK && !has_mark_room(s->chunk, t))
			s->no_room |= UINT32_C(1) << i;
	}
}

/* Ends the effect of events before the first record. */
static void clear_waiting(struct search *s)
{
	s->engine->waiting = 0;
	s->engine->has_gap = false;
	for (unsigned i = 0; i < s->engine->count; i++)
		s->engine->armed[i].is_silent = false;
	s->is_head = false;
}

/* Returns the tick of a record. n must not fall from call to call, so a chunk is walked once. */
static uint64_t tick_of(struct search *s, uint32_t n)
{
	if (!s->has_tick) {
		s->has_tick = true;
		s->tick_at = n;
		s->tick = bc_chunk_tick(s->chunk, n);
	}
	while (s->tick_at < n) {
		s->tick_at++;
		s->tick = next_tick(s->chunk, s->tick_at, s->tick, &s->tick_event);
	}
	return s->tick;
}

/* Starts the hold-off of a mark without space, at record `in_block` of the block. */
static void start_holdoff(struct search *s, unsigned i, uint32_t in_block)
{
	struct bc_armed_trigger *armed = &s->engine->armed[i];
	uint32_t n = s->at + in_block;
	uint64_t tick = tick_of(s, n);
	uint64_t ticks = bc_ticks_of_ns(armed->trigger.holdoff_ns, s->clock_hz);

	armed->has_acted = true;
	armed->acted_epoch = s->chunk->info.epoch;
	armed->acted_tick = tick;
	armed->acted_ns = bc_now_ns();
	s->first[i] = s->chunk->info.records;
	if (s->clock_hz != 0)
		s->first[i] = find_tick(s->chunk, n, tick, tick + ticks);
	if (s->first[i] <= n)
		s->first[i] = n + 1;
}

/* Counts the marks without space among the first `until` records of the block as missed. */
static void count_missed(struct search *s, uint32_t until)
{
	uint64_t mask = until >= 64 ? UINT64_MAX : (UINT64_C(1) << until) - 1;

	for (unsigned i = 0; i < s->engine->count; i++) {
		struct bc_trigger *t = &s->engine->armed[i].trigger;
		uint64_t bits = (s->no_room >> i & 1) != 0 ? s->bits[i] & mask : 0;
		if (t->holdoff_ns == 0) {
			t->missed += (uint64_t)__builtin_popcountll(bits);
			continue;
		}
		while (bits != 0) {
			t->missed++;
			start_holdoff(s, i, (uint32_t)__builtin_ctzll(bits));
			uint32_t free = s->first[i] - s->at;
			bits = free < 64 ? bits & UINT64_MAX << free : 0;
		}
	}
}

/* Moves s->at to the next record with a match and returns the matching triggers; 0: none. */
static uint32_t find_matches(struct search *s)
{
	uint32_t matches = 0;

	start_search(s);
	s->is_head = true;
	while (s->at < s->chunk->info.records) {
		uint64_t all = search_block(s);
		unsigned first = all != 0 ? (unsigned)__builtin_ctzll(all) : s->n;
		count_missed(s, first + 1);
		clear_waiting(s);
		if (all != 0) {
			for (unsigned i = 0; i < s->engine->count; i++)
				matches |= (uint32_t)(s->bits[i] >> first & 1) << i;
			s->at += first;
			return matches & ~s->no_room;
		}
		s->at += s->n;
	}
	return 0;
}

/* Finds the next record from *at on with a match, and sets *at to it. Returns the matching triggers
 * as bits; 0, with *at at the end, for none. Counts marks without space as missed on the way. */
static uint32_t search_chunk(
	struct bc_trigger_engine *e, const struct bc_chunk *chunk, uint32_t *at, uint64_t clock_hz)
{
	struct search s = {.engine = e, .chunk = chunk, .clock_hz = clock_hz, .at = *at};
	uint32_t matches = find_matches(&s);

	*at = s.at;
	return matches;
}

/* Matches */

static bool ends_recording(const struct bc_trigger *trigger)
{
	return trigger->action == BC_ACTION_STOP || trigger->action == BC_ACTION_TOGGLE;
}

/* Returns the first of the due matches; those that end the recording come last. */
static unsigned first_due(const struct bc_trigger_engine *e)
{
	uint32_t ends = 0;

	for (unsigned i = 0; i < e->count; i++)
		ends |= (uint32_t)ends_recording(&e->armed[i].trigger) << i;
	return (unsigned)__builtin_ctz((e->due & ~ends) != 0 ? e->due & ~ends : e->due);
}

/* Counts the due matches as missed: their record is gone. */
static void miss_due(struct bc_trigger_engine *e)
{
	for (; e->due != 0; e->due &= e->due - 1) {
		unsigned i = (unsigned)__builtin_ctz(e->due);
		e->armed[i].trigger.missed += may_act(e, i);
	}
}

static void set_due(
	struct bc_trigger_engine *e, const struct bc_chunk *chunk, uint32_t at, uint32_t matches)
{
	e->due = matches;
	if (matches == 0)
		return;
	e->due_head = bc_le64(chunk->records + (size_t)at * BC_RECORD_BYTES);
	e->due_tick = bc_chunk_tick(chunk, at);
	e->due_epoch = chunk->info.epoch;
}

/* Returns whether the due matches are at this record. */
static bool is_due_at(const struct bc_trigger_engine *e, const struct bc_chunk *chunk, uint32_t at)
{
	return at < chunk->info.records && e->due_epoch == chunk->info.epoch &&
	       e->due_head == bc_le64(chunk->records + (size_t)at * BC_RECORD_BYTES) &&
	       e->due_tick == bc_chunk_tick(chunk, at);
}

/* Pops the first due match. */
static bool pop_due(struct bc_trigger_engine *e, uint32_t *from, struct bc_trigger_match *match)
{
	while (e->due != 0) {
		unsigned i = first_due(e);
		e->due &= ~(UINT32_C(1) << i);
		bool is_match = may_act(e, i);
		/* The recording ends: nothing is left to do at this record. */
		if (is_match && ends_recording(&e->armed[i].trigger))
			e->due = 0;
		if (is_match)
			*match = (struct bc_trigger_match){
				.trigger = &e->armed[i].trigger,
				.position = *from,
				.tick = e->due_tick,
				.epoch = e->due_epoch,
			};
		*from += e->due == 0;
		if (is_match)
			return true;
	}
	return false;
}

bool bc_trigger_engine_next(struct bc_trigger_engine *e, const struct bc_chunk *chunk,
	uint32_t *from, uint64_t clock_hz, struct bc_trigger_match *match)
{
	const struct bc_chunk_info *info = &chunk->info;

	if (e->count == 0) {
		e->due = e->waiting = 0;
		e->has_gap = false;
		*from = info->records;
		return false;
	}
	if (e->due != 0 && !is_due_at(e, chunk, *from))
		miss_due(e);
	if (pop_due(e, from, match))
		return true;
	while (*from < info->records) {
		uint32_t matches = search_chunk(e, chunk, from, clock_hz);
		set_due(e, chunk, *from, matches);
		if (pop_due(e, from, match))
			return true;
	}
	if (info->records != 0) {
		e->has_last = true;
		e->last_epoch = info->epoch;
		e->last_tick = info->last_tick;
	}
	return false;
}

void bc_trigger_engine_finish_chunk(struct bc_trigger_engine *e, const struct bc_chunk *chunk)
{
	for (uint32_t n = chunk->info.events; n-- > 0;) {
		if (chunk->events[n].position != chunk->info.records)
			break;
		e->has_gap = e->has_gap || chunk->events[n].kind == BC_EVENT_GAP;
		for (unsigned i = 0; i < e->count; i++)
			if (is_of_event(&e->armed[i].trigger, &chunk->events[n]))
				e->waiting |= UINT32_C(1) << i;
	}
}

bool bc_trigger_engine_check_silence(struct bc_trigger_engine *e, uint64_t now_ns,
	uint64_t last_data_ns, struct bc_trigger_match *match)
{
	for (unsigned i = 0; i < e->count; i++) {
		struct bc_armed_trigger *armed = &e->armed[i];
		const struct bc_trigger *t = &armed->trigger;
		if (t->kind != BC_TRIGGER_IDLE || armed->is_silent || now_ns < last_data_ns ||
			now_ns - last_data_ns <= t->idle_ns)
			continue;
		armed->is_silent = true;
		if (!may_act(e, i) ||
			(armed->has_acted && now_ns - armed->acted_ns < t->holdoff_ns))
			continue;
		*match = (struct bc_trigger_match){
			.trigger = &armed->trigger,
			.tick = e->last_tick,
			.epoch = e->last_epoch,
		};
		return true;
	}
	return false;
}

/* After a match */

void bc_trigger_engine_fire(struct bc_trigger_engine *e, const struct bc_trigger_match *match)
{
	for (unsigned i = 0; i < e->count; i++) {
		struct bc_armed_trigger *armed = &e->armed[i];
		if (&armed->trigger != match->trigger)
			continue;
		armed->has_acted = true;
		armed->acted_epoch = match->epoch;
		armed->acted_tick = match->tick;
		armed->acted_ns = bc_now_ns();
		armed->trigger.fired++;
	}
}

struct bc_event bc_trigger_match_event(const struct bc_trigger_match *match)
{
	bool is_mark = match->trigger->action == BC_ACTION_MARK;

	return (struct bc_event){
		.position = match->position,
		.kind = is_mark ? BC_EVENT_MARK : BC_EVENT_TRIGGER,
		.text_bytes = (uint16_t)strlen(bc_trigger_text(match->trigger)),
	};
}

bool bc_trigger_engine_write_event(struct bc_chunk *chunk, const struct bc_trigger_match *match)
{
	struct bc_event event = bc_trigger_match_event(match);
	bool is_written = bc_chunk_count_marks(chunk) < BC_TRIGGER_ENGINE_MARKS_MAX &&
			  bc_chunk_insert_event(chunk, &event, bc_trigger_text(match->trigger));

	match->trigger->missed += !is_written;
	return is_written;
}

unsigned bc_chunk_count_marks(const struct bc_chunk *chunk)
{
	unsigned marks = 0;

	for (uint32_t i = 0; i < chunk->info.events; i++)
		marks += chunk->events[i].kind == BC_EVENT_MARK ||
			 chunk->events[i].kind == BC_EVENT_TRIGGER;
	return marks;
}
