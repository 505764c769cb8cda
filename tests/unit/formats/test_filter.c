/* Compares the three levels of the filter with a straightforward implementation. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "formats/bus/describe.h"
#include "formats/codec/reader.h"
#include "formats/trace/filter.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

static struct bc_chunk_pages chunk_pages;

#define RECORDS 200u

/* Records with few addresses, types and processors, so that filters match some. */
static void make_chunk(struct dice *dice, struct bc_chunk *chunk)
{
	uint32_t base = dice_below(dice, 3) == 0 ? UINT32_MAX - 2000 : dice_below(dice, 5000);

	bc_chunk_reset(chunk, dice_below(dice, 100000), dice_below(dice, 3));
	chunk->info.records = 1 + dice_below(dice, RECORDS);
	chunk->info.first_record = dice_below(dice, 1000);
	chunk->info.wall_ns = 1000000000 + dice_below(dice, 1000000);
	uint64_t tick = chunk->info.first_tick;
	for (uint32_t i = 0; i < chunk->info.records; i++) {
		struct bc_record r = {.addr = base + dice_below(dice, 2000) * 53,
			.reqtype = (uint8_t)(dice_below(dice, 4) + 16 * dice_below(dice, 2)),
			.size = (uint8_t)dice_below(dice, dice_below(dice, 8) == 0 ? 256 : 33),
			.proc = (uint8_t)(dice_below(dice, 4) * 67),
			.time = dice_below(dice, 50)};
		tick += i != 0 ? r.time : 0;
		bc_record_store(chunk->records + i * BC_RECORD_BYTES, &r);
	}
	chunk->info.last_tick = tick;
	bc_chunk_describe(chunk, &chunk_pages);
}

/* Everything, or a random span near [low, low + range). */
static struct bc_span random_span(struct dice *dice, uint64_t low, uint32_t range)
{
	uint64_t a = low + dice_below(dice, range);

	if (dice_below(dice, 3) == 0)
		return (struct bc_span){0, UINT64_MAX};
	return (struct bc_span){a, a + dice_below(dice, range / 2 + 1)};
}

/* Makes the addresses of some filters those of a region. */
static void make_region(struct dice *dice, struct bc_filter *f, const struct bc_chunk_info *info)
{
	f->ranges_count = dice_below(dice, 2) * dice_below(dice, BC_FILTER_RANGES + 1);
	f->memory_count = dice_below(dice, f->ranges_count + 1);
	if (f->ranges_count != 0)
		f->addr = (struct bc_span){UINT64_MAX, 0};
	for (unsigned i = 0; i < f->ranges_count; i++) {
		struct bc_span *range = &f->ranges[i];
		range->first = info->addr_low + dice_below(dice, 2300 * 53);
		range->last = range->first + dice_below(dice, 3000);
		f->addr.first = range->first < f->addr.first ? range->first : f->addr.first;
		f->addr.last = range->last > f->addr.last ? range->last : f->addr.last;
	}
}

static void make_filter(struct dice *dice, struct bc_filter *f, const struct bc_chunk_info *info)
{
	bc_filter_init(f);
	f->numbers = random_span(dice, info->first_record, RECORDS);
	f->ticks = random_span(dice, info->first_tick, 6000);
	f->epochs = random_span(dice, 0, 3);
	if (dice_below(dice, 2) == 0) {
		f->has_addr = true;
		f->addr = random_span(dice, info->addr_low, 2300 * 53);
		make_region(dice, f, info);
	}
	for (unsigned n = dice_below(dice, 3); n > 0; n--)
		bc_filter_add_type(f, dice_below(dice, 4) + 16 * dice_below(dice, 2));
	if (dice_below(dice, 2) == 0)
		bc_filter_add_procs(f, (uint16_t)dice_below(dice, 300),
			(uint16_t)(300 + dice_below(dice, 300)));
	if (dice_below(dice, 3) == 0)
		bc_filter_add_procs(f, 0, (uint16_t)dice_below(dice, 70));
	if (dice_below(dice, 3) == 0) {
		f->has_wall = true;
		f->from_ns = info->wall_ns + dice_below(dice, 1000) - 500;
		f->to_ns = f->from_ns + dice_below(dice, 90000);
	}
}

static bool has_bit(const uint64_t *words, unsigned n)
{
	return (words[n / 64] >> n % 64 & 1) != 0;
}

/* Whether the filter has an address of memory, or of a port. */
static bool has_addr(const struct bc_filter *f, uint64_t addr, uint8_t type)
{
	bool has = f->ranges_count == 0 && bc_span_has(f->addr, addr);

	for (unsigned i = 0; i < f->ranges_count; i++)
		has |= (i >= f->memory_count) == (type == 0x10 || type == 0x11) &&
		       bc_span_has(f->ranges[i], addr);
	return has;
}

/* Matches a record as documented. */
static bool matches(const struct bc_filter *f, const struct bc_record *r)
{
	bool touches = false;

	uint64_t begin = r->size == 16 || r->size == 32 ? r->addr - r->addr % r->size : r->addr;
	for (uint64_t i = 0; i < (r->size != 0 ? r->size : 1u); i++)
		touches |= has_addr(f, begin + i, r->reqtype);
	return (!f->has_addr || touches) && (!f->has_types || has_bit(f->types, r->reqtype)) &&
	       (!f->has_procs || has_bit(f->procs, r->proc));
}

TEST(records_and_entries_match_as_documented)
{
	struct dice dice = {1};
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	struct bc_filter f;
	unsigned found = 0;

	for (unsigned round = 0; round < 3000; round++) {
		make_chunk(&dice, chunk);
		make_filter(&dice, &f, &chunk->info);
		uint64_t tick = chunk->info.first_tick;
		for (uint32_t at = 0; at < chunk->info.records;) {
			size_t n = 1 + dice_below(&dice, BC_FILTER_RECORDS);
			if (n > chunk->info.records - at)
				n = chunk->info.records - at;
			uint64_t ticks;
			uint64_t bits = bc_filter_records(
				&f, chunk->records + at * BC_RECORD_BYTES, n, &ticks);
			uint64_t sum = 0;
			assert_true(n == 64 || bits >> n == 0);
			for (size_t i = 0; i < n; i++, at++) {
				const uint8_t *p = chunk->records + at * BC_RECORD_BYTES;
				struct bc_record r = bc_record_load(p);
				struct bc_entry entry;
				sum += r.time;
				tick += at != 0 ? r.time : 0;
				assert_int_equal(bits >> i & 1, matches(&f, &r));
				uint64_t number = chunk->info.first_record + at;
				bc_entry_of_record(&entry, p, number, tick);
				entry.epoch = chunk->info.epoch;
				bool is_in = bc_span_has(f.numbers, number) &&
					     bc_span_has(f.ticks, tick) &&
					     bc_span_has(f.epochs, entry.epoch);
				assert_int_equal(
					bc_filter_entry(&f, &entry), is_in && matches(&f, &r));
				found += is_in && matches(&f, &r);
			}
			assert_int_equal(ticks, sum);
		}
	}
	assert_true(found > 1000);
	free(chunk);
}

/* Whether a time of day is within the filter's range, calculated exactly: ns + ticks / clock_hz
 * seconds. */
static bool is_time_in_range(const struct bc_filter *f, const struct bc_chunk_info *info,
	uint64_t clock_hz, uint64_t tick)
{
	__int128 at = (__int128)info->wall_ns * (__int128)clock_hz +
		      (__int128)(tick - info->first_tick) * 1000000000;

	return !f->has_wall || (at >= (__int128)f->from_ns * (__int128)clock_hz &&
				       at < (__int128)f->to_ns * (__int128)clock_hz);
}

TEST(no_chunk_with_a_match_is_skipped)
{
	struct dice dice = {2};
	struct bc_chunk *chunk = malloc(sizeof(*chunk));
	struct bc_filter f;
	unsigned refused = 0;
	unsigned matched = 0;

	for (unsigned round = 0; round < 5000; round++) {
		uint64_t clock_hz = 1 + dice_below(&dice, 200000000);
		struct bc_filter_bounds bounds;
		make_chunk(&dice, chunk);
		make_filter(&dice, &f, &chunk->info);
		bool may = bc_filter_chunk(&f, &chunk->info, clock_hz, &bounds);
		uint64_t tick = chunk->info.first_tick;
		for (uint32_t i = 0; i < chunk->info.records; i++) {
			struct bc_record r = bc_record_load(chunk->records + i * BC_RECORD_BYTES);
			uint64_t number = chunk->info.first_record + i;
			tick += i != 0 ? r.time : 0;
			bool is_in = bc_span_has(f.numbers, number) && bc_span_has(f.ticks, tick) &&
				     bc_span_has(f.epochs, chunk->info.epoch) &&
				     is_time_in_range(&f, &chunk->info, clock_hz, tick);
			if (!may)
				assert_false(is_in && matches(&f, &r));
			else
				assert_int_equal(is_in, bc_span_has(bounds.numbers, number) &&
								bc_span_has(bounds.ticks, tick));
		}
		refused += !may;
		matched += may;
	}
	assert_true(refused > 500 && matched > 500);
	free(chunk);
}

TEST(a_chunk_without_records_counts_as_the_previous_record)
{
	struct bc_filter f;
	struct bc_filter_bounds bounds;
	struct bc_chunk_info info = {.first_record = 10,
		.events = 1,
		.first_tick = 50,
		.last_tick = 50,
		.addr_low = UINT32_MAX};

	bc_filter_init(&f);
	f.numbers = (struct bc_span){9, 9};
	assert_true(bc_filter_chunk(&f, &info, 0, &bounds));
	f.numbers = (struct bc_span){10, 20};
	assert_false(bc_filter_chunk(&f, &info, 0, &bounds));
}

TEST(without_a_clock_a_chunk_matches_a_time_as_a_whole)
{
	struct bc_filter f;
	struct bc_filter_bounds bounds;
	struct bc_chunk_info info = {.records = 10, .wall_ns = 1000, .last_tick = 500};

	bc_filter_init(&f);
	f.has_wall = true;
	f.from_ns = 1000;
	f.to_ns = 1001;
	assert_true(bc_filter_chunk(&f, &info, 0, &bounds));
	assert_int_equal(bounds.ticks.last, 500);
	f.from_ns = 1001;
	f.to_ns = INT64_MAX;
	assert_false(bc_filter_chunk(&f, &info, 0, &bounds));
}

TEST(times_at_the_limits_of_64_bits_do_not_wrap)
{
	struct bc_filter f;
	struct bc_filter_bounds bounds;
	struct bc_chunk_info info = {.records = 10,
		.wall_ns = INT64_MIN,
		.first_tick = BC_TICK_END - 11,
		.last_tick = BC_TICK_END - 1};

	bc_filter_init(&f);
	f.has_wall = true;
	f.from_ns = INT64_MIN;
	f.to_ns = INT64_MAX;
	assert_true(bc_filter_chunk(&f, &info, UINT64_MAX, &bounds));
	assert_int_equal(bounds.ticks.first, info.first_tick);
	assert_int_equal(bounds.ticks.last, info.last_tick);
	f.from_ns = INT64_MAX;
	assert_false(bc_filter_chunk(&f, &info, 1, &bounds));
}
