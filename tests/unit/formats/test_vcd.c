#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/format_id.h"
#include "tests/support/dice.h"
#include "tests/support/printed.h"
#include "tests/support/test.h"

#define TIMED (BC_TRAIT_REFERENCE | BC_TRAIT_TIME | BC_TRAIT_SIZE | BC_TRAIT_ATTR)
#define UNITS (TIMED | BC_TRAIT_INSTRUCTION | BC_TRAIT_REGISTER)

#define VARIABLES                           \
	" $end\n"                           \
	"$scope module bus $end\n"          \
	"$var wire 64 = seq [63:0] $end\n"  \
	"$var wire 64 > addr [63:0] $end\n" \
	"$var wire 9 ? type [8:0] $end\n"   \
	"$var string 1 C name $end\n"       \
	"$var wire 32 @ size [31:0] $end\n" \
	"$var wire 8 A attr [7:0] $end\n"   \
	"$var wire 16 B proc [15:0] $end\n" \
	"$upscope $end\n"                   \
	"$enddefinitions $end\n"

static struct printed print_vcd(
	bc_traits traits, uint64_t clock_hz, const struct bc_entry *entries, size_t count)
{
	struct bc_format_options options = bc_format_options_default();

	options.source_traits = traits;
	options.clock_hz = clock_hz;
	return print_all(BC_FORMAT_VCD, &options, entries, count);
}

/* The dump after its head. */
static const char *body(const struct printed *all)
{
	const char *end = strstr(all->text, "$enddefinitions $end\n");

	assert_non_null(end);
	return end + 21;
}

static struct bc_entry at_tick(uint64_t tick)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, BC_REQ_MEMREAD, 0x10, 0);
	entry.traits = BC_TRAIT_TIME;
	entry.tick = tick;
	return entry;
}

/* Collects the times of the dump. Returns their number. */
static size_t times_of(const struct printed *all, uint64_t *times, size_t room)
{
	size_t n = 0;

	for (const char *at = body(all); (at = strchr(at, '#')) != NULL; at++) {
		if (at[-1] != '\n' || at[1] < '0' || at[1] > '9')
			continue;
		assert_true(n < room);
		assert_int_equal(sscanf(at + 1, "%" SCNu64, &times[n++]), 1);
	}
	return n;
}

static void check_times(
	const struct printed *all, const uint64_t *expected, size_t count, uint64_t lost)
{
	uint64_t times[16];

	assert_int_equal(all->rc, 0);
	assert_int_equal(times_of(all, times, 16), count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(times[i], expected[i]);
	assert_int_equal(all->trait_losses[__builtin_ctz(BC_TRAIT_TIME)], lost);
}

#define CHECK_TIMES(all, lost, ...)                       \
	check_times(all, (const uint64_t[]){__VA_ARGS__}, \
		sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), lost)

TEST(only_changes_are_written)
{
	struct bc_entry entries[4] = {at_tick(5), at_tick(7), at_tick(8), at_tick(1000)};

	for (int i = 0; i < 4; i++) {
		entries[i].traits |= BC_TRAIT_SIZE | BC_TRAIT_ATTR;
		entries[i].size = 8;
		entries[i].attr = 3;
	}
	entries[1].type = BC_REQ_MEMWRITE;
	entries[2].type = 0xF2;
	entries[2].addr = UINT64_MAX;
	entries[2].traits &= ~(uint32_t)BC_TRAIT_SIZE;
	entries[3].type = BC_REF_INVALIDATE;
	entries[3].size = UINT32_MAX;
	entries[3].proc = 0xFFFF;
	entries[3].traits |= BC_TRAIT_PROC;
	entries[3].addr = 0;
	struct printed all = print_vcd(TIMED, 0, entries, 4);
	assert_string_equal(all.text,
		"$comment\n\tunknown clock rate: a tick is shown as 1 ns\n$end\n"
		"$timescale 1 ns" VARIABLES "$comment time 0 is tick 5 $end\n"
		"#0\nb0 =\nb10000 >\nb1 ?\nsMEMREAD C\nb1000 @\nb11 A\n"
		"#2\nb1 =\nb11 ?\nsMEMWRITE C\n"
		"#3\nb10 =\nb1111111111111111111111111111111111111111111111111111111111111111 "
		">\nb11110010 ?\ns0xf2 C\nbx @\n"
		"#995\nb11 =\nb0 >\nb100000100 ?\nsINVALIDATE C\n"
		"b11111111111111111111111111111111 @\nb1111111111111111 B\n"
		"#996\n");
	for (unsigned i = 0; i < BC_TRAIT_BITS; i++)
		assert_int_equal(all.trait_losses[i], 0);
	printed_free(&all);
}

TEST(an_empty_dump_is_only_a_head)
{
	struct printed all = print_vcd(TIMED, 50000000, NULL, 0);
	assert_string_equal(all.text, "$comment\n\t50000000 ticks per second; times are rounded "
				      "down to picoseconds\n$end\n"
				      "$timescale 1 ps" VARIABLES);
	printed_free(&all);
}

TEST(without_times_each_reference_takes_one_tick)
{
	struct bc_entry entries[3] = {at_tick(0), at_tick(0), at_tick(0)};

	for (int i = 0; i < 3; i++)
		entries[i].traits = 0;
	struct printed all = print_vcd(BC_TRAIT_REFERENCE, 0, entries, 3);
	CHECK_TIMES(&all, 0, 0, 1, 2, 3);
	assert_non_null(strstr(all.text, "the trace has no times: each reference is one tick "));
	printed_free(&all);
	all = print_vcd(BC_TRAIT_REFERENCE, 1000000, entries, 3);
	CHECK_TIMES(&all, 0, 0, 1000000, 2000000, 3000000);
	printed_free(&all);
}

TEST(an_entry_without_a_time_has_that_of_the_previous_one)
{
	struct bc_entry entries[3] = {at_tick(6), at_tick(0), at_tick(9)};

	entries[1].traits = 0;
	struct printed all = print_vcd(TIMED, 0, entries, 3);
	CHECK_TIMES(&all, 0, 0, 3, 4);
	assert_int_equal(all.trait_losses[__builtin_ctz(BC_TRAIT_REFERENCE)], 1);
	printed_free(&all);
}

TEST(simultaneous_references_are_counted)
{
	struct bc_entry entries[4] = {at_tick(6), at_tick(6), at_tick(6), at_tick(7)};

	struct printed all = print_vcd(TIMED, 0, entries, 4);
	CHECK_TIMES(&all, 0, 0, 1, 2);
	assert_int_equal(all.trait_losses[__builtin_ctz(BC_TRAIT_REFERENCE)], 2);
	assert_non_null(strstr(all.text, "#1\nb11 =\n"));
	printed_free(&all);
}

TEST(after_a_time_that_goes_back_the_dump_continues)
{
	struct bc_entry entries[5] = {
		at_tick(100), at_tick(110), at_tick(3), at_tick(8), at_tick(20)};

	struct printed all = print_vcd(TIMED, 0, entries, 5);
	CHECK_TIMES(&all, 1, 0, 10, 11, 16, 28, 29);
	printed_free(&all);
}

TEST(times_are_exact_to_the_picosecond_at_any_time)
{
	static const uint64_t clocks[] = {
		1, 3, 7, 66666666, 66666667, 100000000, 133333333, 999999999999, 1000000000000};
	struct dice dice = {6};

	for (int round = 0; round < 20000; round++) {
		uint64_t hz = clocks[dice_below(&dice, 9)];
		uint64_t seconds = dice_below(&dice, 9223372);
		uint64_t rest = dice_roll(&dice) % hz;
		struct bc_entry entries[2] = {at_tick(0), at_tick(seconds * hz + rest)};
		uint64_t times[3];
		/* The picoseconds of the remainder, one decimal digit at a time, in 64 bits. */
		uint64_t ps = 0;
		uint64_t left = rest;
		for (int digit = 0; digit < 12; digit++) {
			left *= 10;
			ps = ps * 10 + left / hz;
			left %= hz;
		}
		if (seconds > (UINT64_MAX - rest) / hz || seconds * hz + rest == 0)
			continue;
		struct printed all = print_vcd(TIMED, hz, entries, 2);
		assert_int_equal(all.rc, 0);
		assert_int_equal(times_of(&all, times, 3), 3);
		assert_int_equal(times[1], seconds * UINT64_C(1000000000000) + ps);
		printed_free(&all);
	}
}

TEST(a_time_above_63_bits_is_refused)
{
	struct bc_entry entries[2] = {at_tick(0), at_tick(INT64_MAX)};

	struct printed all = print_vcd(TIMED, 0, entries, 2);
	CHECK_TIMES(&all, 0, 0, INT64_MAX);
	printed_free(&all);
	entries[1].tick++;
	all = print_vcd(TIMED, 0, entries, 2);
	assert_int_equal(all.rc, -ERANGE);
	assert_int_equal(all.left, 1);
	assert_string_equal(all.err, "time 9223372036854775808 doesn't fit in 63 bits of "
				     "ns, the limit of viewers");
	printed_free(&all);
	entries[1].tick = UINT64_MAX;
	all = print_vcd(TIMED, 1, entries, 2);
	assert_int_equal(all.rc, -ERANGE);
	printed_free(&all);
	/* 2^63 ps are 9223372.036854775808 s. */
	entries[1].tick = UINT64_C(9223372036854775);
	all = print_vcd(TIMED, 1000000000, entries, 2);
	CHECK_TIMES(&all, 0, 0, UINT64_C(9223372036854775000));
	printed_free(&all);
	entries[1].tick++;
	all = print_vcd(TIMED, 1000000000, entries, 2);
	assert_int_equal(all.rc, -ERANGE);
	printed_free(&all);
}

TEST(named_units_keep_their_meaning)
{
	static const uint8_t units[] = {
		BC_UNIT_PS, BC_UNIT_NS, BC_UNIT_US, BC_UNIT_CLK, BC_UNIT_TICK, BC_UNIT_CYC};
	struct bc_entry entries[6];

	for (unsigned i = 0; i < 6; i++) {
		entries[i] = at_tick(i < 2 ? 3 : i + 3);
		entries[i].unit = units[i];
	}
	entries[3].tick = 6000;
	entries[4].tick = 7000;
	entries[5].tick = 8000;
	struct printed all = print_vcd(UNITS, 0, entries, 6);
	CHECK_TIMES(&all, 0, 0, 2997, 4999997, 5999997, 6999997, 7999997, 8000997);
	assert_non_null(strstr(all.text, "shown as 1 ns; times in us, ns or ps are unchanged\n"));
	printed_free(&all);
	all = print_vcd(UNITS, 500000000, entries, 6);
	CHECK_TIMES(&all, 0, 0, 2997, 4999997, 11999997, 13999997, 15999997, 16001997);
	printed_free(&all);
}

static struct bc_entry event_at(uint64_t tick, unsigned kind, const char *text)
{
	struct bc_entry entry = at_tick(tick);

	entry.kind = BC_ENTRY_EVENT;
	entry.traits = 0;
	entry.note.event = (struct bc_event){.kind = (uint8_t)kind,
		.cause = BC_GAP_BOARD,
		.exact = true,
		.value = kind == BC_EVENT_GAP ? 20 : 0};
	entry.note.text = text_of(text);
	return entry;
}

TEST(each_processor_has_a_scope_and_a_gap_makes_all_unknown)
{
	struct bc_entry entries[6] = {at_tick(5), at_tick(5), at_tick(6),
		event_at(20, BC_EVENT_GAP, ""), event_at(20, BC_EVENT_MARK, "a b"), at_tick(20)};
	static const uint16_t procs[] = {0, 1, 300, 0, 0, 1};

	for (int i = 0; i < 6; i++) {
		entries[i].traits |= entries[i].kind == BC_ENTRY_REFERENCE ? BC_TRAIT_PROC : 0;
		entries[i].proc = procs[i];
	}
	struct printed all = print_vcd(TIMED | BC_TRAIT_PROC | BC_TRAIT_EVENT, 0, entries, 6);
	assert_non_null(strstr(all.text, "$scope module processor1 $end\n"
					 "$var wire 64 ( seq [63:0] $end\n"));
	assert_non_null(strstr(all.text, "$scope module others $end\n"
					 "$var wire 64 = seq [63:0] $end\n"));
	assert_string_equal(body(&all), "$comment time 0 is tick 5 $end\n#0\n0x\n0y\n0z\nb0 w\n"
					"b0 !\nb10000 \"\nb1 #\nsMEMREAD '\n"
					"b1 (\nb10000 )\nb1 *\nsMEMREAD .\n"
					"#1\nb10 =\nb10000 >\nb1 ?\nsMEMREAD C\nb100101100 B\n"
					"#2\nbx !\nbx \"\ns '\nbx #\nbx (\nbx )\ns .\nbx *\n"
					"bx =\nbx >\ns C\nbx ?\nbx B\n1x\nb10100 w\nsboard v\n"
					"#15\n1y\nsa\\040b v\n"
					"b11 (\nb10000 )\nb1 *\nsMEMREAD .\n#16\n");
	assert_int_equal(all.trait_losses[__builtin_ctz(BC_TRAIT_REFERENCE)], 0);
	printed_free(&all);
}

/* A gap begins after the entry before it; a clock that restarts ahead continues there, too. */
TEST(each_event_toggles_its_bit_and_losses_add_up)
{
	struct bc_entry entries[] = {at_tick(5), event_at(9, BC_EVENT_GAP, ""),
		event_at(9, BC_EVENT_GAP, ""), event_at(12, BC_EVENT_NOTE, "a\\b"),
		event_at(1000, BC_EVENT_MARK, "c"), at_tick(1000), at_tick(1003)};

	for (size_t i = 4; i < COUNT_OF(entries); i++)
		entries[i].epoch = 1;
	struct printed all = print_vcd(TIMED | BC_TRAIT_EVENT, 0, entries, COUNT_OF(entries));
	assert_string_equal(body(&all), "$comment time 0 is tick 5 $end\n#0\n0x\n0y\n0z\nb0 w\n"
					"b0 =\nb10000 >\nb1 ?\nsMEMREAD C\n"
					"#1\nbx =\nbx >\ns C\nbx ?\n1x\nb10100 w\nsboard v\n"
					"#2\n0x\nb101000 w\nsboard v\n"
					"#7\n1y\nsa\\134b v\n#8\n0y\nsc v\n"
					"#9\nb1 =\nb10000 >\nb1 ?\nsMEMREAD C\n#12\nb10 =\n#13\n");
	assert_int_equal(all.trait_losses[__builtin_ctz(BC_TRAIT_TIME)], 1);
	printed_free(&all);
}
