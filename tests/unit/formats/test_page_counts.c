/* Page counts come back from a file as they were, or coarser; what doesn't add up is refused; and a
 * query never misses a record. */
#include <stdlib.h>
#include <string.h>

#include "formats/bus/describe.h"
#include "formats/trace/filter.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define REGIONS 400u
#define BYTES   (REGIONS * 50)

struct fixture {
	struct dice dice;
	struct bc_page_counts a;
	struct bc_page_counts b;
	struct bc_page_counts read;
	uint8_t bytes[BYTES];
};

static void set_up(struct fixture *f)
{
	f->dice.state = 5;
	assert_int_equal(bc_page_counts_init(&f->a, REGIONS), 0);
	assert_int_equal(bc_page_counts_init(&f->b, REGIONS), 0);
	assert_int_equal(bc_page_counts_init(&f->read, REGIONS), 0);
}

static void tear_down(struct fixture *f)
{
	bc_page_counts_free(&f->a);
	bc_page_counts_free(&f->b);
	bc_page_counts_free(&f->read);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* Adds one place with counts to others. */
static void add_place(struct bc_page_counts *c, uint32_t place, const uint64_t counts[4])
{
	struct bc_region region = {.first = place};
	struct bc_page_counts one = {.count = 1, .capacity = 1, .regions = &region};

	memcpy(region.counts, counts, sizeof(region.counts));
	bc_page_counts_add(c, &one);
}

static uint32_t random_place(struct dice *dice)
{
	switch (dice_below(dice, 4)) {
	case 0:
		return dice_below(dice, 50);
	case 1:
		return BC_PORT_0 + dice_below(dice, BC_PORTS);
	default:
		return dice_below(dice, BC_PORT_0);
	}
}

/* Fills counts with places. Returns the number of records. */
static uint64_t fill(struct dice *dice, struct bc_page_counts *c, unsigned places)
{
	uint64_t records = 0;

	bc_page_counts_clear(c);
	c->is_crossed = dice_below(dice, 2) == 0;
	for (unsigned i = 0; i < places; i++) {
		uint64_t counts[4] = {0};
		unsigned class = dice_below(dice, 4);
		counts[class] = (dice_roll(dice) >> (20 + dice_below(dice, 44))) + 1;
		counts[(class + 1) % 4] = dice_below(dice, 3);
		for (unsigned j = 0; j < 4; j++)
			records += counts[j];
		add_place(c, random_place(dice), counts);
	}
	return records;
}

static uint64_t sum(const struct bc_page_counts *c)
{
	uint64_t records = 0;

	for (uint32_t i = 0; i < c->count; i++)
		for (unsigned j = 0; j < 4; j++)
			records += c->regions[i].counts[j];
	return records;
}

static void assert_sorted(const struct bc_page_counts *c)
{
	assert_true(c->count <= c->capacity);
	for (uint32_t i = 0; i < c->count; i++) {
		uint32_t first = c->regions[i].first;
		unsigned shift = first < BC_PORT_0 ? c->page_shift : c->port_shift;
		assert_int_equal(first & ((1u << shift) - 1), 0);
		assert_true(i == 0 || c->regions[i - 1].first < first);
	}
}

TEST_F(counts_come_back_in_any_room)
{
	unsigned exact = 0;
	unsigned coarse = 0;
	unsigned none = 0;

	for (int round = 0; round < 3000; round += (int)test_stride(5)) {
		uint64_t records = fill(&f->dice, &f->a, 1 + dice_below(&f->dice, REGIONS));
		assert_sorted(&f->a);
		assert_true(sum(&f->a) == records);
		size_t room = dice_below(&f->dice, dice_below(&f->dice, 2) != 0 ? 100 : BYTES);
		size_t bytes = bc_page_counts_write(f->bytes, room, &f->a);
		assert_true(bytes <= room);
		none += bytes == 0;
		if (bytes == 0)
			continue;
		assert_true(bc_page_counts_read(&f->read, f->bytes, bytes, records));
		assert_sorted(&f->read);
		exact += f->read.page_shift == f->a.page_shift &&
			 f->read.port_shift == f->a.port_shift;
		coarse += f->read.page_shift != 0;
		assert_true(bc_page_counts_agree(&f->read, &f->a));
		/* Nothing else agrees: one record more or less, or in another place. */
		f->read.regions[dice_below(&f->dice, f->read.count)]
			.counts[dice_below(&f->dice, 4)]++;
		assert_false(bc_page_counts_agree(&f->read, &f->a));
	}
	unsigned step = test_stride(5);
	assert_true(exact > 500 / step && coarse > 500 / step && none > 30 / step);
}

TEST_F(a_sum_has_the_records_of_both)
{
	for (int round = 0; round < 2000; round += (int)test_stride(5)) {
		uint64_t records = fill(&f->dice, &f->a, dice_below(&f->dice, REGIONS));
		records += fill(&f->dice, &f->b, dice_below(&f->dice, REGIONS));
		bool is_crossed = f->a.is_crossed || f->b.is_crossed;
		bc_page_counts_coarsen(&f->b, dice_below(&f->dice, 21), dice_below(&f->dice, 17));
		bc_page_counts_clear(&f->read);
		bc_page_counts_add(&f->read, &f->a);
		bc_page_counts_add(&f->read, &f->b);
		assert_sorted(&f->read);
		assert_true(sum(&f->read) == records);
		assert_int_equal(f->read.is_crossed, is_crossed);
		/* The same in the other order. */
		bc_page_counts_add(&f->b, &f->a);
		assert_true(bc_page_counts_agree(&f->b, &f->read));
	}
}

TEST_F(every_prefix_and_every_other_number_of_records_is_refused)
{
	uint64_t records = fill(&f->dice, &f->a, 60);
	size_t bytes = bc_page_counts_write(f->bytes, BYTES, &f->a);

	assert_true(bytes > 100);
	for (size_t n = 0; n < bytes; n++)
		assert_false(bc_page_counts_read(&f->read, f->bytes, n, records));
	assert_false(bc_page_counts_read(&f->read, f->bytes, bytes, records - 1));
	assert_false(bc_page_counts_read(&f->read, f->bytes, bytes, records + 1));
	assert_false(bc_page_counts_read(&f->read, f->bytes, bytes, 0));
	assert_int_equal(f->read.count, 0);
	assert_true(bc_page_counts_read(&f->read, f->bytes, bytes, BC_ANY_RECORDS));
}

TEST_F(whatever_a_flipped_bit_leaves_is_consistent)
{
	uint64_t records = fill(&f->dice, &f->a, 60);
	size_t bytes = bc_page_counts_write(f->bytes, BYTES, &f->a);
	unsigned refused = 0;

	for (size_t bit = 0; bit < 8 * bytes; bit++) {
		f->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (bc_page_counts_read(&f->read, f->bytes, bytes, records)) {
			assert_sorted(&f->read);
			assert_true(sum(&f->read) == records);
		} else {
			refused++;
		}
		f->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_true(refused > 4 * bytes);
}

static const struct bad {
	const char *name;
	uint8_t bytes[24];
	size_t n;
	uint64_t records;
} bads[] = {
	{"nothing", {0}, 0, 0},
	{"half a head", {0}, 1, 0},
	{"regions larger than memory", {21, 0, 0x01, 5}, 4, 5},
	{"regions larger than I/O", {0, 17, 0x01, 5}, 4, 5},
	{"a region without classes", {0, 0, 0x00}, 3, 0},
	{"a count of 0", {0, 0, 0x03, 0, 5}, 5, 5},
	{"fewer records", {0, 0, 0x01, 4}, 4, 5},
	{"more records", {0, 0, 0x01, 6}, 4, 5},
	{"more records than 64 bits hold",
		{0, 0, 0x03, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF,
			0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F},
		21, 5},
	{"a number without an end", {0, 0, 0x01, 0x80, 0x80}, 5, 0},
	{"a number of 64 bits",
		{0, 0, 0x01, 0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 13, 5},
	{"a region beyond the last port", {20, 16, 0x21, 5}, 4, 5},
	{"two regions beyond", {20, 16, 0x11, 5, 0x01, 5}, 6, 10},
	{"more regions than there is room for", {0, 0, 0x01, 1, 0x01, 1, 0x01, 1}, 8, 3},
};

TEST_CASES(invalid_counts_are_refused, bads)
{
	struct bc_region regions[2];
	struct bc_page_counts counts = {.capacity = 2, .regions = regions};

	assert_false(bc_page_counts_read(&counts, c->bytes, c->n, c->records));
	assert_int_equal(counts.count, 0);
}

TEST(the_documented_example_is_read)
{
	/* Pages 0 (3 fetches) and 2 (1 read, 200 writes), port 0x80 (1 write). */
	static const uint8_t bytes[] = {
		0, 0, 0x01, 3, 0x16, 1, 0xC8, 0x01, 0xD4, 0x8F, 0x80, 0x08, 1};
	struct bc_region regions[3];
	struct bc_page_counts counts = {.capacity = 3, .regions = regions};

	assert_true(bc_page_counts_read(&counts, bytes, sizeof(bytes), 205));
	assert_int_equal(counts.count, 3);
	assert_int_equal(regions[0].counts[BC_PAGE_FETCH], 3);
	assert_int_equal(regions[1].first, 2);
	assert_int_equal(regions[1].counts[BC_PAGE_READ], 1);
	assert_int_equal(regions[1].counts[BC_PAGE_WRITE], 200);
	assert_int_equal(regions[2].first, BC_PORT_0 + 0x80);
	assert_int_equal(regions[2].counts[BC_PAGE_WRITE], 1);
}

/* A filter decides for each record; the counts, as coarse as can be, must never rule one out. */
TEST_F(a_query_never_misses_a_record)
{
	static const uint8_t sizes[] = {0, 1, 2, 4, 8, 16, 32, 3, 255};
	static const uint8_t types[] = {0, 1, 2, 3, 0x10, 0x11, 0x21, 0xF3};
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	struct bc_chunk_pages *pages = malloc(sizeof(*pages));
	unsigned ruled_out = 0;
	unsigned has = 0;

	assert_true(chunk != NULL && pages != NULL);
	for (int round = 0; round < 20000; round++) {
		struct bc_filter filter;
		struct bc_page_query query;
		uint64_t ticks;
		uint32_t base = dice_below(&f->dice, 3) == 0 ? UINT32_MAX - 9000
							     : dice_below(&f->dice, 1u << 18);
		bc_chunk_reset(chunk, 0, 0);
		chunk->info.records = 1 + dice_below(&f->dice, 3);
		for (uint32_t i = 0; i < chunk->info.records; i++)
			bc_record_store(chunk->records + (size_t)i * BC_RECORD_BYTES,
				&(struct bc_record){.addr = base + dice_below(&f->dice, 9000),
					.reqtype = types[dice_below(&f->dice, sizeof(types))],
					.size = sizes[dice_below(&f->dice, sizeof(sizes))]});
		bc_chunk_describe(chunk, pages);
		bc_page_counts_coarsen(&pages->counts,
			dice_below(&f->dice, 2) * dice_below(&f->dice, 21),
			dice_below(&f->dice, 2) * dice_below(&f->dice, 17));

		bc_filter_init(&filter);
		filter.has_addr = true;
		filter.addr.first = (uint64_t)base + dice_below(&f->dice, 9000);
		filter.addr.last = filter.addr.first +
				   dice_below(&f->dice, 300) * dice_below(&f->dice, 300);
		if (dice_below(&f->dice, 3) == 0) { /* a region: two parts of the addresses */
			filter.ranges_count = 2;
			filter.memory_count = dice_below(&f->dice, 3);
			filter.ranges[0] = filter.ranges[1] = filter.addr;
			filter.ranges[0].last -= dice_below(
				&f->dice, (uint32_t)(filter.addr.last - filter.addr.first) + 1);
			filter.ranges[1].first = filter.ranges[0].last;
		}
		for (unsigned n = dice_below(&f->dice, 3); n != 0; n--)
			bc_filter_add_type(&filter, types[dice_below(&f->dice, sizeof(types))]);
		assert_true(bc_filter_page_query(&filter, &query));
		uint64_t matches = bc_filter_records(
			&filter, chunk->records, chunk->info.records, &ticks);
		bool may_have = bc_page_counts_may_have(&pages->counts, &query);
		assert_true(may_have || matches == 0);
		ruled_out += !may_have;
		has += matches != 0;
	}
	assert_true(ruled_out > 4000 && has > 1000);
	free(pages);
	free(chunk);
}
