#include "daemon/live/tap.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/http/request.h"
#include "formats/base/fast_format.h"
#include "formats/codec/columns.h"
#include "formats/codec/json_text.h"

/* Of the time that passes the loop may spend one part in so many on taps, as the processor counts
 * it. What wasn't used is kept, up to KEEP_NS; what was used too much is owed. */
#define SHARE   20
#define KEEP_NS INT64_C(2000000)

#define LINE_BYTES (6 * BC_CHUNK_TEXT_BYTES + 512)

struct tap {
	struct bc_taps *taps;
	struct tap *next;
	struct tap **link;
	struct bc_push *push;
	bool is_owner;
	struct bc_filter filter;
	uint64_t limit; /* records still to be queued; UINT64_MAX: any number */
	bool is_done;   /* it has queued all that it may */
	struct bc_tap_queue queue;
	char line[LINE_BYTES]; /* being sent */
	size_t line_bytes;
	size_t line_sent;
};

struct bc_taps {
	struct tap *first;
	unsigned count;
	unsigned others; /* of them, not the owner's */
	struct bc_tap_place place;
	int64_t budget_ns;
	uint64_t counted_ns; /* the budget is, up to then */
	uint64_t served_ns;  /* what the server had spent on clients then */
	bool has_served;     /* taps since then */
	struct bc_type_word types[BC_REF_TYPES];
	uv_timer_t timer;
};

/* The budget */

static uint64_t begin_work(struct bc_taps *taps)
{
	uint64_t now_ns = bc_now_ns();
	uint64_t served_ns = bc_push_served_ns(taps->first->push);

	taps->budget_ns += (int64_t)((now_ns - taps->counted_ns) / SHARE);
	if (taps->budget_ns > KEEP_NS)
		taps->budget_ns = KEEP_NS;
	/* Whatever the server did when it served taps is held to be for them. */
	if (taps->has_served)
		taps->budget_ns -= (int64_t)(served_ns - taps->served_ns);
	taps->counted_ns = now_ns;
	taps->served_ns = served_ns;
	taps->has_served = false;
	return bc_thread_ns();
}

static void end_work(struct bc_taps *taps, uint64_t began_ns)
{
	taps->budget_ns -= (int64_t)(bc_thread_ns() - began_ns);
}

/* Looking */

/* Looks at up to BC_FILTER_RECORDS records; *tick becomes the last one's. Returns how many it went
 * through: fewer where there was no more room, or no more is wanted. */
static uint32_t look_at(struct tap *tap, const uint8_t *records, uint32_t n, uint64_t number,
	uint64_t *tick, uint32_t epoch)
{
	uint64_t ticks;
	uint64_t at_tick = *tick;
	uint32_t at = 0; /* at_tick is that of the record before it */

	for (uint64_t bits = bc_filter_records(&tap->filter, records, n, &ticks); bits != 0;
		bits &= bits - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(bits);
		const uint8_t *record = records + (size_t)i * BC_RECORD_BYTES;
		at_tick = bc_records_ticks(
			records + (size_t)at * BC_RECORD_BYTES, i + 1 - at, at_tick);
		at = i + 1;
		uint64_t own = number != BC_TAP_NO_RECORD ? number + i : BC_TAP_NO_RECORD;
		if (!bc_tap_queue_record(&tap->queue, record, own, at_tick, epoch))
			return i;
		if (tap->limit != UINT64_MAX && --tap->limit == 0)
			tap->is_done = true;
		if (tap->is_done)
			return i + 1;
	}
	*tick += ticks;
	return n;
}

/* New records of a chunk, shown to one tap: in runs, each up to where an event stands. */
struct show {
	const struct bc_chunk *chunk;
	struct bc_tap_place place; /* of record `at` */
	uint32_t at;
	uint32_t ticked; /* place.tick is that of the record before this one; <= at */
	bool may_look;
};

static const uint8_t *record_at(const struct show *s, uint32_t n)
{
	return s->chunk->records + (size_t)n * BC_RECORD_BYTES;
}

static void advance(struct show *s, uint32_t n)
{
	s->at += n;
	if (s->place.record != BC_TAP_NO_RECORD)
		s->place.record += n;
}

static void show_run(struct tap *tap, struct show *s, uint32_t to)
{
	while (s->may_look && s->at < to && !tap->is_done &&
		bc_tap_queue_wants_records(&tap->queue)) {
		uint32_t n = to - s->at < BC_FILTER_RECORDS ? to - s->at : BC_FILTER_RECORDS;
		uint32_t looked = look_at(tap, record_at(s, s->at), n, s->place.record,
			&s->place.tick, s->place.epoch);
		advance(s, looked);
		if (looked == n)
			s->ticked = s->at;
	}
	if (!tap->is_done)
		tap->queue.missed += to - s->at;
	advance(s, to - s->at);
}

/* Ticks of records that nobody looked at are added up only when something asks for them. */
static void catch_up(struct show *s)
{
	s->place.tick = bc_records_ticks(record_at(s, s->ticked), s->at - s->ticked, s->place.tick);
	s->ticked = s->at;
}

static void show_to(struct tap *tap, struct show s)
{
	const struct bc_chunk_info *info = &s.chunk->info;
	uint32_t i = info->events;

	while (i != 0 && s.chunk->events[i - 1].position >= s.at)
		i--;
	for (; i < info->events && !tap->is_done; i++) {
		const struct bc_event *event = &s.chunk->events[i];
		if (event->position >= info->records)
			break;
		show_run(tap, &s, event->position);
		if (s.ticked < s.at)
			catch_up(&s);
		if (event->kind == BC_EVENT_ANCHOR)
			s.place.tick = event->value;
		else
			bc_tap_queue_event(
				&tap->queue, event, s.chunk->text + event->text, &s.place);
	}
	if (!tap->is_done)
		show_run(tap, &s, info->records);
}

/* Being read */

static char *put_number(char *out, uint64_t value, uint64_t none)
{
	return value == none ? BC_WRITE_LITERAL(out, "null") : bc_write_decimal(out, value);
}

static char *put_record(const struct bc_taps *taps, char *out, const struct bc_tap_item *item)
{
	struct bc_record r = bc_record_load(item->record);
	const struct bc_type_word *type = &taps->types[r.reqtype];

	out = put_number(BC_WRITE_LITERAL(out, "{\"record\":"), item->number, BC_TAP_NO_RECORD);
	out = bc_write_decimal(BC_WRITE_LITERAL(out, ",\"tick\":"), item->tick);
	out = bc_write_decimal(BC_WRITE_LITERAL(out, ",\"epoch\":"), item->epoch);
	out = bc_write_hex(BC_WRITE_LITERAL(out, ",\"addr\":\"0x"), r.addr);
	out = BC_WRITE_LITERAL(out, "\",\"type\":\"");
	memcpy(out, type->text, type->bytes);
	out = bc_write_decimal(BC_WRITE_LITERAL(out + type->bytes, "\",\"size\":"), r.size);
	out = bc_write_decimal(BC_WRITE_LITERAL(out, ",\"attr\":"), r.attr);
	out = bc_write_decimal(BC_WRITE_LITERAL(out, ",\"proc\":"), r.proc);
	out = put_number(BC_WRITE_LITERAL(out, ",\"time\":"), r.time, BC_TIME_NONE);
	return BC_WRITE_LITERAL(out, "}\n");
}

static char *put_missed(char *out, uint64_t records, uint64_t events)
{
	out = bc_write_decimal(BC_WRITE_LITERAL(out, "{\"missed\":"), records);
	if (events != 0)
		out = bc_write_decimal(BC_WRITE_LITERAL(out, ",\"events\":"), events);
	return BC_WRITE_LITERAL(out, "}\n");
}

static char *put_gap(char *out, const struct bc_tap_item *item)
{
	out = BC_WRITE_LITERAL(out, "{\"gap\":{\"cause\":\"");
	out = stpcpy(out, bc_gap_cause_name(item->cause));
	out = bc_write_decimal(BC_WRITE_LITERAL(out, "\",\"lost\":"), item->number);
	out = BC_WRITE_LITERAL(out, ",\"exact\":");
	return stpcpy(out, item->exact ? "true}}\n" : "false}}\n");
}

static char *put_mark(char *out, const struct bc_tap_item *item, const char *text)
{
	out = stpcpy(out,
		item->kind == BC_TAP_MARK ? "{\"mark\":{\"text\":" : "{\"trigger\":{\"text\":");
	out = bc_json_write_text(out, (struct bc_text){.at = text, .bytes = item->text_bytes});
	out = put_number(BC_WRITE_LITERAL(out, ",\"record\":"), item->number, BC_TAP_NO_RECORD);
	out = put_number(BC_WRITE_LITERAL(out, ",\"tick\":"), item->tick, BC_TAP_NO_TICK);
	out = bc_write_decimal(BC_WRITE_LITERAL(out, ",\"epoch\":"), item->epoch);
	return BC_WRITE_LITERAL(out, "}}\n");
}

/* Writes the next line. Returns false when there is none. */
static bool next_line(struct tap *tap)
{
	struct bc_tap_item item;
	char text[BC_TAP_TEXT_ROOM];
	char *end = tap->line;

	if (!bc_tap_queue_pop(&tap->queue, &item, text))
		return false;
	if (item.kind == BC_TAP_RECORD)
		end = put_record(tap->taps, end, &item);
	else if (item.kind == BC_TAP_MISSED)
		end = put_missed(end, item.number, item.tick);
	else if (item.kind == BC_TAP_GAP)
		end = put_gap(end, &item);
	else
		end = put_mark(end, &item, text);
	tap->line_bytes = (size_t)(end - tap->line);
	tap->line_sent = 0;
	return true;
}

static size_t on_read(void *context, char *out, size_t room)
{
	struct tap *tap = context;
	size_t used = 0;

	tap->taps->has_served = true;

	while (used < room && (tap->line_sent < tap->line_bytes || next_line(tap))) {
		size_t n = tap->line_bytes - tap->line_sent;
		if (n > room - used)
			n = room - used;
		memcpy(out + used, tap->line + tap->line_sent, n);
		tap->line_sent += n;
		used += n;
	}
	return used;
}

static bool is_over(void *context)
{
	const struct tap *tap = context;

	return tap->is_done;
}

static void on_closed(void *context)
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
	static const struct bc_push_ops ops = {
		.read = on_read, .is_over = is_over, .closed = on_closed};
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
	tap->push = bc_request_stream(request, "application/x-ndjson", &ops, tap);
	if (tap->push == NULL) {
		free(tap);
		return -ENOMEM;
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

/* The bus */

/* Clients are told together, and many records at a time: a call of the kernel for each that takes
 * a piece costs more than looking at it. */
static void on_timer(uv_timer_t *timer)
{
	struct bc_taps *taps = timer->data;

	for (struct tap *tap = taps->first; tap != NULL; tap = tap->next)
		if (!bc_tap_queue_is_empty(&tap->queue) || tap->is_done)
			bc_push_wake(tap->push);
}

static void tell_soon(struct bc_taps *taps)
{
	if (!uv_is_active((uv_handle_t *)&taps->timer))
		uv_timer_start(&taps->timer, on_timer, BC_TAPS_DELAY_MS, 0);
}

void bc_taps_records(struct bc_taps *taps, const struct bc_chunk *chunk, uint32_t from,
	uint64_t first_record, uint64_t tick_before)
{
	uint32_t n = chunk->info.records - from;

	if (taps->count == 0 || n == 0)
		return;
	uint64_t began_ns = begin_work(taps);
	struct show show = {
		.chunk = chunk,
		.place = {first_record, tick_before, chunk->info.epoch},
		.at = from,
		.ticked = from,
		.may_look = taps->budget_ns > 0,
	};
	for (struct tap *tap = taps->first; tap != NULL; tap = tap->next)
		if (!tap->is_done)
			show_to(tap, show);
	taps->place.record = first_record != BC_TAP_NO_RECORD ? first_record + n : BC_TAP_NO_RECORD;
	taps->place.tick = chunk->info.last_tick;
	taps->place.epoch = chunk->info.epoch;
	end_work(taps, began_ns);
	tell_soon(taps);
}

void bc_taps_event(struct bc_taps *taps, const struct bc_event *event, const char *text)
{
	for (struct tap *tap = taps->first; tap != NULL; tap = tap->next)
		if (!tap->is_done)
			bc_tap_queue_event(&tap->queue, event, text, &taps->place);
	if (taps->count != 0)
		tell_soon(taps);
}

void bc_taps_end(struct bc_taps *taps, const struct bc_chunk *chunk)
{
	const struct bc_chunk_info *info = &chunk->info;
	uint32_t first = info->events;

	while (first != 0 && chunk->events[first - 1].position >= info->records)
		first--;
	for (uint32_t i = first; i < info->events; i++)
		bc_taps_event(taps, &chunk->events[i], chunk->text + chunk->events[i].text);
}

void bc_taps_passed(struct bc_taps *taps, uint64_t records)
{
	if (taps->count == 0 || records == 0)
		return;
	for (struct tap *tap = taps->first; tap != NULL; tap = tap->next)
		if (!tap->is_done)
			tap->queue.missed += records;
	tell_soon(taps);
}

/* Life */

unsigned bc_taps_count(const struct bc_taps *taps)
{
	return taps->count;
}

int bc_taps_open(struct bc_taps **result, uv_loop_t *loop)
{
	struct bc_taps *taps = calloc(1, sizeof(*taps));

	if (taps == NULL)
		return -ENOMEM;
	taps->place = (struct bc_tap_place){.record = BC_TAP_NO_RECORD, .tick = BC_TAP_NO_TICK};
	taps->budget_ns = KEEP_NS;
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
