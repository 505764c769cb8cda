/* A run of records is printed like its entries, one by one, wherever it is split. */
#include <stdlib.h>
#include <string.h>

#include "formats/bus/chunk.h"
#include "formats/bus/record.h"
#include "tests/support/dice.h"
#include "tests/support/print_run.h"
#include "tests/support/test.h"

#define PARTS_MAX 64

static const enum bc_format formats[] = {BC_FORMAT_BYU, BC_FORMAT_BCP1};

/* A part of a trace: records, and an event after them. */
struct part {
	struct bc_record_run run;
	struct bc_entry event; /* kind BC_ENTRY_REFERENCE: none */
};

struct parts {
	uint8_t *records; /* of all */
	struct part part[PARTS_MAX];
	size_t count;
};

/* How odd the records are: none of a recording is, all of a random trace are. */
static void make_record(struct dice *dice, uint8_t *out, unsigned oddness)
{
	static const uint8_t types[] = {BC_REQ_FETCH, BC_REQ_MEMREAD, BC_REQ_MEMWRITE,
		BC_REQ_IOREAD, BC_REQ_IOWRITE, BC_REQ_INTA, BC_REQ_MEMREADINV, BC_REQ_HALT,
		BC_REQ_STOPCLKACK, BC_REQ_SHUTDOWN, 0xF0, 0xF1, 0xF8, 0x99};
	static const uint8_t sizes[] = {0, 1, 2, 4, 7, 8, 9, 16, 32, 33, 255};
	static const uint32_t times[] = {BC_TIME_NONE, BC_TIME_NONE - 1, 0xFFFF, 0x10000, 0};
	static const uint32_t addrs[] = {0, UINT32_MAX, UINT32_MAX - 7, UINT32_MAX - 31};
	uint8_t type = types[dice_below(dice, 3)];
	struct bc_record r = {.addr = (uint32_t)dice_roll(dice) & ~7u,
		.reqtype = type,
		.size = dice_below(dice, 2) != 0 ? 32 : 8,
		.time = dice_below(dice, 9)};

	r.attr = r.size == 32 ? 3 : type == BC_REQ_MEMWRITE;
#define IS_ODD() (dice_below(dice, 100) < oddness)
	if (IS_ODD())
		r.reqtype = types[dice_below(dice, sizeof(types))];
	if (IS_ODD())
		r.size = sizes[dice_below(dice, sizeof(sizes))];
	if (IS_ODD())
		r.addr += dice_below(dice, 8);
	if (IS_ODD())
		r.addr = addrs[dice_below(dice, COUNT_OF(addrs))];
	if (IS_ODD())
		r.attr = (uint8_t)dice_below(dice, 5);
	if (IS_ODD())
		r.proc = (uint8_t)dice_below(dice, 18);
	if (IS_ODD())
		r.time = times[dice_below(dice, COUNT_OF(times))];
#undef IS_ODD
	bc_record_store(out, &r);
}

static struct bc_entry make_event(struct dice *dice, const struct bc_record_run *run)
{
	static const uint8_t kinds[] = {0, BC_EVENT_GAP, BC_EVENT_MARK, BC_EVENT_TRIGGER};
	struct bc_entry event;

	bc_entry_reference(&event, 0, 0, run->number);
	if (dice_below(dice, 2) != 0)
		return event;
	event.kind = BC_ENTRY_EVENT;
	event.tick = run->tick;
	event.epoch = run->epoch;
	event.note.event = (struct bc_event){.kind = kinds[dice_below(dice, 4)],
		.cause = (uint8_t)(1 + dice_below(dice, BC_GAP_CAUSES - 1)),
		.exact = dice_below(dice, 2) != 0,
		.value = dice_below(dice, 3)};
	event.note.text = (struct bc_text){.at = "", .bytes = 0};
	return event;
}

/* Parts of a recording, in order: most continue where the previous one ended. */
static void make_parts(
	struct parts *parts, struct dice *dice, size_t count, size_t records_max, unsigned oddness)
{
	static const uint64_t ticks[] = {0, 1, 1000, UINT32_MAX, BC_TICK_END - 70000, BC_TICK_END};
	struct bc_record_run run = {.tick = 0};
	uint8_t *at = malloc(count * records_max * BC_RECORD_BYTES + 1);

	assert_non_null(at);
	assert_true(count <= PARTS_MAX);
	parts->records = at;
	parts->count = count;
	for (size_t i = 0; i < count; i++) {
		run.records = at;
		run.count = dice_below(dice, (uint32_t)records_max + 1);
		for (size_t k = 0; k < run.count; k++, at += BC_RECORD_BYTES)
			make_record(dice, at, oddness);
		if (dice_below(dice, 8) == 0)
			run.tick = ticks[dice_below(dice, COUNT_OF(ticks))];
		run.epoch += dice_below(dice, 8) == 0;
		run.is_inexact = dice_below(dice, 4) == 0;
		parts->part[i] = (struct part){.run = run, .event = make_event(dice, &run)};
		bc_record_run_skip(&run, run.count,
			bc_records_ticks(run.records, run.count, run.tick) - run.tick);
	}
}

enum how { BY_ENTRY, BY_RUN };

/* Prints the parts. Runs end after each `split` records, counted through all parts from `first` on.
 */
static struct printed print_parts(const struct parts *parts, enum bc_format format, enum how how,
	size_t first, size_t split, size_t *taken)
{
	struct bc_format_options options = bc_format_options_default();
	struct print_run run;
	struct printed printed;
	size_t left = first;

	options.source_traits = bc_format_info(BC_FORMAT_SEGMENT)->traits;
	print_run_start(&run, &printed, format, &options, 100);
	*taken = 0;
	for (size_t i = 0; i < parts->count && printed.rc == 0; i++) {
		struct bc_record_run rest = parts->part[i].run;
		struct bc_entry entry;
		while (how == BY_ENTRY && bc_record_run_entries(&rest, &entry, 1) != 0 &&
			printed.rc == 0)
			print_run_add(&run, &entry, 1);
		while (rest.count != 0 && printed.rc == 0) {
			struct bc_record_run now = rest;
			now.count = now.count < left ? now.count : left;
			left -= now.count;
			left = left == 0 ? split : left;
			*taken += print_run_add_records(&run, now);
			bc_record_run_skip(&rest, now.count,
				bc_records_ticks(now.records, now.count, now.tick) - now.tick);
		}
		if (parts->part[i].event.kind == BC_ENTRY_EVENT && printed.rc == 0)
			print_run_add(&run, &parts->part[i].event, 1);
	}
	print_run_finish(&run);
	return printed;
}

/* Returns how many records the printer took as runs. */
static size_t assert_prints_like_entries(
	const struct parts *parts, enum bc_format format, size_t first, size_t split)
{
	size_t taken;
	struct printed expected = print_parts(parts, format, BY_ENTRY, 0, 0, &taken);
	struct printed printed = print_parts(parts, format, BY_RUN, first, split, &taken);

	assert_int_equal(printed.rc, expected.rc);
	assert_int_equal(printed.refused, expected.refused);
	assert_string_equal(printed.err, expected.err);
	assert_int_equal(printed.splits, expected.splits);
	assert_memory_equal(
		printed.trait_losses, expected.trait_losses, sizeof(expected.trait_losses));
	assert_memory_equal(printed.left_out, expected.left_out, sizeof(expected.left_out));
	assert_int_equal(printed.trace.n, expected.trace.n);
	if (expected.trace.n != 0)
		assert_memory_equal(printed.trace.bytes, expected.trace.bytes, expected.trace.n);
	printed_free(&expected);
	printed_free(&printed);
	return taken;
}

TEST(short_runs_are_printed_like_their_entries_wherever_they_are_split)
{
	struct dice dice = {.state = 7};
	struct parts parts;

	for (unsigned round = 0; round < 400; round += test_stride(5)) {
		make_parts(&parts, &dice, 1 + dice_below(&dice, 6), 8, round % 40);
		for (size_t f = 0; f < COUNT_OF(formats); f++) {
			assert_prints_like_entries(&parts, formats[f], 1, 1);
			for (size_t first = 1; first <= 8; first++)
				assert_prints_like_entries(&parts, formats[f], first, SIZE_MAX);
		}
		free(parts.records);
	}
}

/* Frames of bcp1 end within the runs, and runs within the frames. */
TEST(long_runs_are_printed_like_their_entries)
{
	struct dice dice = {.state = 9};
	struct parts parts;

	for (unsigned round = 0; round < 30; round += test_stride(3)) {
		make_parts(&parts, &dice, 1 + dice_below(&dice, 4), 3 * 2048, round % 3);
		for (size_t f = 0; f < COUNT_OF(formats); f++)
			assert_prints_like_entries(&parts, formats[f], 1 + dice_below(&dice, 5000),
				1 + dice_below(&dice, 5000));
		free(parts.records);
	}
}

/* All types, sizes, attributes and low address bits, one of each trace's. */
TEST(every_kind_of_record_is_printed_like_its_entry)
{
	static uint8_t records[3 * BC_RECORD_BYTES];
	struct parts parts = {.records = records, .count = 1};
	struct bc_record usual = {.reqtype = BC_REQ_MEMREAD, .size = 8, .time = 1};

	parts.part[0].run = (struct bc_record_run){.records = records, .count = 3};
	for (unsigned i = 0; i < 256 * 34 * 4 * 8; i += test_stride(97)) {
		struct bc_record r = {.addr = 0x1000 + i % 8,
			.attr = (uint8_t)(i / 8 % 4),
			.size = (uint8_t)(i / 32 % 34),
			.reqtype = (uint8_t)(i / 32 / 34),
			.time = 2};
		bc_record_store(records, &usual);
		bc_record_store(records + BC_RECORD_BYTES, &r);
		bc_record_store(records + 2 * BC_RECORD_BYTES, &usual);
		assert_prints_like_entries(&parts, BC_FORMAT_BCP1, 3, 3);
	}
}

TEST(a_recording_is_taken_as_runs_but_for_the_ends_of_frames)
{
	struct dice dice = {.state = 11};
	struct parts parts;
	size_t count = 60000;

	make_parts(&parts, &dice, 1, 1, 0);
	free(parts.records);
	parts.records = malloc(count * BC_RECORD_BYTES);
	assert_non_null(parts.records);
	for (size_t i = 0; i < count; i++)
		make_record(&dice, parts.records + i * BC_RECORD_BYTES, 0);
	parts.part[0].run = (struct bc_record_run){.records = parts.records, .count = count};
	assert_int_equal(
		assert_prints_like_entries(&parts, BC_FORMAT_BYU, SIZE_MAX, SIZE_MAX), count - 1);
	assert_in_range(assert_prints_like_entries(&parts, BC_FORMAT_BCP1, SIZE_MAX, SIZE_MAX),
		count - 2 * (count / 2048 + 1), count);
	free(parts.records);
}
