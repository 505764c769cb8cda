#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/stats/footprint.h"
#include "formats/bus/record.h"
#include "formats/codec/reader.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

static struct bc_footprint open_footprint(uint64_t line, uint64_t page, uint64_t memory)
{
	struct bc_footprint_options options = {
		.line_bytes = line, .page_bytes = page, .memory_bytes = memory};
	struct bc_footprint f;

	assert_int_equal(bc_footprint_open(&f, &options), 0);
	return f;
}

static void add_reference(struct bc_footprint *f, unsigned type, uint64_t addr, uint32_t size)
{
	struct bc_entry entry;

	bc_entry_reference(&entry, type, addr, 0);
	entry.traits = size != 0 ? BC_TRAIT_SIZE : 0;
	entry.size = size;
	bc_footprint_reference(f, &entry);
}

TEST(sizes_other_than_powers_of_two_are_refused)
{
	static const uint64_t bad[][2] = {{0, 4096}, {32, 0}, {33, 4096}, {32, 4095}, {64, 32}};

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		struct bc_footprint_options options = {
			.line_bytes = bad[i][0], .page_bytes = bad[i][1], .memory_bytes = 1 << 20};
		struct bc_footprint f;
		assert_int_equal(bc_footprint_open(&f, &options), -EINVAL);
		bc_footprint_close(&f);
	}
}

TEST(each_way_of_touching_a_line_is_counted)
{
	struct bc_footprint f = open_footprint(32, 4096, 1 << 20);

	add_reference(&f, BC_REQ_MEMREAD, 0x1000, 8);
	add_reference(&f, BC_REQ_MEMWRITE, 0x1008, 8); /* the same line */
	add_reference(&f, BC_REQ_FETCH, 0x2000, 4);
	add_reference(&f, BC_REF_MODIFY, 0x2020, 4);
	add_reference(
		&f, BC_REF_MISC, 0x3000, 4); /* touched, but neither read, written nor fetched */
	add_reference(&f, BC_REQ_MEMREADINV, 0x2000, 4);
	add_reference(&f, BC_REF_COPYBACK, 0x4000, 4);
	add_reference(&f, BC_REQ_IOREAD, 0x5000, 4);
	add_reference(&f, BC_REQ_DEFERREPLY, 0x6000, 0);
	assert_int_equal(f.references, 7);
	assert_int_equal(f.others, 2);
	assert_int_equal(f.lines.count, 5);
	assert_int_equal(f.pages.count, 4);
	assert_int_equal(bc_line_table_count(&f.lines, BC_TOUCH_READ), 3);
	assert_int_equal(bc_line_table_count(&f.lines, BC_TOUCH_WRITE), 3);
	assert_int_equal(bc_line_table_count(&f.lines, BC_TOUCH_FETCH), 1);
	assert_int_equal(bc_line_table_count(&f.pages, BC_TOUCH_READ), 2);
	assert_int_equal(bc_line_table_count(&f.pages, BC_TOUCH_WRITE), 3);
	assert_int_equal(bc_line_table_count(&f.pages, BC_TOUCH_FETCH), 1);
	assert_int_equal(f.addr_low, 0x1000);
	assert_int_equal(f.addr_high, 0x4003);
	bc_footprint_close(&f);
}

TEST(a_reference_touches_every_line_it_spans)
{
	struct bc_footprint f = open_footprint(32, 64, 1 << 20);

	add_reference(&f, BC_REQ_MEMREAD, 0x101F, 2);
	assert_int_equal(f.lines.count, 2);
	assert_int_equal(f.pages.count, 1);
	add_reference(&f, BC_REQ_MEMREAD, 0x2001, 255);
	assert_int_equal(f.lines.count, 10);
	assert_int_equal(f.pages.count, 5);
	add_reference(&f, BC_REQ_MEMREAD, UINT64_MAX - 3, 100); /* cut at the last address */
	assert_int_equal(f.lines.count, 11);
	assert_int_equal(f.addr_high, UINT64_MAX);
	add_reference(&f, BC_REQ_MEMREAD, UINT64_MAX, 0);
	assert_int_equal(f.lines.count, 11);
	assert_int_equal(f.touches, 12);
	assert_int_equal(f.first, 11);
	assert_int_equal(f.reuse[0], 1);
	assert_false(f.is_cut);
	bc_footprint_close(&f);
}

TEST(a_reference_with_too_many_lines_gives_a_lower_bound)
{
	struct bc_footprint f = open_footprint(1, 1, 100 << 20);

	add_reference(&f, BC_REQ_MEMREAD, 0, BC_FOOTPRINT_LINES_MAX);
	assert_false(f.is_cut);
	assert_int_equal(f.lines.count, BC_FOOTPRINT_LINES_MAX);
	add_reference(&f, BC_REQ_MEMREAD, 0, UINT32_MAX);
	assert_true(f.is_cut);
	assert_int_equal(f.lines.count, BC_FOOTPRINT_LINES_MAX);
	bc_footprint_close(&f);
}

TEST(a_burst_touches_its_aligned_block)
{
	struct bc_footprint f = open_footprint(32, 4096, 64 << 20);
	struct bc_record record = {.addr = 0x1018, .reqtype = BC_REQ_MEMREAD, .size = 32};
	uint8_t bytes[BC_RECORD_BYTES];

	bc_record_store(bytes, &record);
	bc_footprint_records(&f, bytes, 1);
	assert_int_equal(f.lines.count, 1);
	assert_int_equal(f.addr_low, 0x1000);
	assert_int_equal(f.addr_high, 0x101F);
	/* The bytes of an access by a program start at its address. */
	add_reference(&f, BC_REQ_MEMREAD, 0x1018, 32);
	assert_int_equal(f.lines.count, 2);
	bc_footprint_close(&f);
}

/* Each is used twice in a row and again much later. One space too many is reported as untracked. */
TEST(address_spaces_up_to_the_limit_are_counted_separately)
{
	struct bc_footprint f = open_footprint(32, 4096, UINT64_C(2) << 30);
	struct bc_entry entry;

	bc_entry_reference(&entry, BC_REQ_MEMREAD, 0x1000, 1);
	entry.traits = BC_TRAIT_SPACE;
	for (unsigned i = 0; i < 2 * BC_LINE_SPACES; i++) {
		entry.space = i % BC_LINE_SPACES << 16 | i % BC_LINE_SPACES >> 4;
		bc_footprint_reference(&f, &entry);
		bc_footprint_reference(&f, &entry);
	}
	assert_int_equal(f.lines.count, BC_LINE_SPACES);
	assert_int_equal(f.untracked, 0);
	entry.space = 0x12345678;
	bc_footprint_reference(&f, &entry);
	assert_int_equal(f.untracked, 1);
	assert_int_equal(f.lines.count, BC_LINE_SPACES);
	bc_footprint_close(&f);
}

#define SMALL_LINES  3
#define SMALL_LENGTH 6

/* Finds by looking back how many references ago each line was touched. */
static void check_small(const unsigned *lines, unsigned n)
{
	struct bc_footprint f = open_footprint(32, 4096, 1 << 20);
	uint64_t reuse[8] = {0};
	uint64_t first = 0;

	for (unsigned i = 0; i < n; i++) {
		unsigned back = 1;
		unsigned bucket = 0;
		add_reference(&f, BC_REQ_MEMREAD, lines[i] * UINT64_C(32), 4);
		while (back <= i && lines[i - back] != lines[i])
			back++;
		while ((1u << bucket) < back)
			bucket++;
		if (back > i)
			first++;
		else
			reuse[bucket]++;
	}
	assert_int_equal(f.first, first);
	for (unsigned k = 0; k < 8; k++)
		assert_int_equal(f.reuse[k], reuse[k]);
	bc_footprint_close(&f);
}

TEST(reuse_of_every_small_trace_matches_a_search)
{
	for (unsigned n = 0; n <= SMALL_LENGTH; n++) {
		unsigned all = 1;
		for (unsigned i = 0; i < n; i++)
			all *= SMALL_LINES;
		for (unsigned code = 0; code < all; code++) {
			unsigned lines[SMALL_LENGTH];
			for (unsigned i = 0, rest = code; i < n; i++, rest /= SMALL_LINES)
				lines[i] = rest % SMALL_LINES;
			check_small(lines, n);
		}
	}
}

/* Counts the lines, or blocks of several, in each window of w references, one by one. */
static double windows_of(const unsigned *lines, unsigned n, unsigned w, unsigned each)
{
	unsigned sum = 0;

	for (unsigned start = 0; start + w <= n; start++) {
		unsigned seen = 0;
		for (unsigned i = start; i < start + w; i++)
			seen |= 1u << lines[i] / each;
		sum += (unsigned)__builtin_popcount(seen);
	}
	return (double)sum / (double)(n - w + 1);
}

TEST(working_sets_of_every_small_trace_match_all_windows)
{
	const struct bc_footprint_options options = {.line_bytes = 1 << 20,
		.page_bytes = 1 << 21,
		.memory_bytes = 1 << 14,
		.has_working_set = true};

	for (unsigned code = 0; code < 4 * 4 * 4 * 4 * 4 * 4; code++) {
		unsigned lines[SMALL_LENGTH];
		struct bc_footprint f;
		assert_int_equal(bc_footprint_open(&f, &options), 0);
		for (unsigned i = 0; i < SMALL_LENGTH; i++) {
			lines[i] = code >> (2 * i) & 3;
			add_reference(&f, BC_REQ_MEMREAD, (uint64_t)lines[i] << 20, 4);
		}
		bc_footprint_finish(&f);
		for (unsigned k = 0; 1u << k <= SMALL_LENGTH; k++) {
			double line_error = bc_footprint_working_set(&f, &f.lines, k) -
					    windows_of(lines, SMALL_LENGTH, 1u << k, 1);
			double page_error = bc_footprint_working_set(&f, &f.pages, k) -
					    windows_of(lines, SMALL_LENGTH, 1u << k, 2);
			assert_true(line_error < 1e-9 && line_error > -1e-9);
			assert_true(page_error < 1e-9 && page_error > -1e-9);
		}
		bc_footprint_close(&f);
	}
}

#define SET_RECORDS 1500

/* Blocks that were touched, in a list: an independent count. */
struct block_set {
	struct {
		uint64_t block;
		uint64_t last;
		unsigned touch;
	} blocks[2 * SET_RECORDS];
	size_t count;
};

/* Adds a touch. Returns the number of the block's previous touch, or 0. */
static uint64_t set_touch(struct block_set *set, uint64_t block, unsigned touch, uint64_t number)
{
	size_t i = 0;

	while (i < set->count && set->blocks[i].block != block)
		i++;
	if (i == set->count) {
		assert_true(i < COUNT_OF(set->blocks));
		memset(&set->blocks[set->count++], 0, sizeof(set->blocks[0]));
	}
	uint64_t before = set->blocks[i].last;
	set->blocks[i].block = block;
	set->blocks[i].last = number;
	set->blocks[i].touch |= touch;
	return before;
}

static void assert_set(const struct block_set *set, const struct bc_line_table *table)
{
	uint64_t touched[BC_TOUCH_ALL + 1] = {0};

	for (size_t i = 0; i < set->count; i++)
		touched[set->blocks[i].touch]++;
	assert_int_equal(table->count, set->count);
	assert_memory_equal(table->touched, touched, sizeof(touched));
}

enum { RANDOM, SEQUENTIAL, SPARSE, WRAPPING, PATTERNS };

static uint32_t addr_of(unsigned pattern, unsigned i, struct dice *dice)
{
	switch (pattern) {
	case SEQUENTIAL:
		return 0x10000 + i / 2 * 8;
	case SPARSE:
		return i % 700 * 0x00400000 + i % 3 * 4;
	case WRAPPING:
		return 0xFFFFF000u + i * 24; /* wraps around to 0 */
	default:
		return dice_below(dice, 1u << 14);
	}
}

static void check_set(unsigned pattern, unsigned line_shift, unsigned page_shift)
{
	static struct block_set lines, pages;
	static uint8_t records[SET_RECORDS * BC_RECORD_BYTES];
	struct bc_footprint f = open_footprint(
		UINT64_C(1) << line_shift, UINT64_C(1) << page_shift, 64 << 20);
	uint64_t reuse[BC_REUSE_BUCKETS] = {0};
	uint64_t touches = 0;
	struct dice dice = {pattern + 1};

	lines.count = pages.count = 0;
	for (unsigned i = 0; i < SET_RECORDS; i++) {
		static const uint8_t types[] = {BC_REQ_FETCH, BC_REQ_MEMREAD, BC_REQ_MEMWRITE};
		static const unsigned ways[] = {BC_TOUCH_FETCH, BC_TOUCH_READ, BC_TOUCH_WRITE};
		static const uint8_t sizes[] = {0, 1, 4, 8, 16, 32};
		unsigned type = dice_below(&dice, 3);
		uint64_t addr = addr_of(pattern, i, &dice);
		/* A byte per line takes a list that is too long. */
		uint8_t size = line_shift == 0 ? 1 : sizes[dice_below(&dice, 6)];
		struct bc_record record = {
			.addr = (uint32_t)addr, .reqtype = types[type], .size = size};
		bc_record_store(records + i * BC_RECORD_BYTES, &record);
		if (size >= 16)
			addr -= addr % size;
		uint64_t last = addr + (size > 1 ? size - 1 : 0);
		for (uint64_t line = addr >> line_shift; line <= last >> line_shift; line++) {
			uint64_t before = set_touch(&lines, line, ways[type], i + 1);
			unsigned bucket = 0;
			while (before != 0 && (UINT64_C(1) << bucket) < i + 1 - before)
				bucket++;
			reuse[bucket] += before != 0;
			touches++;
			set_touch(&pages, line >> (page_shift - line_shift), ways[type], 1);
		}
	}
	bc_footprint_records(&f, records, SET_RECORDS);
	assert_int_equal(f.references, SET_RECORDS);
	assert_int_equal(f.touches, touches);
	assert_int_equal(f.first, lines.count);
	assert_memory_equal(f.reuse, reuse, sizeof(reuse));
	assert_set(&lines, &f.lines);
	assert_set(&pages, &f.pages);
	bc_footprint_close(&f);
}

TEST(footprint_and_reuse_match_a_list_of_blocks)
{
	for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
		check_set(pattern, 32, 32); /* longer than the address space */
		check_set(pattern, 33, 63);
		for (unsigned line = 0; line <= 12; line += line < 4 ? 4 : 1)
			for (unsigned page = line; page <= 31; page += 9)
				check_set(pattern, line, page);
	}
}

TEST(records_and_entries_count_the_same)
{
	static const uint8_t types[] = {BC_REQ_FETCH, BC_REQ_MEMREAD, BC_REQ_MEMREADINV,
		BC_REQ_MEMWRITE, BC_REQ_IOWRITE, BC_REQ_DEFERREPLY, 0xF4};
	struct bc_footprint a = open_footprint(32, 4096, 64 << 20);
	struct bc_footprint b = open_footprint(32, 4096, 64 << 20);
	uint8_t *records = malloc(20000 * BC_RECORD_BYTES);
	struct dice dice = {77};

	assert_non_null(records);
	for (size_t i = 0; i < 20000; i++) {
		struct bc_record record = {
			.addr = i % 100 == 0 ? 0xFFFFFFF0u : dice_below(&dice, 1u << 19),
			.reqtype = types[dice_below(&dice, sizeof(types))],
			.size = (uint8_t)(i % 3 == 0 ? 32 : dice_roll(&dice))};
		struct bc_entry entry;
		bc_record_store(records + i * BC_RECORD_BYTES, &record);
		bc_entry_of_record(&entry, records + i * BC_RECORD_BYTES, i, i);
		bc_footprint_reference(&b, &entry);
	}
	bc_footprint_records(&a, records, 20000);
	assert_int_equal(a.references, b.references);
	assert_int_equal(a.others, b.others);
	assert_int_equal(a.touches, b.touches);
	assert_int_equal(a.first, b.first);
	assert_int_equal(a.lines.count, b.lines.count);
	assert_int_equal(a.first, a.lines.count);
	assert_memory_equal(a.reuse, b.reuse, sizeof(a.reuse));
	assert_memory_equal(a.lines.touched, b.lines.touched, sizeof(a.lines.touched));
	assert_memory_equal(a.pages.touched, b.pages.touched, sizeof(a.pages.touched));
	free(records);
	bc_footprint_close(&a);
	bc_footprint_close(&b);
}

TEST(memory_is_bounded_and_overflow_is_reported)
{
	for (uint64_t memory = 0; memory <= 600000; memory = memory * 2 + 1000) {
		struct bc_footprint f = open_footprint(32, 4096, memory);
		for (uint64_t i = 0; i < 100000; i++)
			add_reference(&f, BC_REQ_MEMREAD, i * 32, 4);
		assert_true(f.lines_full);
		assert_int_equal(f.lines.count + f.untracked, 100000);
		assert_int_equal(f.first, f.lines.count);
		assert_true(f.lines.count * 8 <= memory + 1024);
		/* Lines already in the table are still found. */
		add_reference(&f, BC_REQ_MEMREAD, 0, 4);
		assert_int_equal(f.reuse[17], 1);
		bc_footprint_close(&f);
	}
}
