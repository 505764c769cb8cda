#include <stdlib.h>
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

TEST(a_chunk_holds_as_many_records_as_fit_in_1_mib)
{
	size_t mebibyte = 1 << 20;

	assert_true(BC_CHUNK_RECORDS * (size_t)BC_RECORD_BYTES <= mebibyte);
	assert_true((BC_CHUNK_RECORDS + 1) * (size_t)BC_RECORD_BYTES > mebibyte);
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

TEST_WITH(bc_chunk, chunk, a_chunk_with_a_record_or_event_is_not_empty)
{
	struct bc_event event = {.kind = BC_EVENT_GAP};

	bc_chunk_reset(chunk, 0, 0);
	append_record(chunk, (struct bc_record){0});
	assert_false(bc_chunk_is_empty(chunk));
	bc_chunk_reset(chunk, 0, 0);
	assert_true(bc_chunk_add_event(chunk, &event, NULL));
	assert_false(bc_chunk_is_empty(chunk));
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

TEST_WITH(bc_chunk, chunk, a_chunk_full_of_records_has_no_room)
{
	bc_chunk_reset(chunk, 0, 0);
	chunk->info.records = BC_CHUNK_RECORDS - 1;
	assert_true(bc_chunk_has_room(chunk, 0));
	assert_true(bc_chunk_has_room(chunk, BC_CHUNK_EVENTS));
	chunk->info.records = BC_CHUNK_RECORDS;
	assert_false(bc_chunk_has_room(chunk, 0));
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
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		append_record(chunk,
			(struct bc_record){.addr = 0xFFFFFFFF, .reqtype = 9, .time = times[i]});
		tick += times[i] == BC_TIME_NONE ? 0 : times[i];
		assert_true(bc_records_ticks(chunk->records, i + 1, 1000) == tick);
	}
	assert_true(tick > UINT32_MAX);
}
