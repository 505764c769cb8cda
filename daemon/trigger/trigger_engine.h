/* The watch: the triggers that are armed, and the search for them in records as they come.
 *
 * Batches of new records go through it in their order, each record once:
 *
 *     bc_stamp_...(), bc_record_filter_records()
 *     uint32_t from = the first new record
 *     while (bc_trigger_engine_next(watch, chunk, &from, clock_hz, &hit)) {
 *             ... act, if this hit can act now:
 *             bc_trigger_engine_fire(watch, &hit);
 *             bc_trigger_engine_write_event(chunk, &hit);
 *     }
 *     ...
 *     bc_trigger_engine_finish_chunk(watch, chunk)    before the chunk is handed on, or emptied
 *
 * A hit is at a record: the one that the trigger wants, the one that an idle ends with, or the one
 * that a gap or the board's trigger stands before. Its event stands BEFORE that record; a start
 * begins WITH it, a stop and the recording end BEHIND it, what is `pre` counts back from it. What
 * stands at the end of a chunk hits at the next record, whatever chunk that is in.
 *
 * When the chunk is split at a hit, the loop goes on in the other chunk with `from` less the
 * position of the split; nothing is hit twice and nothing is missed. When it is split behind
 * `from`, the loop goes on in the first until it is through, then in the other from its record 0.
 *
 * Sifting comes first, so a trigger sees only what the filter keeps. No memory is taken; with no
 * triggers armed a batch costs a comparison. All calls are of one thread. */
#ifndef BC_DAEMON_TRIGGER_TRIGGER_ENGINE_H
#define BC_DAEMON_TRIGGER_TRIGGER_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/trigger/trigger.h"
#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"

#define BC_TRIGGER_ENGINE_TRIGGERS (BC_TRIGGERS_CONFIGURED + BC_TRIGGERS_REQUESTED)

/* Marks and triggers in one chunk; the rest of its events is for gaps and anchors. */
#define BC_TRIGGER_ENGINE_MARKS_MAX 128u

struct bc_armed_trigger {
	struct bc_trigger trigger;
	bool has_acted; /* the hold-off counts from what follows */
	uint32_t acted_epoch;
	uint64_t acted_tick;
	uint64_t acted_ns; /* by the host's clock, where the bus's is not known */
	bool is_silent;    /* it has hit in the silence that lasts */
};

struct bc_trigger_engine {
	/* The actions that can act now, a bit (1 << enum bc_trigger_action) each. All at first; the
	 * rest of the triggers isn't even looked for. */
	uint32_t actions;

	unsigned count; /* in the order in which they were armed */
	struct bc_armed_trigger armed[BC_TRIGGER_ENGINE_TRIGGERS];

	/* Its own; a bit an armed trigger. */
	uint32_t due;      /* more hits at the record that bc_trigger_engine_next() goes on at: */
	uint64_t due_head; /* its first eight bytes */
	uint64_t due_tick;
	uint32_t due_epoch;
	uint32_t waiting; /* hits at the next record that comes */
	bool has_gap;     /* before that record something is missing */
	bool has_last;    /* the tick of the last record looked at is known */
	uint32_t last_epoch;
	uint64_t last_tick;
};

struct bc_trigger_match {
	struct bc_trigger *trigger; /* the watch's; until one is removed */
	uint32_t position;          /* the record */
	uint64_t tick;              /* of it */
	uint32_t epoch;
	bool is_silence; /* no record: bc_trigger_engine_check_silence() */
};

void bc_trigger_engine_init(struct bc_trigger_engine *engine);

/* Arms one. Returns 0, -EEXIST when one of that name is armed, -ENOSPC when there are enough of the
 * configuration or of requests. */
int bc_trigger_engine_add(
	struct bc_trigger_engine *engine, const struct bc_trigger *trigger) BC_MUST_CHECK;

/* Disarms one. Returns 0 or -ENOENT. Not within a loop over hits. */
int bc_trigger_engine_remove(struct bc_trigger_engine *engine, const char *name);

/* The one of that name, or NULL. */
struct bc_trigger *bc_trigger_engine_find(struct bc_trigger_engine *engine, const char *name);

/* Takes the configuration's triggers in place of those it had; those that are as they were keep
 * their counts and hold-off. One whose name a request's trigger has takes that one's place. */
void bc_trigger_engine_configure(
	struct bc_trigger_engine *engine, const struct bc_trigger *triggers, unsigned count);

static inline bool bc_trigger_engine_is_empty(const struct bc_trigger_engine *engine)
{
	return engine->count == 0;
}

/* The next hit among records *from .. info.records - 1 and the events before each: by record, then
 * by the order of arming, but for stops and toggles, which come behind the others of their record,
 * and one of them alone. *from is advanced behind what has been looked at, but stays at the hit's
 * record while more hit there. Hits that are held off, or whose action isn't among engine->actions,
 * are passed over; marks for which the chunk has no room are counted as missed and held off.
 * Returns false, and *from is info.records, when there are no more. */
bool bc_trigger_engine_next(struct bc_trigger_engine *engine, const struct bc_chunk *chunk,
	uint32_t *from, uint64_t clock_hz, struct bc_trigger_match *match);

/* A chunk is left after bc_trigger_engine_next() went through all of it: what stands at its end
 * hits at the next record. Once a chunk; not for one that goes on being filled. */
void bc_trigger_engine_finish_chunk(struct bc_trigger_engine *engine, const struct bc_chunk *chunk);

/* Nothing has come since last_data_ns, now being now_ns, both by the host's clock: the next of the
 * idle triggers whose time is up, once a silence. The idle that the bus's clock tells of afterwards
 * is the same one, and hits no more. Call until it returns false. */
bool bc_trigger_engine_check_silence(struct bc_trigger_engine *engine, uint64_t now_ns,
	uint64_t last_data_ns, struct bc_trigger_match *match);

/* The hit acts: it is counted as fired, and its hold-off begins. */
void bc_trigger_engine_fire(struct bc_trigger_engine *engine, const struct bc_trigger_match *match);

/* Its event: a mark for BC_ACTION_MARK, else a trigger, at hit->position. The text is
 * bc_trigger_text(). */
struct bc_event bc_trigger_match_event(const struct bc_trigger_match *match);

/* Puts that event before its record of the chunk. Without room the hit is counted as missed, and
 * false is returned. */
bool bc_trigger_engine_write_event(struct bc_chunk *chunk, const struct bc_trigger_match *match);

/* How many marks and triggers a chunk has, whoever set them. */
unsigned bc_chunk_count_marks(const struct bc_chunk *chunk);

#endif
