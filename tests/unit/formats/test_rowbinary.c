#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/dice.h"
#include "tests/support/print_run.h"
#include "tests/support/test.h"

#define ROW_BYTES 32

static struct bc_entry entry_at(uint64_t tick)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, BC_REQ_MEMWRITE, 0x12345678, tick);
	entry.traits = BC_TRAIT_SIZE | BC_TRAIT_ATTR | BC_TRAIT_PROC | BC_TRAIT_TIME;
	entry.size = 0xA1;
	entry.attr = 0xB2;
	entry.proc = 0xC3;
	entry.tick = tick;
	return entry;
}

TEST(two_rows_have_the_documented_bytes)
{
	static const uint8_t expected[] = {0xEF, 0xBE, 0xAD, 0xDE,                   /* session */
		0, 0, 0, 0, 0, 0, 0, 0,                                              /* seq */
		0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,                      /* t */
		0x78, 0x56, 0x34, 0x12, 3, 0xA1, 0xB2, 0xC3, 0xFF, 0xFF, 0xFF, 0xFF, /* BYU */
		0xEF, 0xBE, 0xAD, 0xDE,                                              /**/
		1, 0, 0, 0, 0, 0, 0, 0,                                              /**/
		0x8B, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,                      /**/
		0x78, 0x56, 0x34, 0x12, 3, 0xA1, 0xB2, 0xC3, 3, 0, 0, 0};
	struct bc_entry entries[] = {entry_at(0x1122334455667788), entry_at(0x112233445566778B)};
	struct bc_format_options options = bc_format_options_default();

	options.session = 0xDEADBEEF;
	struct printed out = print_entries(
		entries, 2, BC_FORMAT_BCP1, BC_FORMAT_ROWBINARY, &options);
	assert_nothing_lost(&out);
	assert_int_equal(out.trace.n, sizeof(expected));
	assert_memory_equal(out.trace.bytes, expected, sizeof(expected));
	printed_free(&out);
}

TEST(the_rows_of_segments_have_the_numbers_of_their_records)
{
	static const uint64_t numbers[] = {5, 6, 9, 9, 10, 0, 1, 7, UINT64_C(1) << 40};
	static const uint64_t expected[] = {5, 6, 9, 10, 11, 12, 13, 19, (UINT64_C(1) << 40) + 12};
	struct bc_format_options options = bc_format_options_default();
	struct bc_entry entries[9];

	for (unsigned is_segment = 0; is_segment < 2; is_segment++) {
		options.source_is_segment = is_segment != 0;
		for (size_t i = 0; i < 9; i++) {
			entries[i] = entry_at(i);
			entries[i].number = numbers[i];
		}
		struct printed out = print_entries(
			entries, 9, BC_FORMAT_SEGMENT, BC_FORMAT_ROWBINARY, &options);
		assert_int_equal(out.trace.n, 9 * ROW_BYTES);
		for (size_t i = 0; i < 9; i++)
			assert_true(bc_le64(out.trace.bytes + i * ROW_BYTES + 4) ==
				    (is_segment != 0 ? expected[i] : i));
		printed_free(&out);
	}
}

/* The last 12 bytes of each row are the BYU record, and t is the sum of the times. */
TEST(the_rows_of_a_byu_trace_contain_its_records)
{
	struct trace bcp1 = trace_of_sim(5, 20000, 2);
	struct trace byu = trace_to_byu(&bcp1, BC_FORMAT_BYU);
	uint64_t tick = 0;

	struct printed out = convert_trace(&byu, BC_FORMAT_BYU, BC_FORMAT_ROWBINARY, NULL);
	assert_nothing_lost(&out);
	assert_int_equal(out.trace.n / ROW_BYTES, byu.n / BC_RECORD_BYTES);
	for (size_t i = 0; i < byu.n / BC_RECORD_BYTES; i++) {
		const uint8_t *row = out.trace.bytes + i * ROW_BYTES;
		const uint8_t *record = byu.bytes + i * BC_RECORD_BYTES;
		uint32_t time = bc_le32(record + 8);
		tick += time != BC_TIME_NONE ? time : 0;
		assert_int_equal(bc_le32(row), 0);
		assert_int_equal(bc_le64(row + 4), i);
		assert_int_equal(bc_le64(row + 12), tick);
		assert_memory_equal(row + 20, record, BC_RECORD_BYTES);
	}
	trace_free(&bcp1);
	trace_free(&byu);
	printed_free(&out);
}

/* Absolute ticks, larger than a delta can be; they restart with an epoch. */
TEST(t_is_the_absolute_tick_of_a_boards_samples)
{
	static const uint64_t ticks[] = {7, 9, 0x100000008, 0x100000009, 4};
	static const uint32_t times[] = {BC_TIME_NONE, 2, BC_TIME_NONE, 1, BC_TIME_NONE};
	struct bc_entry entries[5];

	for (size_t i = 0; i < 5; i++)
		entries[i] = entry_at(ticks[i]);
	entries[4].epoch = 1;
	struct printed out = print_entries(entries, 5, BC_FORMAT_BCP1, BC_FORMAT_ROWBINARY, NULL);
	assert_int_equal(out.rc, 0);
	assert_int_equal(reduced_of(&out, BC_TRAIT_TIME), 1);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(bc_le64(out.trace.bytes + i * 32 + 12), ticks[i]);
		assert_int_equal(bc_le32(out.trace.bytes + i * 32 + 28), times[i]);
	}
	printed_free(&out);
}

TEST(without_a_clock_t_counts_entries_from_one)
{
	struct bc_entry entries[3];

	for (unsigned i = 0; i < 3; i++)
		bc_entry_reference(&entries[i], BC_REQ_FETCH, i, i + 1);
	struct printed out = print_entries(entries, 3, BC_FORMAT_DIN, BC_FORMAT_ROWBINARY, NULL);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(bc_le64(out.trace.bytes + i * 32 + 12), i + 1);
	printed_free(&out);
}

TEST(a_value_that_is_too_large_is_an_error)
{
	for (unsigned i = 0; i < 4; i++) {
		static const char *const words[] = {"address 0x100000000 ", "size 0x100 ",
			"processor 0x100 ", "time 0x100000000 "};
		struct bc_entry entries[2] = {entry_at(0), entry_at(1)};
		entries[1].addr = i == 0 ? 0x100000000 : 0;
		entries[1].size = i == 1 ? 256 : 0;
		entries[1].proc = i == 2 ? 256 : 0;
		entries[1].has_delta = i == 3;
		entries[1].delta = entries[1].tick = 0x100000000;
		struct printed out = print_entries(
			entries, 2, BC_FORMAT_BYU24, BC_FORMAT_ROWBINARY, NULL);
		assert_int_equal(out.rc, -ERANGE);
		assert_int_equal(out.refused, 1);
		assert_int_equal(out.trace.n, ROW_BYTES);
		assert_non_null(strstr(out.err, words[i]));
		printed_free(&out);
	}
}
