/* The trigger engine has the armed triggers and searches new records for them.
 *
 * Each batch of new records passes through it in order, each record once:
 *
 *     bc_stamp_...(), bc_record_filter_records()
 *     uint32_t from = the first new record
 *     while (bc_trigger_engine_next(engine, chunk, &from, clock_hz, &match)) {
 *             bc_trigger_engine_fire(engine, &match);
 *             bc_trigger_engine_write_event(chunk, &match);
 *             ... perform the action
 *     }
 *     ...
 *     bc_trigger_engine_finish_chunk(engine, chunk)    before the chunk is sent or emptied
 *
 * A match is at a record: the one that matches the filter, the first after an idle time, or the one
 * after a gap or a board's trigger. Its event is written BEFORE that record; a start begins WITH
 * it, a stop and the recording end AFTER it, and `pre` counts back from it. A gap or board trigger
 * at the end of a chunk matches at the next record, in whatever chunk that is.
 *
 * An action may split the chunk at the match: continue with the second part, and reduce `from` by
 * the position of the split. After a split later than `from`, finish the first part, then continue
 * with the second from its record 0. Nothing matches twice or is missed.
 *
 * Records are filtered before they are searched, so a trigger sees only records that are kept.
 * Nothing is allocated; without armed triggers a batch costs one comparison. Not thread-safe. */
#ifndef BC_DAEMON_INGEST_TRIGGER_ENGINE_H
#define BC_DAEMON_INGEST_TRIGGER_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/ingest/trigger.h"
#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"

#define BC_TRIGGER_ENGINE_TRIGGERS (BC_TRIGGERS_CONFIGURED + BC_TRIGGERS_REQUESTED)

/* Maximum number of marks and triggers in a chunk; its other events are for gaps and anchors. */
#define BC_TRIGGER_ENGINE_MARKS_MAX 128u

struct bc_armed_trigger {
	struct bc_trigger trigger;
	bool has_acted; /* the hold-off runs from these: */
	uint32_t acted_epoch;
	uint64_t acted_tick;
	uint64_t acted_ns; /* by the host's clock, if the bus clock is unknown */
	bool is_silent;    /* it has matched in the current silence */
};

struct bc_trigger_engine {
	/* The actions that are possible now, a bit (1 << enum bc_trigger_action) each; initially
	 * all. Triggers with other actions are not searched for. */
	uint32_t actions;

	/* The current recording; 0: none. Triggers of other recordings are not searched for. */
	uint64_t recording_tag;

	/* Private; one bit per armed trigger. */
	uint32_t due; /* more matches at the record where bc_trigger_engine_next() continues: */
	uint64_t due_head; /* its first eight bytes */
	uint64_t due_tick;
	uint32_t due_epoch;
	uint32_t waiting; /* match at the next record */
	bool has_gap;     /* the next record is after a gap */
	bool has_last;    /* the tick of the last record searched is known */
	uint32_t last_epoch;
	uint64_t last_tick;

	unsigned count;
	struct bc_armed_trigger armed[BC_TRIGGER_ENGINE_TRIGGERS]; /* in the order of arming */
};

struct bc_trigger_match {
	struct bc_trigger *trigger; /* the engine's; valid until a trigger is removed */
	uint32_t position;          /* of the record */
	uint64_t tick;              /* of the record */
	uint32_t epoch;
};

void bc_trigger_engine_init(struct bc_trigger_engine *engine);

/* Arms a trigger, which is copied. Returns 0, -EEXIST if one with this name is armed, or -ENOSPC if
 * too many of the configuration or of requests are. */
int bc_trigger_engine_add(
	struct bc_trigger_engine *engine, const struct bc_trigger *trigger) BC_MUST_CHECK;

/* Disarms a trigger. Returns 0 or -ENOENT. Must not be called in a loop over matches. */
int bc_trigger_engine_remove(struct bc_trigger_engine *engine, const char *name);

/* Returns the trigger with this name, or NULL. */
const struct bc_trigger *bc_trigger_engine_find(
	const struct bc_trigger_engine *engine, const char *name);

/* Replaces the triggers of the configuration. Unchanged ones keep their counts and hold-off, and
 * get the new ranges of their regions. A new one replaces a requested trigger with its name. */
void bc_trigger_engine_configure(
	struct bc_trigger_engine *engine, const struct bc_trigger *triggers, unsigned count);

static inline bool bc_trigger_engine_is_empty(const struct bc_trigger_engine *engine)
{
	return engine->count == 0;
}

/* Finds the next match among records *from to info.records - 1 and the events before each. Order:
 * by record, then in the order of arming, but a stop or toggle comes last and only one of them per
 * record. *from advances to the match's record while more match there, else past it.
 *
 * Triggers that are held off, whose action is not in engine->actions, or which belong to another
 * recording than engine->recording_tag are ignored. A mark for which the chunk has no space is
 * counted as missed, and its hold-off starts. Returns false, with *from at info.records, if there
 * are no more matches. */
bool bc_trigger_engine_next(struct bc_trigger_engine *engine, const struct bc_chunk *chunk,
	uint32_t *from, uint64_t clock_hz, struct bc_trigger_match *match);

/* Remembers the gaps and board triggers at the chunk's end, which match at the next record. Call it
 * once per chunk, after the last bc_trigger_engine_next(), when nothing more is added. */
void bc_trigger_engine_finish_chunk(struct bc_trigger_engine *engine, const struct bc_chunk *chunk);

/* Finds an idle trigger whose time is exceeded at now_ns, with no data since last_data_ns, both by
 * the host's clock. Each matches once per silence, and not again when the bus clock shows the same
 * idle time afterwards. Call it until it returns false. */
bool bc_trigger_engine_check_silence(struct bc_trigger_engine *engine, uint64_t now_ns,
	uint64_t last_data_ns, struct bc_trigger_match *match);

/* Counts the match as fired and starts the trigger's hold-off. */
void bc_trigger_engine_fire(struct bc_trigger_engine *engine, const struct bc_trigger_match *match);

/* Returns the match's event at match->position: a mark for BC_ACTION_MARK, else a trigger. */
struct bc_event bc_trigger_match_event(const struct bc_trigger_match *match);

/* Inserts that event into the chunk. Without space, counts a missed match and returns false. */
bool bc_trigger_engine_write_event(struct bc_chunk *chunk, const struct bc_trigger_match *match);

/* Returns the number of marks and triggers in a chunk, whatever their origin. */
unsigned bc_chunk_count_marks(const struct bc_chunk *chunk);

#endif
