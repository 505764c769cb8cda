#include "daemon/watch.h"

#include <errno.h>
#include <string.h>

#include "daemon/clock.h"
#include "daemon/watch_search.h"
#include "formats/chunk_cut.h"

void bc_watch_init(struct bc_watch *w)
{
	memset(w, 0, sizeof(*w));
	w->actions = UINT32_MAX;
}

/* The triggers that are armed */

static unsigned find(const struct bc_watch *w, const char *name)
{
	unsigned i = 0;

	while (i < w->count && strcmp(w->armed[i].trigger.name, name) != 0)
		i++;
	return i;
}

struct bc_trigger *bc_watch_find(struct bc_watch *w, const char *name)
{
	unsigned i = find(w, name);

	return i < w->count ? &w->armed[i].trigger : NULL;
}

int bc_watch_add(struct bc_watch *w, const struct bc_trigger *trigger)
{
	unsigned alike = 0;

	if (find(w, trigger->name) < w->count)
		return -EEXIST;
	for (unsigned i = 0; i < w->count; i++)
		alike += w->armed[i].trigger.is_of_request == trigger->is_of_request;
	if (alike == (trigger->is_of_request ? BC_TRIGGERS_REQUESTED : BC_TRIGGERS_CONFIGURED))
		return -ENOSPC;
	if (w->count == 0) { /* nobody looked */
		w->has_last = false;
		w->has_gap = false;
	}
	w->armed[w->count++] = (struct bc_armed){.trigger = *trigger};
	return 0;
}

static uint32_t without_bit(uint32_t bits, unsigned i)
{
	uint32_t below = (UINT32_C(1) << i) - 1;

	return (bits & below) | (bits >> 1 & ~below);
}

static void remove_armed(struct bc_watch *w, unsigned i)
{
	w->count--;
	memmove(&w->armed[i], &w->armed[i + 1], (w->count - i) * sizeof(w->armed[0]));
	w->due = without_bit(w->due, i);
	w->waiting = without_bit(w->waiting, i);
}

int bc_watch_remove(struct bc_watch *w, const char *name)
{
	unsigned i = find(w, name);

	if (i == w->count)
		return -ENOENT;
	remove_armed(w, i);
	return 0;
}

void bc_watch_configure(struct bc_watch *w, const struct bc_trigger *triggers, unsigned count)
{
	for (unsigned i = w->count; i-- > 0;) {
		const struct bc_trigger *armed = &w->armed[i].trigger;
		bool stays = armed->is_of_request;
		for (unsigned n = 0; n < count; n++)
			if (strcmp(armed->name, triggers[n].name) == 0)
				stays = bc_trigger_equal(armed, &triggers[n]);
		if (!stays)
			remove_armed(w, i);
	}
	for (unsigned n = 0; n < count && n < BC_TRIGGERS_CONFIGURED; n++)
		if (find(w, triggers[n].name) == w->count && bc_watch_add(w, &triggers[n]) != 0)
			return;
}

/* Hits */

/* Whether a trigger that hit still may act: another that hit there may have acted meanwhile. */
static bool may_act(const struct bc_watch *w, unsigned i)
{
	return (w->actions >> w->armed[i].trigger.action & 1) != 0;
}

static bool is_end(const struct bc_trigger *trigger)
{
	return trigger->action == BC_ACTION_STOP || trigger->action == BC_ACTION_TOGGLE;
}

/* The first of the due hits; those that end the recording come behind all that are in it still. */
static unsigned first_due(const struct bc_watch *w)
{
	uint32_t ends = 0;

	for (unsigned i = 0; i < w->count; i++)
		ends |= (uint32_t)is_end(&w->armed[i].trigger) << i;
	return (unsigned)__builtin_ctz((w->due & ~ends) != 0 ? w->due & ~ends : w->due);
}

/* Gives up the due hits: the record is gone. */
static void miss_due(struct bc_watch *w)
{
	for (; w->due != 0; w->due &= w->due - 1) {
		unsigned i = (unsigned)__builtin_ctz(w->due);
		w->armed[i].trigger.missed += may_act(w, i);
	}
}

static void set_due(struct bc_watch *w, const struct bc_chunk *chunk, uint32_t at, uint32_t hits)
{
	w->due = hits;
	if (hits == 0)
		return;
	w->due_head = bc_le64(chunk->records + (size_t)at * BC_RECORD_BYTES);
	w->due_tick = bc_chunk_tick(chunk, at);
	w->due_epoch = chunk->info.epoch;
}

/* Whether the due hits are at this record. */
static bool is_due_at(const struct bc_watch *w, const struct bc_chunk *chunk, uint32_t at)
{
	return at < chunk->info.records && w->due_epoch == chunk->info.epoch &&
	       w->due_head == bc_le64(chunk->records + (size_t)at * BC_RECORD_BYTES) &&
	       w->due_tick == bc_chunk_tick(chunk, at);
}

/* Takes the first of the due hits. */
static bool take_due(struct bc_watch *w, uint32_t *from, struct bc_hit *hit)
{
	while (w->due != 0) {
		unsigned i = first_due(w);
		w->due &= ~(UINT32_C(1) << i);
		bool is_hit = may_act(w, i);
		/* What it ends has an end then: others have nothing to do at this record. */
		if (is_hit && is_end(&w->armed[i].trigger))
			w->due = 0;
		if (is_hit)
			*hit = (struct bc_hit){
				.trigger = &w->armed[i].trigger,
				.position = *from,
				.tick = w->due_tick,
				.epoch = w->due_epoch,
			};
		*from += w->due == 0;
		if (is_hit)
			return true;
	}
	return false;
}

bool bc_watch_next(struct bc_watch *w, const struct bc_chunk *chunk, uint32_t *from,
	uint64_t clock_hz, struct bc_hit *hit)
{
	const struct bc_chunk_info *info = &chunk->info;

	if (w->count == 0) {
		w->due = w->waiting = 0;
		w->has_gap = false;
		*from = info->records;
		return false;
	}
	if (w->due != 0 && !is_due_at(w, chunk, *from))
		miss_due(w);
	if (take_due(w, from, hit))
		return true;
	while (*from < info->records) {
		uint32_t hits = bc_watch_search(w, chunk, from, clock_hz);
		set_due(w, chunk, *from, hits);
		if (take_due(w, from, hit))
			return true;
	}
	if (info->records != 0) {
		w->has_last = true;
		w->last_epoch = info->epoch;
		w->last_tick = info->last_tick;
	}
	return false;
}

void bc_watch_leave(struct bc_watch *w, const struct bc_chunk *chunk)
{
	for (uint32_t e = chunk->info.events; e-- > 0;) {
		if (chunk->events[e].position != chunk->info.records)
			break;
		w->has_gap = w->has_gap || chunk->events[e].kind == BC_EVENT_GAP;
		for (unsigned i = 0; i < w->count; i++)
			if (bc_watch_is_of_event(&w->armed[i].trigger, &chunk->events[e]))
				w->waiting |= UINT32_C(1) << i;
	}
}

bool bc_watch_silence(
	struct bc_watch *w, uint64_t now_ns, uint64_t last_data_ns, struct bc_hit *hit)
{
	for (unsigned i = 0; i < w->count; i++) {
		struct bc_armed *armed = &w->armed[i];
		const struct bc_trigger *t = &armed->trigger;
		if (t->kind != BC_TRIGGER_IDLE || armed->is_silent || now_ns < last_data_ns ||
			now_ns - last_data_ns <= t->idle_ns)
			continue;
		armed->is_silent = true;
		if (!may_act(w, i) ||
			(armed->has_acted && now_ns - armed->acted_ns < t->holdoff_ns))
			continue;
		*hit = (struct bc_hit){
			.trigger = &armed->trigger,
			.tick = w->last_tick,
			.epoch = w->last_epoch,
			.is_silence = true,
		};
		return true;
	}
	return false;
}

/* What comes of a hit */

void bc_watch_acted(struct bc_watch *w, const struct bc_hit *hit)
{
	for (unsigned i = 0; i < w->count; i++) {
		struct bc_armed *armed = &w->armed[i];
		if (&armed->trigger != hit->trigger)
			continue;
		armed->has_acted = true;
		armed->acted_epoch = hit->epoch;
		armed->acted_tick = hit->tick;
		armed->acted_ns = bc_now_ns();
		armed->trigger.fired++;
	}
}

struct bc_event bc_hit_event(const struct bc_hit *hit)
{
	bool is_mark = hit->trigger->action == BC_ACTION_MARK;

	return (struct bc_event){
		.position = hit->position,
		.kind = is_mark ? BC_EVENT_MARK : BC_EVENT_TRIGGER,
		.text_bytes = (uint16_t)strlen(bc_trigger_text(hit->trigger)),
	};
}

bool bc_watch_record(struct bc_chunk *chunk, const struct bc_hit *hit)
{
	struct bc_event event = bc_hit_event(hit);
	bool is_there = bc_chunk_notes(chunk) < BC_WATCH_NOTES_MAX &&
			bc_chunk_insert_event(chunk, &event, bc_trigger_text(hit->trigger));

	hit->trigger->missed += !is_there;
	return is_there;
}

unsigned bc_chunk_notes(const struct bc_chunk *chunk)
{
	unsigned notes = 0;

	for (uint32_t i = 0; i < chunk->info.events; i++)
		notes += chunk->events[i].kind == BC_EVENT_MARK ||
			 chunk->events[i].kind == BC_EVENT_TRIGGER;
	return notes;
}
