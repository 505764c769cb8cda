#include "daemon/api/tap_queue.h"

#include <assert.h>
#include <string.h>

/* The slots above this number are only for events. */
#define RECORD_SLOTS 5632u
#define REFILL_SLOTS (RECORD_SLOTS / 2)

static struct bc_tap_item *add_slot(struct bc_tap_queue *q)
{
	return &q->slots[(q->first + q->used++) % BC_TAP_SLOTS];
}

static struct bc_tap_item *pop_slot(struct bc_tap_queue *q)
{
	struct bc_tap_item *slot = &q->slots[q->first];

	q->first = (q->first + 1) % BC_TAP_SLOTS;
	q->used--;
	return slot;
}

/* Returns whether the queue has this many slots below `limit`, plus one for the count of what was
 * skipped, and if so queues that count. */
static bool reserve_slots(struct bc_tap_queue *q, unsigned slots, unsigned limit)
{
	bool has_skipped = q->skipped_records != 0 || q->skipped_events != 0;

	if (q->used + slots + has_skipped > limit)
		return false;
	if (has_skipped) {
		*add_slot(q) = (struct bc_tap_item){.kind = BC_TAP_SKIPPED,
			.number = q->skipped_records,
			.tick = q->skipped_events};
		q->skipped_records = 0;
		q->skipped_events = 0;
	}
	return true;
}

bool bc_tap_queue_accepts_records(struct bc_tap_queue *q)
{
	if (q->is_refilling && q->used <= REFILL_SLOTS)
		q->is_refilling = false;
	return !q->is_refilling;
}

bool bc_tap_queue_push_record(struct bc_tap_queue *q, const uint8_t *record, uint64_t number,
	uint64_t tick, uint32_t epoch)
{
	if (!reserve_slots(q, 1, RECORD_SLOTS)) {
		q->is_refilling = true;
		return false;
	}
	struct bc_tap_item *item = add_slot(q);
	item->kind = BC_TAP_RECORD;
	memcpy(item->record, record, BC_RECORD_BYTES);
	item->number = number;
	item->tick = tick;
	item->epoch = epoch;
	return true;
}

static unsigned slots_of(size_t text_bytes)
{
	return (unsigned)((text_bytes + sizeof(struct bc_tap_item) - 1) /
			  sizeof(struct bc_tap_item));
}

static void add_text(struct bc_tap_queue *q, const char *text, size_t n)
{
	while (n != 0) {
		size_t part = n < sizeof(struct bc_tap_item) ? n : sizeof(struct bc_tap_item);
		memcpy(add_slot(q), text, part);
		text += part;
		n -= part;
	}
}

void bc_tap_queue_push_event(struct bc_tap_queue *q, const struct bc_event *event, const char *text,
	const struct bc_tap_position *position)
{
	static const uint8_t kinds[] = {[BC_EVENT_GAP] = BC_TAP_GAP,
		[BC_EVENT_MARK] = BC_TAP_MARK,
		[BC_EVENT_TRIGGER] = BC_TAP_TRIGGER};
	bool is_gap = event->kind == BC_EVENT_GAP;
	uint16_t n = is_gap ? 0 : event->text_bytes;

	assert(n <= BC_CHUNK_TEXT_BYTES);
	if (event->kind >= sizeof(kinds) || kinds[event->kind] == BC_TAP_NOTHING)
		return;
	if (!reserve_slots(q, 1 + slots_of(n), BC_TAP_SLOTS)) {
		q->skipped_events++;
		return;
	}
	*add_slot(q) = (struct bc_tap_item){
		.kind = kinds[event->kind],
		.cause = event->cause,
		.exact = event->exact,
		.text_bytes = n,
		.number = is_gap ? event->value : position->record,
		.tick = position->tick,
		.epoch = position->epoch,
	};
	add_text(q, text, n);
}

bool bc_tap_queue_is_empty(const struct bc_tap_queue *q)
{
	return q->used == 0 && q->skipped_records == 0 && q->skipped_events == 0;
}

bool bc_tap_queue_pop(
	struct bc_tap_queue *q, struct bc_tap_item *item, char text[BC_TAP_TEXT_BYTES])
{
	if (q->used == 0 && !bc_tap_queue_is_empty(q) && !reserve_slots(q, 0, BC_TAP_SLOTS))
		return false;
	if (q->used == 0)
		return false;
	*item = *pop_slot(q);
	if (item->kind != BC_TAP_MARK && item->kind != BC_TAP_TRIGGER)
		return true;
	for (unsigned i = 0; i < slots_of(item->text_bytes); i++)
		memcpy(text + i * sizeof(*item), pop_slot(q), sizeof(*item));
	return true;
}
