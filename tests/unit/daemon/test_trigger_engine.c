/* The trigger engine against a model that sees the whole stream: with any batches and chunks, and
 * any splits at matches, each match occurs once and in order. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/ingest/trigger_engine.h"
#include "formats/bus/chunk.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define STREAM_MAX 3000u
#define HITS_MAX   (STREAM_MAX * 8)
#define CLOCK_HZ   1000000000u /* a tick is a nanosecond */

struct row {
	uint8_t bytes[BC_RECORD_BYTES];
	uint64_t tick;
	uint32_t epoch;
	bool has_gap;
	bool has_board;
	bool has_text_trigger; /* a trigger with text, which is not the board's */
};

struct model_match {
	uint32_t record;
	unsigned trigger;
};

struct fixture {
	struct dice dice;
	struct bc_trigger_engine engine;
	uint32_t rows;
	struct row row[STREAM_MAX];
	uint32_t expected_count;
	struct model_match expected[HITS_MAX];
	uint32_t found_count;
	struct model_match found[HITS_MAX];
	struct bc_chunk chunk[2];
	unsigned filling; /* index of the chunk being filled */
};

static void set_up(struct fixture *f)
{
	bc_trigger_engine_init(&f->engine);
}

TEST_FIXTURE(fixture, set_up, NOTHING)

static struct bc_trigger make_trigger(const char *name, const char *when, const char *action)
{
	struct bc_trigger t;
	char err[200];

	if (!bc_trigger_init(&t, name, err, sizeof(err)) ||
		!bc_trigger_set(&t, "when", when, err, sizeof(err)) ||
		!bc_trigger_set(&t, "action", action, err, sizeof(err)) ||
		!bc_trigger_check(&t, err, sizeof(err)))
		fail_msg("%s: %s", when, err);
	return t;
}

static void choose_triggers(struct fixture *f)
{
	static const char *const when[] = {"port=e0", "addr=0-3f type=read", "proc=1", "board",
		"gap", "idle 0.000000060", "idle 20", "type=write"};
	struct dice *dice = &f->dice;

	bc_trigger_engine_init(&f->engine);
	for (unsigned n = dice_below(dice, 7); n > 0; n--) {
		char name[8];
		snprintf(name, sizeof(name), "t%u", n);
		struct bc_trigger t = make_trigger(name, when[dice_below(dice, 8)], "start");
		if (dice_below(dice, 2) == 0)
			t.holdoff_ns = 1 + dice_below(dice, dice_below(dice, 2) == 0 ? 100 : 20000);
		assert_int_equal(bc_trigger_engine_add(&f->engine, &t), 0);
	}
}

static void make_stream(struct fixture *f)
{
	struct dice *dice = &f->dice;
	uint64_t tick = dice_roll(dice) >> 40;
	uint32_t epoch = 0;
	bool is_rare = dice_below(dice, 2) == 0;

	f->rows = 1 + dice_below(dice, STREAM_MAX);
	for (uint32_t i = 0; i < f->rows; i++) {
		struct row *row = &f->row[i];
		memset(row, 0, sizeof(*row));
		struct bc_record r = {
			.addr = is_rare ? dice_below(dice, 3000) : dice_below(dice, 200) * 2,
			.reqtype = dice_below(dice, 10) == 0 ? BC_REQ_IOWRITE
							     : (uint8_t)dice_below(dice, 4),
			.size = 1,
			.proc = dice_below(dice, 20) == 0,
			.time = dice_below(dice, 62)};
		if (r.reqtype == BC_REQ_IOWRITE)
			r.addr = 0xd8 + dice_below(dice, 10);
		tick += r.time;
		if (dice_below(dice, 60) == 0) {
			r.time = BC_TIME_NONE;
			tick += UINT64_C(0xFFFFFFFF) + (dice_roll(dice) >> 29);
		}
		if (i == 0 || dice_below(dice, 300) == 0) {
			epoch += i != 0;
			r.time = BC_TIME_NONE;
			tick = dice_below(dice, 100000);
		}
		bc_record_store(row->bytes, &r);
		row->tick = tick;
		row->epoch = epoch;
		row->has_gap = dice_below(dice, 40) == 0;
		row->has_board = dice_below(dice, 40) == 0;
		row->has_text_trigger = dice_below(dice, 40) == 0;
	}
}

static bool matches(const struct fixture *f, const struct bc_trigger *t, uint32_t i)
{
	const struct row *row = &f->row[i];
	uint64_t ticks;

	switch (t->kind) {
	case BC_TRIGGER_RECORD:
		return bc_filter_records(&t->filter, row->bytes, 1, &ticks) != 0;
	case BC_TRIGGER_BOARD:
		return row->has_board;
	case BC_TRIGGER_GAP:
		return row->has_gap;
	case BC_TRIGGER_IDLE:
		return i != 0 && row[-1].epoch == row->epoch && !row->has_gap &&
		       row->tick - row[-1].tick > t->idle_ns;
	case BC_TRIGGER_UNSET:
		break;
	}
	return false;
}

static void expect(struct fixture *f)
{
	uint32_t acted[BC_TRIGGER_ENGINE_TRIGGERS];

	f->expected_count = 0;
	memset(acted, 0xFF, sizeof(acted));
	for (uint32_t i = 0; i < f->rows; i++) {
		for (unsigned n = 0; n < f->engine.count; n++) {
			const struct bc_trigger *t = &f->engine.armed[n].trigger;
			bool is_held = acted[n] != UINT32_MAX &&
				       f->row[acted[n]].epoch == f->row[i].epoch &&
				       f->row[i].tick - f->row[acted[n]].tick < t->holdoff_ns;
			if (is_held || !matches(f, t, i))
				continue;
			acted[n] = i;
			f->expected[f->expected_count++] = (struct model_match){i, n};
		}
	}
}

/* Searches the batch at `from` of the chunk being filled, which may be split. */
static void search_batch(struct fixture *f, uint32_t from)
{
	struct bc_trigger_match match;
	bool has_rest = false;

	for (;;) {
		struct bc_chunk *chunk = &f->chunk[f->filling];
		struct bc_chunk *other = &f->chunk[!f->filling];
		if (!bc_trigger_engine_next(&f->engine, chunk, &from, CLOCK_HZ, &match)) {
			assert_int_equal(from, chunk->info.records);
			if (!has_rest)
				return;
			bc_trigger_engine_finish_chunk(&f->engine, chunk);
			f->filling = !f->filling;
			has_rest = false;
			from = 0;
			continue;
		}
		unsigned n =
			(unsigned)((struct bc_armed_trigger *)(void
						   *)((char *)match.trigger -
						      offsetof(struct bc_armed_trigger, trigger)) -
				   f->engine.armed);
		uint32_t record = (uint32_t)chunk->info.first_record + match.position;
		assert_true(match.tick == f->row[record].tick);
		assert_int_equal(match.epoch, f->row[record].epoch);
		assert_true(f->found_count < HITS_MAX);
		f->found[f->found_count++] = (struct model_match){record, n};
		bc_trigger_engine_fire(&f->engine, &match);
		if (bc_chunk_count_marks(chunk) < 60)
			assert_true(bc_trigger_engine_write_event(chunk, &match));
		if (has_rest)
			continue;
		switch (dice_below(&f->dice, 12)) {
		case 0: /* a start: continue with the other chunk */
			bc_chunk_split(chunk, match.position, other);
			bc_trigger_engine_finish_chunk(&f->engine, chunk);
			from -= match.position;
			f->filling = !f->filling;
			if (dice_below(&f->dice, 2) == 0)
				assert_true(bc_chunk_detach(other, true));
			break;
		case 1: /* a stop: first finish this chunk */
			bc_chunk_split(chunk, match.position + 1, other);
			has_rest = true;
			break;
		default:
			break;
		}
	}
}

static void add_event(
	struct bc_chunk *chunk, enum bc_event_kind kind, const char *text, uint64_t value)
{
	struct bc_event event = {.position = chunk->info.records,
		.kind = (uint8_t)kind,
		.exact = true,
		.value = value,
		.text_bytes = (uint16_t)strlen(text)};

	assert_true(bc_chunk_add_event(chunk, &event, text));
}

static void start_chunk(struct fixture *f, uint32_t record)
{
	bc_chunk_reset(&f->chunk[f->filling], f->row[record].tick, f->row[record].epoch);
	f->chunk[f->filling].info.first_record = record;
}

static void finish_chunk(struct fixture *f, uint32_t record)
{
	bc_trigger_engine_finish_chunk(&f->engine, &f->chunk[f->filling]);
	start_chunk(f, record);
}

/* Feeds the stream in batches and chunks of random lengths. */
static void feed(struct fixture *f)
{
	struct dice *dice = &f->dice;
	uint32_t batch = 1 + dice_below(dice, dice_below(dice, 2) == 0 ? 300 : 8);

	f->found_count = 0;
	start_chunk(f, 0);
	uint32_t from = 0;
	for (uint32_t i = 0; i < f->rows; i++) {
		const struct row *row = &f->row[i];
		struct bc_chunk *chunk = &f->chunk[f->filling];
		bool is_new = chunk->info.epoch != row->epoch || chunk->info.events > 100 ||
			      dice_below(dice, 200) == 0;
		bool is_late = dice_below(dice, 2) == 0;
		if (is_new || dice_below(dice, batch) == 0) {
			/* The next record's events may be at the end of this chunk. */
			bool is_split = chunk->info.epoch == row->epoch && !is_late && is_new;
			if (is_split && row->has_gap)
				add_event(chunk, BC_EVENT_GAP, "", 3);
			if (is_split && row->has_board)
				add_event(chunk, BC_EVENT_TRIGGER, "", 0);
			search_batch(f, from);
			if (dice_below(dice, 4) == 0)
				search_batch(f, f->chunk[f->filling].info.records);
			if (is_new)
				finish_chunk(f, i);
			chunk = &f->chunk[f->filling];
			from = chunk->info.records;
			if (!is_split && row->has_gap)
				add_event(chunk, BC_EVENT_GAP, "", 3);
			if (!is_split && row->has_board)
				add_event(chunk, BC_EVENT_TRIGGER, "", 0);
		} else {
			if (row->has_gap)
				add_event(chunk, BC_EVENT_GAP, "", 3);
			if (row->has_board)
				add_event(chunk, BC_EVENT_TRIGGER, "", 0);
		}
		if (row->has_text_trigger)
			add_event(chunk, BC_EVENT_TRIGGER, "note", 0);
		if (bc_le32(row->bytes + 8) == BC_TIME_NONE)
			add_event(chunk, BC_EVENT_ANCHOR, "", row->tick);
		memcpy(chunk->records + (size_t)chunk->info.records * BC_RECORD_BYTES, row->bytes,
			BC_RECORD_BYTES);
		if (chunk->info.records++ == 0)
			chunk->info.first_tick = row->tick;
		chunk->info.last_tick = row->tick;
	}
	search_batch(f, from);
}

TEST_F(each_match_occurs_once_and_in_order_with_any_batches)
{
	uint64_t total = 0;

	f->dice.state = 1;
	for (unsigned round = 0; round < 4000; round += test_stride(9)) {
		choose_triggers(f);
		make_stream(f);
		expect(f);
		feed(f);
		for (uint32_t i = 0; i < f->expected_count && i < f->found_count; i++)
			if (f->found[i].record != f->expected[i].record ||
				f->found[i].trigger != f->expected[i].trigger)
				fail_msg("round %u, match %u: %u at %u (%s) for %u at %u (%s)",
					round, i, f->found[i].trigger, f->found[i].record,
					f->engine.armed[f->found[i].trigger].trigger.when,
					f->expected[i].trigger, f->expected[i].record,
					f->engine.armed[f->expected[i].trigger].trigger.when);
		assert_int_equal(f->found_count, f->expected_count);
		uint64_t fired = 0;
		for (unsigned i = 0; i < f->engine.count; i++)
			fired += f->engine.armed[i].trigger.fired;
		assert_int_equal(fired, f->found_count);
		total += fired;
	}
	assert_true(total > 100000 / test_stride(9));
}

/* Arms a trigger and returns it. */
static struct bc_trigger *arm(
	struct fixture *f, const char *name, const char *when, const char *action)
{
	struct bc_trigger trigger = make_trigger(name, when, action);

	assert_int_equal(bc_trigger_engine_add(&f->engine, &trigger), 0);
	return &f->engine.armed[f->engine.count - 1].trigger;
}

/* Returns a chunk of n reads, one tick apart. */
static struct bc_chunk *reads(struct fixture *f, uint32_t n)
{
	const struct bc_record r = {.reqtype = BC_REQ_MEMREAD, .size = 1, .time = 1};
	struct bc_chunk *chunk = &f->chunk[0];

	bc_chunk_reset(chunk, 1000, 0);
	for (uint32_t i = 0; i < n; i++)
		bc_record_store(chunk->records + (size_t)i * BC_RECORD_BYTES, &r);
	chunk->info.records = n;
	chunk->info.last_tick = 1000 + n - 1;
	return chunk;
}

TEST_F(a_mark_without_space_is_missed_and_held_off)
{
	struct bc_trigger *mark = arm(f, "m", "type=read", "mark");
	struct bc_chunk *chunk = reads(f, 1000);
	const struct bc_event gap = {.kind = BC_EVENT_GAP};
	struct bc_trigger_match match;
	uint32_t from = 0;

	while (chunk->info.events < BC_CHUNK_EVENTS)
		assert_true(bc_chunk_add_event(chunk, &gap, NULL));
	mark->holdoff_ns = 100;
	assert_false(bc_trigger_engine_next(&f->engine, chunk, &from, CLOCK_HZ, &match));
	assert_int_equal(mark->missed, 10);
	assert_int_equal(mark->fired, 0);
	/* A hold-off of less than a tick has no effect. */
	mark->holdoff_ns = 1;
	f->engine.armed[0].has_acted = false;
	from = 0;
	assert_false(bc_trigger_engine_next(&f->engine, chunk, &from, 1000, &match));
	assert_int_equal(mark->missed, 1010);
	/* By the host's clock it lasts at least to the end of the batch. */
	mark->holdoff_ns = UINT64_C(3600000000000);
	f->engine.armed[0].has_acted = false;
	from = 0;
	assert_false(bc_trigger_engine_next(&f->engine, chunk, &from, 0, &match));
	assert_int_equal(mark->missed, 1011);
}

TEST_F(marks_with_a_hold_off_are_counted_alike_with_and_without_space)
{
	struct dice dice = {9};
	const struct bc_event gap = {.kind = BC_EVENT_GAP};
	struct bc_trigger_match match;

	for (unsigned round = 0; round < 500; round++) {
		uint64_t holdoff_ns = 10 + dice_below(&dice, 200);
		struct bc_chunk *chunk = reads(f, 1 + dice_below(&dice, 1000));
		uint32_t records = chunk->info.records;
		unsigned matches = 0;
		for (unsigned is_full = 0; is_full < 2; is_full++) {
			uint32_t from = 0;
			bc_trigger_engine_init(&f->engine);
			arm(f, "m", "type=read", "mark")->holdoff_ns = holdoff_ns;
			while (is_full && chunk->info.events < BC_CHUNK_EVENTS)
				assert_true(bc_chunk_add_event(chunk, &gap, NULL));
			/* In two batches. */
			for (unsigned part = 0; part < 2; part++) {
				chunk->info.records = part == 0 ? records / 2 : records;
				chunk->info.last_tick = 1000 + chunk->info.records - 1;
				while (bc_trigger_engine_next(
					&f->engine, chunk, &from, CLOCK_HZ, &match)) {
					bc_trigger_engine_fire(&f->engine, &match);
					matches++;
				}
			}
			if (is_full)
				assert_int_equal(f->engine.armed[0].trigger.missed, matches);
		}
		assert_true(matches != 0);
	}
}

TEST_F(triggers_whose_action_is_impossible_are_not_searched_for)
{
	struct bc_chunk *chunk = reads(f, 10);
	struct bc_trigger_match match;
	uint32_t from = 0;
	uint32_t position = 0;

	arm(f, "start", "addr=0", "start");
	arm(f, "stop", "addr=0", "stop");
	f->engine.actions = 1u << BC_ACTION_START;
	/* A record that matches both: after the start, the stop waits for the next record. */
	while (bc_trigger_engine_next(&f->engine, chunk, &from, CLOCK_HZ, &match)) {
		bool is_start = position % 2 == 0;
		assert_string_equal(match.trigger->name, is_start ? "start" : "stop");
		assert_int_equal(match.position, position++);
		f->engine.actions = 1u << (is_start ? BC_ACTION_STOP : BC_ACTION_START);
	}
	assert_int_equal(position, 10);
}

TEST_F(further_matches_at_a_removed_record_are_missed)
{
	struct bc_trigger_match match;

	for (unsigned way = 0; way < 3; way++) {
		struct bc_chunk *chunk = reads(f, 10);
		uint32_t from = 9;
		chunk->records[9 * BC_RECORD_BYTES + 7] = 1; /* unlike the next */
		bc_trigger_engine_init(&f->engine);
		arm(f, "start", "addr=0", "start");
		arm(f, "mark", "addr=0", "mark");
		assert_true(bc_trigger_engine_next(&f->engine, chunk, &from, CLOCK_HZ, &match));
		assert_string_equal(match.trigger->name, "start");
		assert_int_equal(from, 9);
		if (way == 0)
			bc_trigger_engine_finish_chunk(&f->engine, chunk);
		f->engine.actions = way == 2 ? 1u << BC_ACTION_STOP : 1u << BC_ACTION_MARK;
		chunk = reads(f, 1);
		from = way == 1 ? 1 : 0;
		bool is_match = bc_trigger_engine_next(&f->engine, chunk, &from, CLOCK_HZ, &match);
		assert_int_equal(is_match, way == 0);
		assert_int_equal(f->engine.armed[1].trigger.missed, way != 2);
		assert_int_equal(from, 1);
	}
}

TEST_F(only_one_stop_or_toggle_comes_last_at_its_record)
{
	const char *const actions[] = {"stop", "toggle", "mark", "start"};
	struct bc_chunk *chunk = reads(f, 2);
	struct bc_trigger_match match;
	uint32_t from = 0;

	for (unsigned i = 0; i < 4; i++)
		arm(f, actions[i], "addr=0", actions[i]);
	for (uint32_t record = 0; record < 2; record++) {
		const char *const order[] = {"mark", "start", "stop"};
		for (unsigned i = 0; i < 3; i++) {
			assert_true(
				bc_trigger_engine_next(&f->engine, chunk, &from, CLOCK_HZ, &match));
			assert_string_equal(match.trigger->name, order[i]);
			assert_int_equal(match.position, record);
		}
	}
	assert_false(bc_trigger_engine_next(&f->engine, chunk, &from, CLOCK_HZ, &match));
}

TEST_F(a_silence_matches_once_and_not_again_when_it_ends)
{
	struct bc_chunk *chunk = reads(f, 10);
	struct bc_trigger_match match;
	uint32_t from = 0;

	arm(f, "idle", "idle 1ms", "mark");
	assert_false(bc_trigger_engine_next(&f->engine, chunk, &from, CLOCK_HZ, &match));
	assert_false(bc_trigger_engine_check_silence(&f->engine, 5000000, 4000000, &match));
	assert_true(bc_trigger_engine_check_silence(&f->engine, 5000001, 4000000, &match));
	assert_true(match.tick == 1009);
	assert_false(bc_trigger_engine_check_silence(&f->engine, 9000000, 4000000, &match));
	/* The record that ends it, two more, and one that ends another idle. */
	bc_write_le32(chunk->records + 10 * BC_RECORD_BYTES + 8, 5000000);
	bc_write_le32(chunk->records + 12 * BC_RECORD_BYTES + 8, 1000001);
	for (uint32_t i = 10; i < 13; i++)
		memcpy(chunk->records + i * BC_RECORD_BYTES, chunk->records, 8);
	bc_write_le32(chunk->records + 11 * BC_RECORD_BYTES + 8, 1000000);
	chunk->info.records = 13;
	chunk->info.last_tick = 1009 + 5000000 + 1000000 + 1000001;
	assert_true(bc_trigger_engine_next(&f->engine, chunk, &from, CLOCK_HZ, &match));
	assert_int_equal(match.position, 12);
	assert_false(bc_trigger_engine_next(&f->engine, chunk, &from, CLOCK_HZ, &match));
	assert_true(bc_trigger_engine_check_silence(&f->engine, 20000000, 10000000, &match));
}

TEST_F(a_hold_off_uses_the_host_clock_without_a_bus_clock)
{
	const uint64_t holdoff_ns = UINT64_C(3600000000000);
	struct bc_chunk *chunk = reads(f, 100);
	struct bc_trigger_match match;
	uint32_t from = 0;
	unsigned n = 0;

	arm(f, "t", "addr=0", "start")->holdoff_ns = holdoff_ns;
	for (; bc_trigger_engine_next(&f->engine, chunk, &from, 0, &match); n++)
		bc_trigger_engine_fire(&f->engine, &match);
	assert_int_equal(n, 1);
	f->engine.armed[0].acted_ns -= holdoff_ns;
	from = 0;
	assert_true(bc_trigger_engine_next(&f->engine, chunk, &from, 0, &match));
}

TEST_F(triggers_are_limited_in_number_and_have_unique_names)
{
	struct bc_trigger t = make_trigger("x", "gap", "mark");

	for (unsigned kind = 0; kind < 2; kind++) {
		t.is_requested = kind != 0;
		for (unsigned i = 0; i <= 16; i++) {
			snprintf(t.name, sizeof(t.name), "%c%u", kind != 0 ? 'r' : 'c', i);
			assert_int_equal(
				bc_trigger_engine_add(&f->engine, &t), i < 16 ? 0 : -ENOSPC);
		}
		snprintf(t.name, sizeof(t.name), "c3");
		assert_int_equal(bc_trigger_engine_add(&f->engine, &t), -EEXIST);
	}
	assert_int_equal(f->engine.count, 32);
	assert_non_null(bc_trigger_engine_find(&f->engine, "r15"));
	assert_int_equal(bc_trigger_engine_remove(&f->engine, "c3"), 0);
	assert_int_equal(bc_trigger_engine_remove(&f->engine, "c3"), -ENOENT);
	assert_null(bc_trigger_engine_find(&f->engine, "c3"));
	assert_int_equal(f->engine.count, 31);
}

TEST_F(a_new_configuration_keeps_unchanged_triggers)
{
	struct bc_trigger t[3] = {make_trigger("a", "region=vga", "mark"),
		make_trigger("b", "board", "mark"), make_trigger("c", "gap", "stop")};
	struct bc_trigger request = make_trigger("d", "gap", "mark");

	bc_trigger_engine_configure(&f->engine, t, 2);
	request.is_requested = true;
	assert_int_equal(bc_trigger_engine_add(&f->engine, &request), 0);
	request = make_trigger("c", "gap", "mark");
	request.is_requested = true;
	assert_int_equal(bc_trigger_engine_add(&f->engine, &request), 0);
	f->engine.armed[0].trigger.fired = 5;
	f->engine.armed[1].trigger.fired = 6;
	t[0].filter.addr.first = 0xa0000; /* the region has moved */
	t[1] = make_trigger("b", "board", "stop");
	bc_trigger_engine_configure(&f->engine, t, 3);
	assert_int_equal(f->engine.count, 4);
	assert_int_equal(bc_trigger_engine_find(&f->engine, "a")->fired, 5);
	assert_int_equal(bc_trigger_engine_find(&f->engine, "a")->filter.addr.first, 0xa0000);
	assert_int_equal(bc_trigger_engine_find(&f->engine, "b")->fired, 0);
	assert_int_equal(bc_trigger_engine_find(&f->engine, "b")->action, BC_ACTION_STOP);
	assert_false(bc_trigger_engine_find(&f->engine, "c")->is_requested);
	assert_true(bc_trigger_engine_find(&f->engine, "d")->is_requested);
	bc_trigger_engine_configure(&f->engine, NULL, 0);
	assert_int_equal(f->engine.count, 1);
}
