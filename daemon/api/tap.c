/* Owns the taps: each has a filter, a queue of what matched, and the line being sent.
 *
 * The loop's thread examines new records for all taps as they arrive, within a budget of CPU time,
 * and queues those that match as items of a fixed size. Lines are formatted when the client can
 * accept them. What does not fit into a queue is counted there; the counts become an item of
 * their own at that position, before the next item.
 *
 * Invariant: every record since a tap was opened has been examined or is counted as skipped, and
 * items keep the order of the stream. */
#include "daemon/api/tap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/clock.h"
#include "formats/base/fast_text.h"
#include "formats/bus/tick_time.h"
#include "formats/codec/columns.h"
#include "formats/http/server.h"

/* The CPU time for taps is limited by a token bucket: it gains 1/SHARE of the elapsed time, up to
 * BUDGET_MAX_NS, and loses what taps use. Unless it is above 0, records are skipped unexamined. */
#define SHARE         20
#define BUDGET_MAX_NS INT64_C(2000000)

#define LINE_BYTES (6 * BC_CHUNK_TEXT_BYTES + 512)

/* Slots of a queue: 288 KiB. Those above RECORD_SLOTS are only for events. */
#define QUEUE_SLOTS  6144u
#define RECORD_SLOTS 5632u
#define REFILL_SLOTS (RECORD_SLOTS / 2)

#define NO_TICK UINT64_MAX
#define NO_WALL INT64_MIN

/* Size of the buffer for the text of a mark or trigger: it is copied in whole slots. */
#define TEXT_BYTES (BC_CHUNK_TEXT_BYTES + sizeof(struct item))

enum item_kind {
	ITEM_NOTHING,
	ITEM_RECORD,
	ITEM_SKIPPED,
	ITEM_GAP,
	ITEM_MARK,
	ITEM_TRIGGER,
};

/* The text of a mark or trigger is in the slots after it. */
struct item {
	uint8_t kind; /* enum item_kind */
	uint8_t cause;
	bool exact;
	uint16_t text_bytes;
	uint8_t record[BC_RECORD_BYTES];
	uint32_t epoch;
	uint64_t number; /* the record's number; gap: samples lost; skipped: records */
	uint64_t tick;   /* skipped: events */
	int64_t wall_ns; /* of a record, or NO_WALL */
};

/* A position in the record stream. */
struct position {
	uint64_t record; /* number of the next record, or BC_TAP_NO_RECORD */
	uint64_t tick;   /* of the last record, or NO_TICK */
	uint32_t epoch;
};

/* All zero is an empty queue. */
struct queue {
	struct item slots[QUEUE_SLOTS];
	unsigned first;
	unsigned used;
	bool is_refilling;        /* it was full, and is not half empty yet */
	uint64_t skipped_records; /* since the last item; the tap adds those it does not examine */
	uint64_t skipped_events;
};

struct tap {
	struct bc_taps *taps;
	struct tap *next;
	struct tap **link;
	struct bc_stream *stream;
	bool is_owner;
	struct bc_filter filter;
	uint64_t limit; /* records still to be queued; UINT64_MAX: no limit */
	bool is_done;   /* the limit was reached */
	struct queue queue;
	char line[LINE_BYTES]; /* the line being sent */
	size_t line_bytes;
	size_t line_sent;
};

struct bc_taps {
	struct tap *first;
	unsigned count;
	unsigned others; /* of them, of users other than the owner */
	struct position position;
	int64_t budget_ns;
	uint64_t counted_ns; /* when the budget was last updated */
	uint64_t served_ns;  /* the server's CPU time at that moment */
	bool has_served;     /* a tap was read since then */
	struct bc_type_word types[BC_REF_TYPES];
	struct bc_time_row times;
	uv_timer_t timer;
};

/* The queue */

static struct item *add_slot(struct queue *q)
{
	return &q->slots[(q->first + q->used++) % QUEUE_SLOTS];
}

static struct item *pop_slot(struct queue *q)
{
	struct item *slot = &q->slots[q->first];

	q->first = (q->first + 1) % QUEUE_SLOTS;
	q->used--;
	return slot;
}

/* Returns whether the queue has this many slots below `limit`, plus one for the count of what was
 * skipped, and if so queues that count. */
static bool reserve_slots(struct queue *q, unsigned slots, unsigned limit)
{
	bool has_skipped = q->skipped_records != 0 || q->skipped_events != 0;

	if (q->used + slots + has_skipped > limit)
		return false;
	if (has_skipped) {
		*add_slot(q) = (struct item){.kind = ITEM_SKIPPED,
			.number = q->skipped_records,
			.tick = q->skipped_events};
		q->skipped_records = 0;
		q->skipped_events = 0;
	}
	return true;
}

/* Returns false if the queue has no room for records, which then need not be examined. A queue that
 * was full accepts records again when it is half empty: this gives one count of skipped records
 * instead of one between any two records. */
static bool queue_accepts_records(struct queue *q)
{
	if (q->is_refilling && q->used <= REFILL_SLOTS)
		q->is_refilling = false;
	return !q->is_refilling;
}

/* Returns false if there is no room; the record is then neither queued nor counted. */
static bool queue_push_record(
	struct queue *q, const uint8_t *record, const struct position *position, int64_t wall_ns)
{
	if (!reserve_slots(q, 1, RECORD_SLOTS)) {
		q->is_refilling = true;
		return false;
	}
	struct item *item = add_slot(q);
	item->kind = ITEM_RECORD;
	memcpy(item->record, record, BC_RECORD_BYTES);
	item->number = position->record;
	item->tick = position->tick;
	item->epoch = position->epoch;
	item->wall_ns = wall_ns;
	return true;
}

static unsigned slots_of(size_t text_bytes)
{
	return (unsigned)((text_bytes + sizeof(struct item) - 1) / sizeof(struct item));
}

static void add_text(struct queue *q, const char *text, size_t n)
{
	while (n != 0) {
		size_t part = n < sizeof(struct item) ? n : sizeof(struct item);
		memcpy(add_slot(q), text, part);
		text += part;
		n -= part;
	}
}

/* Adds a gap, mark or trigger with its text; ignores other events. Without room, it is skipped. */
static void queue_push_event(struct queue *q, const struct bc_event *event, const char *text,
	const struct position *position)
{
	static const uint8_t kinds[] = {[BC_EVENT_GAP] = ITEM_GAP,
		[BC_EVENT_MARK] = ITEM_MARK,
		[BC_EVENT_TRIGGER] = ITEM_TRIGGER};
	bool is_gap = event->kind == BC_EVENT_GAP;
	uint16_t n = is_gap ? 0 : event->text_bytes;

	assert(n <= BC_CHUNK_TEXT_BYTES);
	if (event->kind >= sizeof(kinds) || kinds[event->kind] == ITEM_NOTHING)
		return;
	if (!reserve_slots(q, 1 + slots_of(n), QUEUE_SLOTS)) {
		q->skipped_events++;
		return;
	}
	*add_slot(q) = (struct item){
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

static bool queue_is_empty(const struct queue *q)
{
	return q->used == 0 && q->skipped_records == 0 && q->skipped_events == 0;
}

/* Removes the oldest item and copies it and its text. Returns false if the queue is empty. */
static bool queue_pop(struct queue *q, struct item *item, char text[TEXT_BYTES])
{
	if (q->used == 0 && !queue_is_empty(q) && !reserve_slots(q, 0, QUEUE_SLOTS))
		return false;
	if (q->used == 0)
		return false;
	*item = *pop_slot(q);
	if (item->kind != ITEM_MARK && item->kind != ITEM_TRIGGER)
		return true;
	for (unsigned i = 0; i < slots_of(item->text_bytes); i++)
		memcpy(text + i * sizeof(*item), pop_slot(q), sizeof(*item));
	return true;
}

/* The budget */

static uint64_t budget_start(struct bc_taps *taps)
{
	uint64_t now_ns = bc_now_ns();
	uint64_t served_ns = bc_stream_served_ns(taps->first->stream);

	/* If the server has served any tap, all of its CPU time is charged to the taps. */
	if (taps->has_served)
		taps->budget_ns -= (int64_t)(served_ns - taps->served_ns);
	taps->budget_ns += (int64_t)((now_ns - taps->counted_ns) / SHARE);
	if (taps->budget_ns > BUDGET_MAX_NS)
		taps->budget_ns = BUDGET_MAX_NS;
	taps->counted_ns = now_ns;
	taps->served_ns = served_ns;
	taps->has_served = false;
	return bc_thread_ns();
}

/* Examining records: the new ones of a chunk for one tap, in runs that end where an event is */

struct cursor {
	const struct bc_chunk *chunk;
	uint64_t clock_hz;        /* 0: unknown */
	struct position position; /* of record `at` */
	uint32_t at;
	uint32_t ticks_end; /* position.tick is the tick of the record before this one; <= at */
	bool has_budget;
};

static const uint8_t *cursor_record(const struct cursor *c, uint32_t n)
{
	return c->chunk->records + (size_t)n * BC_RECORD_BYTES;
}

static void advance(struct cursor *c, uint32_t n)
{
	c->at += n;
	if (c->position.record != BC_TAP_NO_RECORD)
		c->position.record += n;
}

/* Queues the matching ones of the next n <= BC_FILTER_RECORDS records. Returns how many were
 * examined: all, with the position's tick set to the tick of the last; or fewer, with the tick
 * unchanged, if the queue is full or the limit is reached. */
static uint32_t examine_records(struct tap *tap, struct cursor *c, uint32_t n)
{
	const uint8_t *records = cursor_record(c, c->at);
	struct position match = c->position;
	const struct bc_clock_point clock = bc_chunk_clock(&c->chunk->info, c->clock_hz);
	uint64_t ticks;
	uint32_t next = 0; /* match.tick is the tick of the record before this one */

	for (uint64_t bits = bc_filter_records(&tap->filter, records, n, &ticks); bits != 0;
		bits &= bits - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(bits);
		match.tick = bc_records_ticks(
			records + (size_t)next * BC_RECORD_BYTES, i + 1 - next, match.tick);
		next = i + 1;
		if (match.record != BC_TAP_NO_RECORD)
			match.record = c->position.record + i;
		int64_t wall_ns;
		if (!bc_tick_time(&wall_ns, clock, match.tick))
			wall_ns = NO_WALL;
		if (!queue_push_record(&tap->queue, cursor_record(c, c->at + i), &match, wall_ns))
			return i;
		if (tap->limit != UINT64_MAX && --tap->limit == 0)
			tap->is_done = true;
		if (tap->is_done)
			return i + 1;
	}
	c->position.tick += ticks;
	return n;
}

static void offer_run(struct tap *tap, struct cursor *c, uint32_t to)
{
	while (c->has_budget && c->at < to && !tap->is_done && queue_accepts_records(&tap->queue)) {
		uint32_t n = to - c->at < BC_FILTER_RECORDS ? to - c->at : BC_FILTER_RECORDS;
		uint32_t examined = examine_records(tap, c, n);
		advance(c, examined);
		if (examined == n)
			c->ticks_end = c->at;
	}
	if (!tap->is_done)
		tap->queue.skipped_records += to - c->at;
	advance(c, to - c->at);
}

static void offer_records(struct tap *tap, struct cursor c)
{
	const struct bc_chunk_info *info = &c.chunk->info;
	uint32_t i = info->events;

	while (i != 0 && c.chunk->events[i - 1].position >= c.at)
		i--;
	for (; i < info->events && !tap->is_done; i++) {
		const struct bc_event *event = &c.chunk->events[i];
		if (event->position >= info->records)
			break;
		offer_run(tap, &c, event->position);
		/* Ticks of unexamined records are added up only when an event needs them. */
		if (c.ticks_end < c.at)
			c.position.tick = bc_records_ticks(cursor_record(&c, c.ticks_end),
				c.at - c.ticks_end, c.position.tick);
		c.ticks_end = c.at;
		if (event->kind == BC_EVENT_ANCHOR)
			c.position.tick = event->value;
		else
			queue_push_event(
				&tap->queue, event, c.chunk->text + event->text, &c.position);
	}
	if (!tap->is_done)
		offer_run(tap, &c, info->records);
}

/* Sending */

static char *write_number(char *out, uint64_t value, uint64_t none)
{
	return value == none ? BC_WRITE_LITERAL(out, "null") : bc_write_decimal(out, value);
}

static char *write_record(struct bc_taps *taps, char *out, const struct item *item)
{
	struct bc_record r = bc_record_load(item->record);
	const struct bc_type_word *type = &taps->types[r.reqtype];

	out = write_number(BC_WRITE_LITERAL(out, "{\"number\":"), item->number, BC_TAP_NO_RECORD);
	out = bc_write_decimal(BC_WRITE_LITERAL(out, ",\"tick\":"), item->tick);
	out = bc_write_decimal(BC_WRITE_LITERAL(out, ",\"epoch\":"), item->epoch);
	out = BC_WRITE_LITERAL(out, ",\"time\":");
	if (item->wall_ns == NO_WALL) {
		out = BC_WRITE_LITERAL(out, "null");
	} else {
		*out++ = '"';
		out = bc_write_time_row(out, &taps->times, item->wall_ns);
		*out++ = '"';
	}
	out = bc_write_hex(BC_WRITE_LITERAL(out, ",\"addr\":\"0x"), r.addr);
	out = BC_WRITE_LITERAL(out, "\",\"type\":\"");
	memcpy(out, type->text, type->bytes);
	out = bc_write_decimal(BC_WRITE_LITERAL(out + type->bytes, "\",\"size\":"), r.size);
	out = bc_write_decimal(BC_WRITE_LITERAL(out, ",\"attr\":"), r.attr);
	out = bc_write_decimal(BC_WRITE_LITERAL(out, ",\"proc\":"), r.proc);
	out = write_number(BC_WRITE_LITERAL(out, ",\"delta\":"), r.time, BC_TIME_NONE);
	return BC_WRITE_LITERAL(out, "}\n");
}

static char *write_skipped(char *out, uint64_t records, uint64_t events)
{
	out = bc_write_decimal(BC_WRITE_LITERAL(out, "{\"skipped\":{\"records\":"), records);
	out = bc_write_decimal(BC_WRITE_LITERAL(out, ",\"events\":"), events);
	return BC_WRITE_LITERAL(out, "}}\n");
}

static char *write_gap(char *out, const struct item *item)
{
	out = BC_WRITE_LITERAL(out, "{\"gap\":{\"cause\":\"");
	out = stpcpy(out, bc_gap_cause_name(item->cause));
	out = bc_write_decimal(BC_WRITE_LITERAL(out, "\",\"lost\":"), item->number);
	out = BC_WRITE_LITERAL(out, ",\"exact\":");
	return stpcpy(out, item->exact ? "true}}\n" : "false}}\n");
}

static char *write_mark(char *out, const struct item *item, const char *text)
{
	out = stpcpy(
		out, item->kind == ITEM_MARK ? "{\"mark\":{\"text\":" : "{\"trigger\":{\"text\":");
	out = bc_json_write_text(out, (struct bc_text){.at = text, .bytes = item->text_bytes});
	out = write_number(BC_WRITE_LITERAL(out, ",\"record\":"), item->number, BC_TAP_NO_RECORD);
	out = write_number(BC_WRITE_LITERAL(out, ",\"tick\":"), item->tick, NO_TICK);
	out = bc_write_decimal(BC_WRITE_LITERAL(out, ",\"epoch\":"), item->epoch);
	return BC_WRITE_LITERAL(out, "}}\n");
}

/* Formats the next item. Returns false if the queue is empty. */
static bool format_next_line(struct tap *tap)
{
	struct item item;
	char text[TEXT_BYTES];
	char *end = tap->line;

	if (!queue_pop(&tap->queue, &item, text))
		return false;
	if (item.kind == ITEM_RECORD)
		end = write_record(tap->taps, end, &item);
	else if (item.kind == ITEM_SKIPPED)
		end = write_skipped(end, item.number, item.tick);
	else if (item.kind == ITEM_GAP)
		end = write_gap(end, &item);
	else
		end = write_mark(end, &item, text);
	tap->line_bytes = (size_t)(end - tap->line);
	tap->line_sent = 0;
	return true;
}

static size_t read_lines(void *context, char *out, size_t size)
{
	struct tap *tap = context;
	size_t used = 0;

	tap->taps->has_served = true;
	while (used < size && (tap->line_sent < tap->line_bytes || format_next_line(tap))) {
		size_t n = tap->line_bytes - tap->line_sent;
		if (n > size - used)
			n = size - used;
		memcpy(out + used, tap->line + tap->line_sent, n);
		tap->line_sent += n;
		used += n;
	}
	return used;
}

static bool tap_is_over(void *context)
{
	const struct tap *tap = context;

	return tap->is_done;
}

static void close_tap(void *context)
{
	struct tap *tap = context;

	if (tap->next != NULL)
		tap->next->link = tap->link;
	*tap->link = tap->next;
	tap->taps->count--;
	tap->taps->others -= !tap->is_owner;
	free(tap);
}

int bc_taps_add(struct bc_taps *taps, struct bc_request *request, const struct bc_filter *filter,
	uint64_t limit)
{
	static const struct bc_stream_ops ops = {
		.read = read_lines, .is_over = tap_is_over, .closed = close_tap};
	bool is_owner = bc_request_is_owner(request);

	if (taps->count == BC_TAPS_MAX || (!is_owner && taps->others == BC_TAPS_OTHERS))
		return -EBUSY;
	struct tap *tap = calloc(1, sizeof(*tap));
	if (tap == NULL)
		return -ENOMEM;
	tap->taps = taps;
	tap->is_owner = is_owner;
	tap->filter = *filter;
	tap->limit = limit != 0 ? limit : UINT64_MAX;
	tap->stream = bc_request_stream(request, "application/x-ndjson", &ops, tap);
	if (tap->stream == NULL) {
		free(tap);
		return -ENOMEM;
	}
	if (taps->count == 0) { /* what was served without taps is not charged to them */
		taps->served_ns = bc_stream_served_ns(tap->stream);
		taps->has_served = false;
	}
	tap->next = taps->first;
	tap->link = &taps->first;
	if (tap->next != NULL)
		tap->next->link = &tap->next;
	taps->first = tap;
	taps->count++;
	taps->others += !is_owner;
	return 0;
}

/* Records and events from the bus */

/* All taps are woken together after a short delay, so that each system call sends many records: the
 * call costs more than examining them. */
static void on_timer(uv_timer_t *timer)
{
	struct bc_taps *taps = timer->data;

	for (struct tap *tap = taps->first; tap != NULL; tap = tap->next)
		if (!queue_is_empty(&tap->queue) || tap->is_done)
			bc_stream_wake(tap->stream);
}

static void wake_soon(struct bc_taps *taps)
{
	if (!uv_is_active((uv_handle_t *)&taps->timer))
		uv_timer_start(&taps->timer, on_timer, BC_TAPS_DELAY_MS, 0);
}

void bc_taps_records(struct bc_taps *taps, const struct bc_chunk *chunk, uint32_t from,
	uint64_t first_record, uint64_t tick_before, uint64_t clock_hz)
{
	uint32_t n = chunk->info.records - from;

	if (n == 0)
		return;
	/* Also without taps: one may be opened before the next mark. */
	taps->position.record = first_record != BC_TAP_NO_RECORD ? first_record + n
								 : BC_TAP_NO_RECORD;
	taps->position.tick = chunk->info.last_tick;
	taps->position.epoch = chunk->info.epoch;
	if (taps->count == 0)
		return;
	uint64_t start_ns = budget_start(taps);
	struct cursor cursor = {
		.chunk = chunk,
		.clock_hz = clock_hz,
		.position = {first_record, tick_before, chunk->info.epoch},
		.at = from,
		.ticks_end = from,
		.has_budget = taps->budget_ns > 0,
	};
	for (struct tap *tap = taps->first; tap != NULL; tap = tap->next)
		if (!tap->is_done)
			offer_records(tap, cursor);
	taps->budget_ns -= (int64_t)(bc_thread_ns() - start_ns);
	wake_soon(taps);
}

static void offer_event(struct bc_taps *taps, const struct bc_event *event, const char *text)
{
	for (struct tap *tap = taps->first; tap != NULL; tap = tap->next)
		if (!tap->is_done)
			queue_push_event(&tap->queue, event, text, &taps->position);
	if (taps->count != 0)
		wake_soon(taps);
}

void bc_taps_end(struct bc_taps *taps, const struct bc_chunk *chunk)
{
	const struct bc_chunk_info *info = &chunk->info;
	uint32_t first = info->events;

	while (first != 0 && chunk->events[first - 1].position >= info->records)
		first--;
	for (uint32_t i = first; i < info->events; i++)
		offer_event(taps, &chunk->events[i], chunk->text + chunk->events[i].text);
}

void bc_taps_skip(struct bc_taps *taps, uint64_t records)
{
	if (taps->count == 0 || records == 0)
		return;
	for (struct tap *tap = taps->first; tap != NULL; tap = tap->next)
		if (!tap->is_done)
			tap->queue.skipped_records += records;
	wake_soon(taps);
}

/* Open and close */

unsigned bc_taps_count(const struct bc_taps *taps)
{
	return taps->count;
}

int bc_taps_open(struct bc_taps **result, uv_loop_t *loop)
{
	struct bc_taps *taps = calloc(1, sizeof(*taps));

	if (taps == NULL)
		return -ENOMEM;
	taps->position = (struct position){.record = BC_TAP_NO_RECORD, .tick = NO_TICK};
	taps->budget_ns = BUDGET_MAX_NS;
	taps->counted_ns = bc_now_ns();
	bc_type_words(taps->types);
	uv_timer_init(loop, &taps->timer);
	taps->timer.data = taps;
	*result = taps;
	return 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void bc_taps_close(struct bc_taps *taps)
{
	if (taps == NULL)
		return;
	assert(taps->count == 0);
	uv_close((uv_handle_t *)&taps->timer, on_timer_closed);
}
