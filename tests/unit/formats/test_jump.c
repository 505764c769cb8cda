#include <string.h>

#include "formats/diff/jump.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define ITEMS 2000u

/* A row with few different items, and a clock. */
struct row {
	uint64_t hashes[2 * ITEMS];
	uint64_t ticks[2 * ITEMS];
	size_t count;
};

struct rows {
	struct row a;
	struct row b;
	struct bc_jump_finder finder;
};

static struct rows rows_of(unsigned letters, unsigned step)
{
	struct rows r = {.a.count = ITEMS};
	struct dice dice = {.state = letters};

	for (size_t i = 0; i < ITEMS; i++) {
		r.a.hashes[i] = dice_below(&dice, letters);
		r.a.ticks[i] = (i + 1) * step;
	}
	r.b = r.a;
	return r;
}

static void take_out(struct row *row, size_t n)
{
	row->count -= n;
	memmove(row->hashes, row->hashes + n, row->count * sizeof(row->hashes[0]));
	memmove(row->ticks, row->ticks + n, row->count * sizeof(row->ticks[0]));
}

static bool find(struct rows *r, const struct bc_align_time *time, struct bc_jump *best)
{
	struct bc_align_row a = {r->a.hashes, r->a.ticks, r->a.count, true};
	struct bc_align_row b = {r->b.hashes, r->b.ticks, r->b.count, true};

	assert_int_equal(bc_jump_init(&r->finder, 2 * ITEMS), 0);
	bool has_found = bc_jump_find(&r->finder, &a, 0, &b, 0, time, best);
	bool has_any = bc_jump_find_any(&r->finder, &a, 0, &b, time, best);
	bc_jump_free(&r->finder);
	return has_found || has_any;
}

TEST(an_omission_of_any_length_is_found)
{
	for (size_t n = 1; n < ITEMS - 20; n += 13) {
		struct rows r = rows_of(2, 0);
		struct bc_jump best = {.is_clock_kept = true};
		take_out(&r.b, n);
		assert_true(find(&r, NULL, &best));
		assert_int_equal(best.a, n);
		assert_int_equal(best.b, 0);
		assert_int_equal(best.edits, n);
		best = (struct bc_jump){.is_clock_kept = true};
		struct row held = r.a;
		r.a = r.b;
		r.b = held;
		assert_true(find(&r, NULL, &best));
		assert_int_equal(best.a, 0);
		assert_int_equal(best.b, n);
	}
}

TEST(the_clock_decides_between_equal_items)
{
	for (size_t n = 1; n < ITEMS - 20; n += 13) {
		struct rows r = rows_of(1, 10);
		struct bc_align_time time = {.skew = 0, .window = 1};
		/* A single different time, given the skew at that point. */
		struct bc_jump best = {.a = 1, .b = 1, .edits = 1, .hunks = 1};
		take_out(&r.b, n);
		struct bc_align_row a = {r.a.hashes, r.a.ticks, r.a.count, true};
		struct bc_align_row b = {r.b.hashes, r.b.ticks, r.b.count, true};
		bc_jump_weigh(&best, &a, &b, &time);
		assert_false(best.is_clock_kept);
		assert_true(find(&r, &time, &best));
		assert_true(best.is_clock_kept);
		assert_int_equal(best.a, n);
		assert_int_equal(best.b, 0);
	}
}

TEST(a_replacement_of_any_length_is_found)
{
	for (size_t n = 1; n < 1000; n += 7) {
		for (size_t m = n; m <= 2 * n; m += n) {
			struct rows r = rows_of(1000, 0);
			struct bc_jump best = {.is_clock_kept = true};
			memmove(r.b.hashes + m, r.a.hashes + n,
				(ITEMS - n) * sizeof(r.b.hashes[0]));
			r.b.count = ITEMS - n + m;
			for (size_t i = 0; i < m; i++)
				r.b.hashes[i] = 5000 + i;
			bool is_found = find(&r, NULL, &best);
			/* A replacement by twice as many items must be outweighed by what follows.
			 */
			if (m != n && ITEMS - n < 2 * n)
				continue;
			assert_true(is_found);
			assert_int_equal(best.a, n);
			assert_int_equal(best.b, m);
		}
	}
}

TEST(a_good_way_is_kept)
{
	struct rows r = rows_of(1, 10);
	struct bc_jump best = {.run = BC_JUMP_LONG, .edits = 1, .hunks = 1, .is_clock_kept = true};
	const struct bc_jump before = best;

	take_out(&r.b, 100);
	assert_false(find(&r, NULL, &best));
	assert_memory_equal(&best, &before, sizeof(best));
}

TEST(at_most_one_of_two_ways_is_better)
{
	struct dice dice = {.state = 8};

	for (unsigned i = 0; i < 100000; i++) {
		struct bc_jump ways[2];
		for (unsigned k = 0; k < 2; k++)
			ways[k] = (struct bc_jump){.edits = dice_below(&dice, 1000),
				.hunks = 1 + dice_below(&dice, 3),
				.run = dice_below(&dice, BC_JUMP_LONG + 1),
				.is_clock_kept = dice_below(&dice, 2) != 0};
		assert_false(bc_jump_is_better(&ways[0], &ways[1]) &&
			     bc_jump_is_better(&ways[1], &ways[0]));
		assert_false(bc_jump_is_better(&ways[0], &ways[0]));
	}
}
