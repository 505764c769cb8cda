#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/bus/record.h"
#include "tests/support/dice.h"
#include "tests/support/print_run.h"
#include "tests/support/test.h"

static const enum bc_format dialects[] = {
	BC_FORMAT_BYU, BC_FORMAT_BYU_BE, BC_FORMAT_BYU16, BC_FORMAT_BYU24};

#define DIALECTS (COUNT_OF(dialects))
#define RECORDS  3000

static bool is_wide(enum bc_format format)
{
	return format == BC_FORMAT_BYU16 || format == BC_FORMAT_BYU24;
}

/* Random records, often at limits; all fit in 32 bits. */
static struct trace make_trace(enum bc_format format, uint64_t seed, size_t records)
{
	static const uint32_t edges[] = {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF};
	struct dice dice = {.state = seed};
	struct trace trace = {.bytes = malloc(records * 24 + 1)};

	assert_non_null(trace.bytes);
	for (size_t i = 0; i < records; i++) {
		uint64_t roll = dice_roll(&dice);
		uint32_t which = dice_below(&dice, 40);
		struct bc_record r = {.addr = (uint32_t)dice_roll(&dice),
			.reqtype = (uint8_t)roll,
			.size = (uint8_t)(roll >> 8),
			.attr = (uint8_t)(roll >> 16),
			.proc = (uint8_t)(roll >> 24),
			.time = which < 6 ? edges[which] : dice_below(&dice, 1000)};
		r.addr = which >= 34 ? edges[which - 34] : r.addr;
		trace.n += trace_write_record(trace.bytes + trace.n, &r, format);
	}
	return trace;
}

TEST(every_dialect_converts_to_every_other_without_loss)
{
	for (size_t from = 0; from < DIALECTS; from++) {
		for (size_t to = 0; to < DIALECTS; to++) {
			struct trace in = make_trace(dialects[from], 5 + from, RECORDS);
			struct trace expected = make_trace(dialects[to], 5 + from, RECORDS);
			struct printed out = convert_trace(&in, dialects[from], dialects[to], NULL);
			assert_nothing_lost(&out);
			assert_int_equal(out.trace.n, expected.n);
			assert_memory_equal(out.trace.bytes, expected.bytes, expected.n);
			trace_free(&in);
			trace_free(&expected);
			printed_free(&out);
		}
	}
}

TEST(an_empty_trace_is_empty_in_every_dialect)
{
	for (size_t to = 0; to < DIALECTS; to++) {
		struct printed out = print_entries(NULL, 0, BC_FORMAT_BYU, dialects[to], NULL);
		assert_nothing_lost(&out);
		assert_int_equal(out.trace.n, 0);
		printed_free(&out);
	}
}

/* Addresses and times of more than 32 bits are kept. */
TEST(byu24_comes_back_byte_for_byte)
{
	struct dice dice = {.state = 21};
	struct trace in = {.bytes = malloc(RECORDS * 24), .n = RECORDS * 24};

	assert_non_null(in.bytes);
	dice_fill(&dice, in.bytes, in.n);
	for (size_t i = 0; i < RECORDS; i++) {
		memset(in.bytes + i * 24 + 12, 0, 4); /* padding is not part of a record */
		memset(in.bytes + i * 24 + 21, 0, 3); /* the sum of the times has 64 bits */
	}
	struct printed out = convert_trace(&in, BC_FORMAT_BYU24, BC_FORMAT_BYU24, NULL);
	assert_nothing_lost(&out);
	assert_int_equal(out.trace.n, in.n);
	assert_memory_equal(out.trace.bytes, in.bytes, in.n);
	trace_free(&in);
	printed_free(&out);
}

static void assert_bytes(const struct printed *out, const uint8_t *expected, size_t n)
{
	assert_int_equal(out->rc, 0);
	assert_int_equal(out->trace.n, n);
	assert_memory_equal(out->trace.bytes, expected, n);
}

static struct bc_entry full_entry(void)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, BC_REQ_MEMWRITE, 0x12345678, 0);
	entry.traits = BC_TRAIT_SIZE | BC_TRAIT_ATTR | BC_TRAIT_PROC | BC_TRAIT_TIME;
	entry.size = 0xA1;
	entry.attr = 0xB2;
	entry.proc = 0xC3;
	entry.delta = 0x11223344;
	entry.has_delta = true;
	entry.tick = 0x11223344;
	return entry;
}

TEST(each_layout_has_the_documented_bytes)
{
	static const uint8_t byu[] = {
		0x78, 0x56, 0x34, 0x12, 3, 0xA1, 0xB2, 0xC3, 0x44, 0x33, 0x22, 0x11};
	static const uint8_t byu_be[] = {
		0x12, 0x34, 0x56, 0x78, 3, 0xA1, 0xB2, 0xC3, 0x11, 0x22, 0x33, 0x44};
	static const uint8_t byu16[] = {
		0x78, 0x56, 0x34, 0x12, 9, 0, 0, 0x80, 3, 0xA1, 0xB2, 0xC3, 0x44, 0x33, 0x22, 0x11};
	static const uint8_t byu24[] = {0x78, 0x56, 0x34, 0x12, 9, 0, 0, 0x80, 3, 0xA1, 0xB2, 0xC3,
		0, 0, 0, 0, 0x44, 0x33, 0x22, 0x11, 0, 0, 0, 0x70};
	struct bc_entry entry = full_entry();

	struct printed out = print_entries(&entry, 1, BC_FORMAT_BYU, BC_FORMAT_BYU, NULL);
	assert_bytes(&out, byu, sizeof(byu));
	printed_free(&out);
	out = print_entries(&entry, 1, BC_FORMAT_BYU, BC_FORMAT_BYU_BE, NULL);
	assert_bytes(&out, byu_be, sizeof(byu_be));
	printed_free(&out);
	entry.addr |= UINT64_C(0x8000000900000000);
	out = print_entries(&entry, 1, BC_FORMAT_BYU24, BC_FORMAT_BYU16, NULL);
	assert_bytes(&out, byu16, sizeof(byu16));
	printed_free(&out);
	entry.delta |= UINT64_C(0x7000000000000000);
	out = print_entries(&entry, 1, BC_FORMAT_BYU24, BC_FORMAT_BYU24, NULL);
	assert_bytes(&out, byu24, sizeof(byu24));
	printed_free(&out);
}

TEST(missing_fields_are_zero)
{
	static const uint8_t expected[] = {9, 0, 0, 0, 1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF};
	struct bc_entry entry;

	bc_entry_reference(&entry, BC_REQ_MEMREAD, 9, 0);
	struct printed out = print_entries(&entry, 1, BC_FORMAT_DIN, BC_FORMAT_BYU, NULL);
	assert_bytes(&out, expected, sizeof(expected));
	printed_free(&out);
}

/* The entry must be refused with an error that names the value; the entries before it are
 * written. */
static void assert_refused(enum bc_format to, const struct bc_entry *bad, const char *value)
{
	struct bc_entry entries[3] = {full_entry(), *bad, full_entry()};

	entries[1].number = 1;
	struct printed out = print_entries(entries, 3, BC_FORMAT_BYU24, to, NULL);
	assert_int_equal(out.rc, -ERANGE);
	assert_int_equal(out.refused, 1);
	assert_int_equal(out.trace.n, bc_dialect_bytes(to));
	assert_non_null(strstr(out.err, value));
	assert_non_null(strstr(out.err, "doesn't fit"));
	printed_free(&out);
}

static void assert_accepted(enum bc_format to, const struct bc_entry *entry)
{
	struct printed out = print_entries(entry, 1, BC_FORMAT_BYU24, to, NULL);

	assert_nothing_lost(&out);
	assert_int_equal(out.trace.n, bc_dialect_bytes(to));
	printed_free(&out);
}

TEST(a_value_too_large_for_its_field_is_an_error)
{
	for (size_t d = 0; d < DIALECTS; d++) {
		enum bc_format to = dialects[d];
		struct bc_entry entry = full_entry();
		entry.addr = is_wide(to) ? UINT64_MAX : UINT32_MAX;
		entry.size = UINT8_MAX;
		entry.proc = UINT8_MAX;
		entry.delta = to == BC_FORMAT_BYU24 ? UINT64_MAX : BC_TIME_NONE;
		entry.tick = to == BC_FORMAT_BYU24 ? UINT64_MAX : 0;
		assert_accepted(to, &entry);

		entry = full_entry();
		entry.size = 256;
		assert_refused(to, &entry, "size 0x100 ");
		entry.size = UINT32_MAX;
		assert_refused(to, &entry, "size 0xffffffff ");
		entry = full_entry();
		entry.proc = 256;
		assert_refused(to, &entry, "processor 0x100 ");
		for (unsigned bit = 32; bit < 64; bit++) {
			char value[64];
			snprintf(value, sizeof(value), "0x%llx ", 1ull << bit | 5);
			entry = full_entry();
			entry.addr = UINT64_C(1) << bit | 5;
			if (is_wide(to))
				assert_accepted(to, &entry);
			else
				assert_refused(to, &entry, value);
			entry = full_entry();
			entry.delta = UINT64_C(1) << bit | 5;
			entry.tick = entry.delta;
			if (to == BC_FORMAT_BYU24)
				assert_accepted(to, &entry);
			entry.tick += full_entry().tick;
			if (to != BC_FORMAT_BYU24)
				assert_refused(to, &entry, value);
		}
	}
}

#define NONE BC_TIME_NONE

struct moment {
	uint64_t tick;
	uint64_t delta;
	uint32_t epoch;
	bool has_time;
	bool has_delta;
};

#define TICK(t)                               \
	{                                     \
		.tick = (t), .has_time = true \
	}
#define EPOCH(t, e)                                         \
	{                                                   \
		.tick = (t), .epoch = (e), .has_time = true \
	}
#define DELTA(t, d)                                                            \
	{                                                                      \
		.tick = (t), .delta = (d), .has_time = true, .has_delta = true \
	}
#define NO_TIME                   \
	{                         \
		.has_time = false \
	}

/* Prints entries with these times as byu24 or another dialect, and checks their time fields. */
static void assert_times(enum bc_format from, enum bc_format to, const struct moment *moments,
	const uint64_t *expected, size_t n, uint64_t lost)
{
	struct bc_entry entries[16];
	uint64_t addr;
	uint64_t time;

	assert_true(n <= 16);
	for (size_t i = 0; i < n; i++) {
		bc_entry_reference(&entries[i], BC_REQ_FETCH, i, i);
		entries[i].traits = moments[i].has_time ? BC_TRAIT_TIME : 0;
		entries[i].tick = moments[i].tick;
		entries[i].epoch = moments[i].epoch;
		entries[i].delta = moments[i].delta;
		entries[i].has_delta = moments[i].has_delta;
	}
	struct printed out = print_entries(entries, n, from, to, NULL);
	assert_int_equal(out.rc, 0);
	assert_int_equal(reduced_of(&out, BC_TRAIT_TIME), lost);
	for (size_t i = 0; i < n; i++) {
		bc_dialect_fields(out.trace.bytes + i * bc_dialect_bytes(to), to, &addr, &time);
		assert_int_equal(addr, i);
		assert_int_equal(time, expected[i]);
	}
	printed_free(&out);
}

#define ASSERT_TIMES(from, to, moments, expected, lost) \
	assert_times(from, to, moments, expected, COUNT_OF(expected), lost)

TEST(deltas_are_kept_even_the_first_of_a_slice)
{
	static const struct moment moments[] = {
		DELTA(77, 77), DELTA(80, 3), DELTA(80, NONE), DELTA(80, 0), DELTA(90, 10)};
	static const uint64_t expected[] = {77, 3, NONE, 0, 10};

	ASSERT_TIMES(BC_FORMAT_BYU, BC_FORMAT_BYU, moments, expected, 0);
}

TEST(times_add_up_where_entries_were_left_out)
{
	static const struct moment moments[] = {
		DELTA(77, 77), DELTA(90, 3), DELTA(95, NONE), DELTA(96, 1)};
	static const uint64_t expected[] = {77, 13, 5, 1};

	ASSERT_TIMES(BC_FORMAT_BYU, BC_FORMAT_BYU, moments, expected, 0);
}

TEST(the_next_of_several_files_keeps_its_deltas)
{
	static const struct moment moments[] = {
		DELTA(0, NONE), DELTA(50, 50), DELTA(0, NONE), DELTA(4, 4), DELTA(2, 2)};
	static const uint64_t expected[] = {NONE, 50, NONE, 4, 2};

	ASSERT_TIMES(BC_FORMAT_BYU, BC_FORMAT_BYU, moments, expected, 0);
}

TEST(absolute_ticks_become_deltas)
{
	static const struct moment moments[] = {
		TICK(1000), TICK(1000), TICK(1007), EPOCH(3, 1), EPOCH(5, 1), EPOCH(9, 2)};
	static const uint64_t expected[] = {NONE, 0, 7, NONE, 2, NONE};

	/* The first ticks of the trace and of two epochs. */
	ASSERT_TIMES(BC_FORMAT_BCP1, BC_FORMAT_BYU, moments, expected, 3);
}

TEST(a_difference_that_does_not_fit_is_a_lost_time)
{
	static const struct moment moments[] = {
		TICK(0), TICK(0xFFFFFFFE), TICK(0x1FFFFFFFD), TICK(0x2FFFFFFFD), TICK(0x2FFFFFFFC)};
	static const uint64_t narrow[] = {NONE, 0xFFFFFFFE, NONE, NONE, NONE};
	static const uint64_t wide[] = {NONE, 0xFFFFFFFE, NONE, 0x100000000, NONE};

	/* 0xFFFFFFFF, 2^32, and a tick that goes back. */
	ASSERT_TIMES(BC_FORMAT_BCP1, BC_FORMAT_BYU, moments, narrow, 3);
	ASSERT_TIMES(BC_FORMAT_BCP1, BC_FORMAT_BYU_BE, moments, narrow, 3);
	ASSERT_TIMES(BC_FORMAT_BCP1, BC_FORMAT_BYU16, moments, narrow, 3);
	ASSERT_TIMES(BC_FORMAT_BCP1, BC_FORMAT_BYU24, moments, wide, 2);
}

TEST(without_a_clock_each_entry_takes_one_tick)
{
	static const struct moment moments[] = {NO_TIME, NO_TIME, NO_TIME};
	static const uint64_t expected[] = {NONE, 1, 1};

	ASSERT_TIMES(BC_FORMAT_DIN, BC_FORMAT_BYU, moments, expected, 0);
	ASSERT_TIMES(BC_FORMAT_DIN, BC_FORMAT_BYU24, moments, expected, 0);
}

TEST(an_entry_without_a_time_among_others_has_no_delta)
{
	static const struct moment moments[] = {
		NO_TIME, TICK(10), NO_TIME, TICK(15), NO_TIME, NO_TIME, TICK(15)};
	static const uint64_t expected[] = {NONE, NONE, NONE, 5, NONE, NONE, 0};

	ASSERT_TIMES(BC_FORMAT_BCP1, BC_FORMAT_BYU, moments, expected, 1); /* tick 10 */
}

/* Compares with a recording of the same stream, made by tests/support/traces.h. */
TEST(a_boards_frames_become_the_records_of_a_recording)
{
	struct trace bcp1 = trace_of_sim(3, 20000, 3);

	for (size_t d = 0; d < DIALECTS; d++) {
		struct trace expected = trace_to_byu(&bcp1, dialects[d]);
		struct printed out = convert_trace(&bcp1, BC_FORMAT_BCP1, dialects[d], NULL);
		assert_bytes(&out, expected.bytes, expected.n);
		trace_free(&expected);
		printed_free(&out);
	}
	trace_free(&bcp1);
}

TEST(an_invalid_sample_is_left_out_but_takes_a_tick)
{
	static uint8_t samples[] = {
		0, 0, 0, 0, 0xFF, 0x00, /* invalid */
		0, 0, 0, 8, 0xFE, 0xD0, /* NC_D_READ */
		0, 0, 0, 8, 0xFE, 0xB0, /* invalid */
		0, 0, 0, 8, 0xFD, 0xF0, /* D_WRITE */
	};
	static const uint8_t dropped[] = {8, 0, 0, 0, 1, 1, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, /**/
		9, 0, 0, 0, 3, 1, 1, 0, 2, 0, 0, 0};
	static const uint8_t kept[] = {0, 0, 0, 0, 0xF0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, /**/
		8, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0,                                       /**/
		8, 0, 0, 0, 0xFB, 1, 0, 0, 1, 0, 0, 0,                                    /**/
		9, 0, 0, 0, 3, 1, 1, 0, 1, 0, 0, 0};
	struct trace raw6 = {.bytes = samples, .n = sizeof(samples)};
	struct bc_format_options options = bc_format_options_default();

	struct printed out = convert_trace(&raw6, BC_FORMAT_RAW6, BC_FORMAT_BYU, NULL);
	assert_bytes(&out, dropped, sizeof(dropped));
	assert_int_equal(out.left_out[__builtin_ctz(BC_TRAIT_INVALID)], 2);
	printed_free(&out);
	options.keep_invalid = true;
	out = convert_trace(&raw6, BC_FORMAT_RAW6, BC_FORMAT_BYU, &options);
	assert_bytes(&out, kept, sizeof(kept));
	assert_int_equal(out.left_out[__builtin_ctz(BC_TRAIT_INVALID)], 0);
	printed_free(&out);
}
