/* What a tap has to tell its client, in order: records, events, and how much was missed between
 * them. 240 KiB. What doesn't fit is counted, and told at its place. */
#ifndef BC_DAEMON_LIVE_TAP_QUEUE_H
#define BC_DAEMON_LIVE_TAP_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/bus/chunk.h"

#define BC_TAP_SLOTS 6144u

/* For a record's number, and a tick, that isn't there. */
#define BC_TAP_NO_RECORD UINT64_MAX
#define BC_TAP_NO_TICK   UINT64_MAX

enum bc_tap_kind {
	BC_TAP_NOTHING,
	BC_TAP_RECORD,
	BC_TAP_MISSED,
	BC_TAP_GAP,
	BC_TAP_MARK,
	BC_TAP_TRIGGER,
};

/* A mark's and a trigger's text stands in the slots behind it. */
struct bc_tap_item {
	uint8_t kind; /* enum bc_tap_kind */
	uint8_t cause;
	bool exact;
	uint16_t text_bytes;
	uint8_t record[BC_RECORD_BYTES];
	uint32_t epoch;
	uint64_t number; /* of the record; of a gap: lost; else: records missed */
	uint64_t tick;   /* missed: events missed */
};

/* Where the bus is. */
struct bc_tap_place {
	uint64_t record; /* the next one's number, or BC_TAP_NO_RECORD */
	uint64_t tick;   /* of the last one, or BC_TAP_NO_TICK */
	uint32_t epoch;
};

/* Empty when all zero. */
struct bc_tap_queue {
	struct bc_tap_item slots[BC_TAP_SLOTS];
	unsigned first;
	unsigned used;
	bool is_over_full;
	uint64_t missed; /* since the last item was queued; whoever passes records over adds them */
	uint64_t missed_events;
};

/* Whether there is room for records: if not, they needn't be looked at. A queue that ran over wants
 * none until it is half empty, so that there is one object for what was missed, not one between any
 * two records. */
bool bc_tap_queue_wants_records(struct bc_tap_queue *queue);

/* Returns false, and queues nothing, when there is no room; it is not counted then. */
bool bc_tap_queue_record(struct bc_tap_queue *queue, const uint8_t *record, uint64_t number,
	uint64_t tick, uint32_t epoch);

/* A gap, or a mark or trigger with its text; anything else is left out. Without room it is counted
 * as missed. */
void bc_tap_queue_event(struct bc_tap_queue *queue, const struct bc_event *event, const char *text,
	const struct bc_tap_place *place);

bool bc_tap_queue_is_empty(const struct bc_tap_queue *queue);

/* Room for a text, and what is read past it. */
#define BC_TAP_TEXT_ROOM (BC_CHUNK_TEXT_BYTES + sizeof(struct bc_tap_item))

/* Takes the oldest, with its text. Returns false when there is nothing. */
bool bc_tap_queue_pop(
	struct bc_tap_queue *queue, struct bc_tap_item *item, char text[BC_TAP_TEXT_ROOM]);

#endif
