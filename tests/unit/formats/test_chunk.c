#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "formats/bus/chunk.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

static void set_up(struct bc_chunk *chunk)
{
	memset(chunk, 0xCC, sizeof(*chunk));
}

TEST_FIXTURE(bc_chunk, set_up, NOTHING)

static void append_record(struct bc_chunk *chunk, struct bc_record record)
{
	bc_record_store(chunk->records + (size_t)chunk->info.records++ * BC_RECORD_BYTES, &record);
}

TEST_WITH(bc_chunk, chunk, a_reset_chunk_is_empty_and_has_the_given_tick)
{
	bc_chunk_reset(chunk, UINT64_C(0x123456789ABCDEF), 7);
	assert_true(bc_chunk_is_empty(chunk));
	assert_true(bc_chunk_has_room(chunk, BC_CHUNK_EVENTS));
	assert_true(chunk->info.first_tick == UINT64_C(0x123456789ABCDEF));
	assert_true(chunk->info.last_tick == UINT64_C(0x123456789ABCDEF));
	assert_int_equal(chunk->info.epoch, 7);
	assert_int_equal(chunk->info.records, 0);
	assert_int_equal(chunk->info.events, 0);
	assert_int_equal(chunk->info.recording_tag, 0);
	assert_int_equal(chunk->info.segment, 0);
	assert_int_equal(chunk->info.number, 0);
	assert_int_equal(chunk->info.first_record, 0);
	assert_int_equal(chunk->info.wall_ns, 0);
	assert_int_equal(chunk->text_bytes, 0);
}

TEST_WITH(bc_chunk, chunk, events_are_kept_in_order_with_their_texts)
{
	char text[8];

	bc_chunk_reset(chunk, 0, 0);
	for (unsigned i = 0; i < BC_CHUNK_EVENTS; i++) {
		struct bc_event event = {
			.position = i / 2,
			.kind = (uint8_t)(1 + i % 4),
			.cause = (uint8_t)(i % 7),
			.exact = i % 3 == 0,
			.value = UINT64_MAX - i,
			.duration_ns = i * UINT64_C(1000000007),
			.text = 0x5555, /* set by the call */
			.text_bytes = (uint16_t)(i % 8),
		};
		memset(text, (int)('a' + i % 26), sizeof(text));
		assert_true(bc_chunk_add_event(chunk, &event, i % 8 == 0 ? NULL : text));
	}
	assert_int_equal(chunk->info.events, BC_CHUNK_EVENTS);
	for (unsigned i = 0; i < BC_CHUNK_EVENTS; i++) {
		const struct bc_event *event = &chunk->events[i];
		assert_int_equal(event->position, i / 2);
		assert_int_equal(event->kind, 1 + i % 4);
		assert_int_equal(event->cause, i % 7);
		assert_int_equal(event->exact, i % 3 == 0);
		assert_true(event->value == UINT64_MAX - i);
		assert_true(event->duration_ns == i * UINT64_C(1000000007));
		assert_int_equal(event->text_bytes, i % 8);
		memset(text, (int)('a' + i % 26), sizeof(text));
		assert_memory_equal(chunk->text + event->text, text, i % 8);
	}
}

TEST_WITH(bc_chunk, chunk, one_event_too_many_is_refused_without_a_change)
{
	struct bc_event event = {.kind = BC_EVENT_ANCHOR};

	bc_chunk_reset(chunk, 0, 0);
	for (unsigned i = 0; i < BC_CHUNK_EVENTS; i++) {
		assert_true(bc_chunk_has_room(chunk, BC_CHUNK_EVENTS - i));
		assert_false(bc_chunk_has_room(chunk, BC_CHUNK_EVENTS - i + 1));
		assert_true(bc_chunk_add_event(chunk, &event, NULL));
	}
	struct bc_chunk_info before = chunk->info;
	assert_true(bc_chunk_has_room(chunk, 0));
	assert_false(bc_chunk_has_room(chunk, 1));
	assert_false(bc_chunk_add_event(chunk, &event, NULL));
	assert_memory_equal(&chunk->info, &before, sizeof(before));
}

TEST_WITH(bc_chunk, chunk, texts_fill_their_space_to_the_last_byte)
{
	char text[BC_CHUNK_TEXT_BYTES + 1];

	memset(text, 't', sizeof(text));
	for (uint16_t first = 0; first < 4; first++) {
		struct bc_event event = {.kind = BC_EVENT_MARK, .text_bytes = first};
		bc_chunk_reset(chunk, 0, 0);
		assert_true(bc_chunk_add_event(chunk, &event, text));
		event.text_bytes = (uint16_t)(BC_CHUNK_TEXT_BYTES - first + 1);
		assert_false(bc_chunk_add_event(chunk, &event, text));
		assert_int_equal(chunk->info.events, 1);
		assert_int_equal(chunk->text_bytes, first);
		event.text_bytes--;
		assert_true(bc_chunk_add_event(chunk, &event, text));
		assert_int_equal(chunk->text_bytes, BC_CHUNK_TEXT_BYTES);
		event.text_bytes = 1;
		assert_false(bc_chunk_add_event(chunk, &event, text));
		event.text_bytes = 0;
		assert_true(bc_chunk_add_event(chunk, &event, NULL));
		assert_int_equal(chunk->info.events, 3);
	}
}

TEST_WITH(bc_chunk, chunk, records_reported_by_a_leading_gap_are_not_missing)
{
	struct bc_event damaged = {.kind = BC_EVENT_GAP, .cause = BC_GAP_DAMAGED, .exact = true};
	struct bc_event board = {
		.kind = BC_EVENT_GAP, .cause = BC_GAP_BOARD, .exact = true, .value = 50};
	struct bc_event mark = {.kind = BC_EVENT_MARK, .value = 50};

	bc_chunk_reset(chunk, 0, 0);
	chunk->info.records = 10;
	chunk->info.first_record = 100;
	assert_true(bc_chunk_missing(chunk, 100) == 0);
	assert_true(bc_chunk_missing(chunk, 101) == 0); /* overlap */
	assert_true(bc_chunk_missing(chunk, UINT64_MAX) == 0);
	assert_true(bc_chunk_missing(chunk, 0) == 100);
	assert_true(bc_chunk_missing(chunk, 99) == 1);

	/* Other events don't matter. */
	assert_true(bc_chunk_add_event(chunk, &mark, NULL));
	assert_true(bc_chunk_add_event(chunk, &board, NULL));
	assert_true(bc_chunk_missing(chunk, 40) == 60);

	/* Damage gaps are subtracted together, down to 0. */
	damaged.value = 20;
	assert_true(bc_chunk_add_event(chunk, &damaged, NULL));
	assert_true(bc_chunk_missing(chunk, 40) == 40);
	assert_true(bc_chunk_missing(chunk, 79) == 1);
	assert_true(bc_chunk_missing(chunk, 80) == 0);
	assert_true(bc_chunk_missing(chunk, 81) == 0);
	damaged.value = 5;
	assert_true(bc_chunk_add_event(chunk, &damaged, NULL));
	assert_true(bc_chunk_missing(chunk, 40) == 35);
	assert_true(bc_chunk_missing(chunk, 75) == 0);

	/* Gaps after position 0 don't count. */
	damaged.position = 1;
	damaged.value = 1000;
	assert_true(bc_chunk_add_event(chunk, &damaged, NULL));
	assert_true(bc_chunk_missing(chunk, 40) == 35);
}

TEST_WITH(bc_chunk, chunk, an_inexact_damage_gap_covers_any_missing_records)
{
	struct bc_event damaged = {.kind = BC_EVENT_GAP, .cause = BC_GAP_DAMAGED, .value = 1};

	bc_chunk_reset(chunk, 0, 0);
	chunk->info.first_record = 100;
	assert_true(bc_chunk_missing(chunk, 0) == 100);
	assert_true(bc_chunk_add_event(chunk, &damaged, NULL));
	assert_true(bc_chunk_missing(chunk, 0) == 0);
}

TEST(every_cause_has_a_name_and_other_numbers_are_unknown)
{
	static const char *const words[BC_GAP_CAUSES] = {"unknown", "buffer", "disk", "board",
		"sequence", "crc", "unplugged", "damaged", "transfer", "crash"};

	for (unsigned cause = 0; cause < 256; cause++)
		assert_string_equal(
			bc_gap_cause_name(cause), cause < BC_GAP_CAUSES ? words[cause] : "unknown");
}

TEST_WITH(bc_chunk, chunk, ticks_are_summed_in_64_bits_without_missing_deltas)
{
	static const uint32_t times[] = {
		BC_TIME_NONE, 5, 0, 0xFFFFFFFE, BC_TIME_NONE, 0xFFFFFFFE, 1, BC_TIME_NONE};
	uint64_t tick = 1000;

	bc_chunk_reset(chunk, 0, 0);
	assert_true(bc_records_ticks(chunk->records, 0, 77) == 77);
	for (size_t i = 0; i < COUNT_OF(times); i++) {
		append_record(chunk,
			(struct bc_record){.addr = 0xFFFFFFFF, .reqtype = 9, .time = times[i]});
		tick += times[i] == BC_TIME_NONE ? 0 : times[i];
		assert_true(bc_records_ticks(chunk->records, i + 1, 1000) == tick);
	}
	assert_true(tick > UINT32_MAX);
}

/* Compares edited chunks with a model that has the tick of each record and the record of each
 * event. */

#define RECORDS_MAX 40u
#define EVENTS_MAX  64u

/* An expected record. */
struct model_record {
	uint8_t head[8];
	uint32_t time;
	uint64_t tick;
};

struct model_event {
	uint32_t position;
	struct bc_event event;
	char text[64];
};

struct model {
	uint32_t records;
	uint32_t events;
	struct model_record record[RECORDS_MAX];
	struct model_event event[EVENTS_MAX];
	uint64_t before; /* tick of the record before the first, or of the first if unknown */
	uint64_t first_record;
};

struct fixture {
	struct model model;
	struct bc_chunk chunk;
	struct bc_chunk copy;
	struct bc_chunk rest;
};

TEST_FIXTURE(fixture, NOTHING, NOTHING)

static void add_event(struct fixture *f, const struct bc_event *event, const char *text)
{
	struct model *m = &f->model;
	struct model_event *added = &m->event[m->events++];

	added->position = event->position;
	added->event = *event;
	memset(added->text, 0, sizeof(added->text));
	if (event->text_bytes != 0)
		memcpy(added->text, text, event->text_bytes);
	assert_true(bc_chunk_add_event(&f->chunk, event, text));
}

static void add_some_event(struct fixture *f, struct dice *dice, uint32_t position)
{
	struct bc_event event = {
		.position = position,
		.kind = (uint8_t)(dice_below(dice, 2) == 0 ? BC_EVENT_MARK : BC_EVENT_TRIGGER),
		.text_bytes = (uint16_t)dice_below(dice, 30),
	};
	char text[64];

	snprintf(text, sizeof(text), "%032llx", (unsigned long long)dice_roll(dice));
	if (dice_below(dice, 2) == 0) {
		event = (struct bc_event){
			.position = position,
			.kind = BC_EVENT_GAP,
			.cause = (uint8_t)(1 + dice_below(dice, BC_GAP_CAUSES - 1)),
			.exact = dice_below(dice, 2) == 0,
			.value = dice_roll(dice) >> 40,
			.duration_ns = dice_roll(dice) >> 30,
		};
	}
	add_event(f, &event, text);
}

/* Makes a chunk and its model together. The model's ticks are computed independently. */
static void make_chunk(struct fixture *f, struct dice *dice, uint32_t records)
{
	struct model *m = &f->model;
	uint64_t tick = dice_roll(dice) >> (1 + dice_below(dice, 60));

	memset(f, 0xCC, sizeof(*f));
	*m = (struct model){.records = records, .first_record = dice_below(dice, 1000)};
	bc_chunk_reset(&f->chunk, tick, dice_below(dice, 5));
	f->chunk.info.first_record = m->first_record;
	f->chunk.info.recording_tag = 77;
	f->chunk.info.wall_ns = 1234567;
	m->before = tick;
	for (uint32_t i = 0; i <= records; i++) {
		while (dice_below(dice, 4) == 0 && m->events < EVENTS_MAX - 2 * (records - i) - 4)
			add_some_event(f, dice, i);
		if (i == records)
			break;
		struct model_record *r = &m->record[i];
		dice_fill(dice, r->head, sizeof(r->head));
		r->time = dice_below(dice, 3) == 0 ? dice_below(dice, UINT32_MAX)
						   : dice_below(dice, 100);
		tick += r->time;
		if (dice_below(dice, 6) == 0) {
			r->time = BC_TIME_NONE;
			tick += dice_below(dice, 3) == 0 ? dice_roll(dice) >> 24 : 0;
			struct bc_event anchor = {.position = i,
				.kind = BC_EVENT_ANCHOR,
				.exact = dice_below(dice, 3) != 0,
				.value = tick};
			add_event(f, &anchor, NULL);
			if (i == 0)
				m->before = tick;
		}
		r->tick = tick;
		memcpy(f->chunk.records + i * BC_RECORD_BYTES, r->head, sizeof(r->head));
		bc_write_le32(f->chunk.records + i * BC_RECORD_BYTES + 8, r->time);
		while (dice_below(dice, 9) == 0 && m->events < EVENTS_MAX - 2 * (records - i) - 4)
			add_some_event(f, dice, i + 1 <= records ? i + 1 : i);
	}
	f->chunk.info.records = records;
	f->chunk.info.first_tick = records != 0 ? m->record[0].tick : m->before;
	f->chunk.info.last_tick = records != 0 ? m->record[records - 1].tick : m->before;
}

/* Asserts that a chunk has the model's records first .. end - 1 and the given range of events. */
static void assert_chunk(const struct fixture *f, const struct bc_chunk *chunk, uint32_t first,
	uint32_t end, uint32_t events_first, uint32_t events_end)
{
	const struct model *m = &f->model;
	uint64_t before = first != 0 ? m->record[first - 1].tick : m->before;
	uint32_t texts = 0;

	assert_int_equal(chunk->info.records, end - first);
	assert_int_equal(chunk->info.first_record, m->first_record + first);
	assert_int_equal(chunk->info.epoch, f->copy.info.epoch);
	assert_int_equal(chunk->info.recording_tag, 77);
	assert_int_equal(chunk->info.wall_ns, 1234567);
	assert_true(chunk->info.first_tick == (end > first ? m->record[first].tick : before));
	assert_true(chunk->info.last_tick == (end > first ? m->record[end - 1].tick : before));
	for (uint32_t i = first; i < end; i++) {
		const uint8_t *at = chunk->records + (i - first) * BC_RECORD_BYTES;
		assert_memory_equal(at, m->record[i].head, 8);
		assert_int_equal(bc_le32(at + 8), m->record[i].time);
		assert_true(bc_chunk_tick(chunk, i - first) == m->record[i].tick);
		uint32_t found = bc_chunk_find_tick(chunk, 0, m->record[i].tick);
		assert_true(found <= i - first &&
			    m->record[first + found].tick >= m->record[i].tick &&
			    (found == 0 || m->record[first + found - 1].tick < m->record[i].tick));
	}
	assert_int_equal(chunk->info.events, events_end - events_first);
	for (uint32_t i = events_first; i < events_end; i++) {
		const struct bc_event *event = &chunk->events[i - events_first];
		const struct model_event *expected = &m->event[i];
		assert_int_equal(event->position, expected->position - first);
		assert_int_equal(event->kind, expected->event.kind);
		assert_int_equal(event->cause, expected->event.cause);
		assert_int_equal(event->exact, expected->event.exact);
		assert_true(event->value == expected->event.value);
		assert_true(event->duration_ns == expected->event.duration_ns);
		assert_int_equal(event->text_bytes, expected->event.text_bytes);
		assert_memory_equal(
			chunk->text + event->text, expected->text, expected->event.text_bytes);
		texts += event->text_bytes;
	}
	assert_int_equal(chunk->text_bytes, texts);
}

/* The first of the model's events at or after a position. */
static uint32_t events_before(const struct model *m, uint32_t position)
{
	uint32_t n = 0;

	while (n < m->events && m->event[n].position < position)
		n++;
	return n;
}

TEST_F(every_cut_keeps_ticks_and_events_on_both_sides)
{
	struct dice dice = {1};

	for (unsigned round = 0; round < 600; round += test_stride(19)) {
		make_chunk(f, &dice, dice_below(&dice, RECORDS_MAX + 1));
		const struct model *m = &f->model;
		f->copy = f->chunk;
		assert_chunk(f, &f->chunk, 0, m->records, 0, m->events);
		for (uint32_t at = 0; at <= m->records; at++) {
			uint32_t events = events_before(m, at);
			f->chunk = f->copy;
			bc_chunk_drop_front(&f->chunk, at);
			assert_chunk(f, &f->chunk, at, m->records, events, m->events);
			f->chunk = f->copy;
			bc_chunk_drop_back(&f->chunk, at);
			assert_chunk(f, &f->chunk, 0, at, 0, events);
			f->chunk = f->copy;
			bc_chunk_split(&f->chunk, at, &f->rest);
			assert_chunk(f, &f->chunk, 0, at, 0, events);
			assert_chunk(f, &f->rest, at, m->records, events, m->events);
		}
	}
}

TEST_F(an_event_is_inserted_after_those_at_its_position)
{
	struct dice dice = {3};

	for (unsigned round = 0; round < 400; round += test_stride(7)) {
		make_chunk(f, &dice, dice_below(&dice, RECORDS_MAX + 1));
		struct model *m = &f->model;
		f->copy = f->chunk;
		for (uint32_t at = 0; at <= f->copy.info.records; at++) {
			struct model saved = *m;
			const struct bc_event mark = {
				.position = at, .kind = BC_EVENT_MARK, .text_bytes = 5};
			uint32_t n = events_before(m, at + 1);
			f->chunk = f->copy;
			assert_true(bc_chunk_insert_event(&f->chunk, &mark, "hello"));
			memmove(&m->event[n + 1], &m->event[n],
				(m->events++ - n) * sizeof(m->event[0]));
			m->event[n] = (struct model_event){at, mark, "hello"};
			assert_chunk(f, &f->chunk, 0, m->records, 0, m->events);
			*m = saved;
		}
	}
}

TEST_F(an_event_without_room_is_refused_without_a_change)
{
	struct dice dice = {4};
	static const char text[BC_CHUNK_TEXT_BYTES];
	struct bc_event mark = {.position = 3, .kind = BC_EVENT_MARK, .text_bytes = 4000};

	make_chunk(f, &dice, 10);
	assert_true(bc_chunk_insert_event(&f->chunk, &mark, text) ||
		    f->chunk.text_bytes > BC_CHUNK_TEXT_BYTES - 4000);
	mark.text_bytes = (uint16_t)(BC_CHUNK_TEXT_BYTES - f->chunk.text_bytes + 1);
	f->copy = f->chunk;
	assert_false(bc_chunk_insert_event(&f->chunk, &mark, text));
	assert_memory_equal(&f->chunk, &f->copy, sizeof(f->chunk));
	mark.text_bytes = 0;
	while (f->chunk.info.events < BC_CHUNK_EVENTS)
		assert_true(bc_chunk_insert_event(&f->chunk, &mark, NULL));
	f->copy = f->chunk;
	assert_false(bc_chunk_insert_event(&f->chunk, &mark, NULL));
	assert_memory_equal(&f->chunk, &f->copy, sizeof(f->chunk));
}

TEST_F(a_detached_chunk_starts_with_an_anchor_and_is_otherwise_unchanged)
{
	struct dice dice = {5};

	for (unsigned round = 0; round < 3000; round += test_stride(19)) {
		make_chunk(f, &dice, dice_below(&dice, RECORDS_MAX + 1));
		struct model *m = &f->model;
		bool is_exact = dice_below(&dice, 2) == 0;
		f->copy = f->chunk;
		assert_true(bc_chunk_detach(&f->chunk, is_exact));
		if (m->records != 0 && m->record[0].time != BC_TIME_NONE) {
			uint32_t n = events_before(m, 1);
			const struct bc_event anchor = {.kind = BC_EVENT_ANCHOR,
				.exact = is_exact,
				.value = m->record[0].tick};
			memmove(&m->event[n + 1], &m->event[n],
				(m->events++ - n) * sizeof(m->event[0]));
			m->event[n] = (struct model_event){.event = anchor};
			m->record[0].time = BC_TIME_NONE;
		}
		assert_chunk(f, &f->chunk, 0, m->records, 0, m->events);
		/* Detaching again changes nothing. */
		f->rest = f->chunk;
		assert_true(bc_chunk_detach(&f->chunk, !is_exact));
		assert_memory_equal(&f->chunk, &f->rest, sizeof(f->chunk));
	}
}

TEST_F(a_chunk_full_of_events_is_detached_only_if_it_has_an_anchor)
{
	const struct bc_event gap = {.position = 1, .kind = BC_EVENT_GAP};
	const struct bc_event anchor = {.kind = BC_EVENT_ANCHOR, .exact = true, .value = 5};

	for (unsigned has_anchor = 0; has_anchor < 2; has_anchor++) {
		memset(f, 0, sizeof(*f));
		bc_chunk_reset(&f->chunk, 5, 0);
		if (has_anchor)
			assert_true(bc_chunk_add_event(&f->chunk, &anchor, NULL));
		while (f->chunk.info.events < BC_CHUNK_EVENTS)
			assert_true(bc_chunk_add_event(&f->chunk, &gap, NULL));
		f->chunk.info.records = 1;
		bc_write_le32(f->chunk.records + 8, has_anchor ? BC_TIME_NONE : 4);
		f->copy = f->chunk;
		assert_int_equal(bc_chunk_detach(&f->chunk, true), has_anchor);
		assert_memory_equal(&f->chunk, &f->copy, sizeof(f->chunk));
	}
}
