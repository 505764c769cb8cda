/* The output queue of one tap: records, events, and counts of what was skipped between them, in
 * order. 240 KiB. What does not fit is counted, and reported at its position. */
#ifndef BC_DAEMON_API_TAP_QUEUE_H
#define BC_DAEMON_API_TAP_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/bus/chunk.h"

#define BC_TAP_SLOTS 6144u

/* An unknown record number, and an unknown tick. */
#define BC_TAP_NO_RECORD UINT64_MAX
#define BC_TAP_NO_TICK   UINT64_MAX

enum bc_tap_kind {
	BC_TAP_NOTHING,
	BC_TAP_RECORD,
	BC_TAP_SKIPPED,
	BC_TAP_GAP,
	BC_TAP_MARK,
	BC_TAP_TRIGGER,
};

/* The text of a mark or trigger is in the slots after it. */
struct bc_tap_item {
	uint8_t kind; /* enum bc_tap_kind */
	uint8_t cause;
	bool exact;
	uint16_t text_bytes;
	uint8_t record[BC_RECORD_BYTES];
	uint32_t epoch;
	uint64_t number; /* the record's number; gap: samples lost; skipped: records */
	uint64_t tick;   /* skipped: events */
};

/* A position in the record stream. */
struct bc_tap_position {
	uint64_t record; /* number of the next record, or BC_TAP_NO_RECORD */
	uint64_t tick;   /* of the last record, or BC_TAP_NO_TICK */
	uint32_t epoch;
};

/* All zero is an empty queue. */
struct bc_tap_queue {
	struct bc_tap_item slots[BC_TAP_SLOTS];
	unsigned first;
	unsigned used;
	bool is_refilling;        /* it was full, and is not half empty yet */
	uint64_t skipped_records; /* since the last item; the tap adds those it does not examine */
	uint64_t skipped_events;
};

/* Returns false if the queue has no room for records, which then need not be examined. A queue that
 * was full accepts records again when it is half empty: this gives one count of skipped records
 * instead of one between any two records. */
bool bc_tap_queue_accepts_records(struct bc_tap_queue *queue);

/* Returns false if there is no room; the record is then neither queued nor counted. */
bool bc_tap_queue_push_record(struct bc_tap_queue *queue, const uint8_t *record, uint64_t number,
	uint64_t tick, uint32_t epoch);

/* Adds a gap, or a mark or trigger with its text; ignores other events. Without room, counts it as
 * skipped. */
void bc_tap_queue_push_event(struct bc_tap_queue *queue, const struct bc_event *event,
	const char *text, const struct bc_tap_position *position);

bool bc_tap_queue_is_empty(const struct bc_tap_queue *queue);

/* Size of the buffer for the text of a mark or trigger: it is copied in whole slots. */
#define BC_TAP_TEXT_BYTES (BC_CHUNK_TEXT_BYTES + sizeof(struct bc_tap_item))

/* Removes the oldest item and copies it and its text. Returns false if the queue is empty. */
bool bc_tap_queue_pop(
	struct bc_tap_queue *queue, struct bc_tap_item *item, char text[BC_TAP_TEXT_BYTES]);

#endif
