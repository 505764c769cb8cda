#include <stdbool.h>
#include <stdlib.h>

#include "cli/diff/match_internal.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define ITEMS 20000u

struct rows {
	uint64_t a[ITEMS];
	uint64_t b[ITEMS];
	size_t n;
	size_t m;
	struct bc_block blocks[ITEMS];
	size_t count;
	struct bc_align *align;
};

static void set_up(struct rows *r)
{
	assert_int_equal(bc_align_open(&r->align, ITEMS), 0);
}

static void tear_down(struct rows *r)
{
	bc_align_close(r->align);
}

TEST_FIXTURE(rows, set_up, tear_down)

/* Aligns, checks that the blocks increase and match, and returns how many items they have. */
static size_t align(struct rows *r)
{
	size_t matched = 0;
	size_t x = 0;
	size_t y = 0;

	r->count = bc_align_run(r->align, r->a, r->n, r->b, r->m, r->blocks);
	for (size_t i = 0; i < r->count; i++) {
		const struct bc_block *block = &r->blocks[i];
		assert_true(block->n != 0 && block->a >= x && block->b >= y);
		x = block->a + block->n;
		y = block->b + block->n;
		assert_true(x <= r->n && y <= r->m);
		assert_memory_equal(&r->a[block->a], &r->b[block->b], block->n * sizeof(*r->a));
		matched += block->n;
	}
	return matched;
}

/* The length of the longest common subsequence, by the textbook. */
static size_t longest_common(const struct rows *r)
{
	size_t *row = calloc(r->m + 1, sizeof(*row));

	assert_non_null(row);
	for (size_t i = 0; i < r->n; i++) {
		size_t diagonal = 0;
		for (size_t j = 0; j < r->m; j++) {
			size_t above = row[j + 1];
			if (r->a[i] == r->b[j])
				row[j + 1] = diagonal + 1;
			else if (row[j] > above)
				row[j + 1] = row[j];
			diagonal = above;
		}
	}
	size_t length = row[r->m];
	free(row);
	return length;
}

TEST_WITH(rows, r, short_sequences_keep_as_many_items_as_possible)
{
	struct dice dice = {.state = 5};

	for (unsigned round = 0; round < 20000; round++) {
		uint32_t letters = 1 + dice_below(&dice, round % 2 != 0 ? 4 : 40);
		r->n = dice_below(&dice, 40);
		r->m = dice_below(&dice, 40);
		for (size_t i = 0; i < r->n; i++)
			r->a[i] = dice_below(&dice, letters);
		for (size_t i = 0; i < r->m; i++)
			r->b[i] = dice_below(&dice, letters);
		assert_int_equal(align(r), longest_common(r));
	}
}

TEST_WITH(rows, r, long_sequences_with_many_edits_stay_close_to_that)
{
	struct dice dice = {.state = 6};

	for (unsigned round = 0; round < 6; round++) {
		uint32_t letters = 30 + 100 * round;
		r->n = 2000 + dice_below(&dice, 2000);
		r->m = 0;
		for (size_t i = 0; i < r->n; i++)
			r->a[i] = dice_below(&dice, letters);
		for (size_t i = 0; i < r->n; i++) {
			uint32_t edit = dice_below(&dice, 12);
			if (edit < 2) /* something else, or nothing, or something more */
				r->b[r->m++] = dice_below(&dice, letters);
			if (edit != 0 && edit != 3)
				r->b[r->m++] = r->a[i];
		}
		assert_true(align(r) * 20 >= longest_common(r) * 19);
	}
}

TEST_WITH(rows, r, a_moved_block_leaves_the_larger_part_in_place)
{
	for (size_t length = 1; length <= 4096; length *= 4) {
		r->n = r->m = 10000;
		for (size_t i = 0; i < r->n; i++)
			r->a[i] = i + 1;
		/* [1000, 1000 + length) behind the 2 x length items that follow it. */
		for (size_t i = 0; i < r->m; i++)
			r->b[i] = i < 1000 || i >= 1000 + 3 * length ? i + 1
				  : i < 1000 + 2 * length            ? i + length + 1
								     : i - 2 * length + 1;
		assert_int_equal(align(r), 10000 - length);
	}
}

TEST_WITH(rows, r, nothing_in_common_and_nothing_at_all_give_no_blocks)
{
	r->n = r->m = ITEMS;
	for (size_t i = 0; i < ITEMS; i++) {
		r->a[i] = 2 * i;
		r->b[i] = 2 * i + 1;
	}
	assert_int_equal(align(r), 0);
	r->n = 0;
	assert_int_equal(align(r), 0);
	r->m = 0;
	assert_int_equal(align(r), 0);
}

TEST_WITH(rows, r, equal_sequences_are_one_block)
{
	r->n = r->m = ITEMS;
	for (size_t i = 0; i < ITEMS; i++)
		r->a[i] = r->b[i] = i % 7;
	assert_int_equal(align(r), ITEMS);
	assert_int_equal(r->count, 1);
}

static bool is_chain(const struct bc_pair *pairs, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (pairs[i].a <= pairs[i - 1].a || pairs[i].b <= pairs[i - 1].b)
			return false;
	return true;
}

TEST(the_longest_chain_is_found)
{
	struct dice dice = {.state = 7};
	struct bc_pair pairs[64];
	uint32_t best[64];
	uint32_t work[128];

	for (unsigned round = 0; round < 5000; round++) {
		size_t count = 0;
		size_t longest = 0;
		/* Sorted by a; if that is equal, by b downwards. */
		for (uint32_t a = 0; a < 20; a++)
			for (uint32_t k = dice_below(&dice, 4), b = 30; k != 0 && b > 3; k--) {
				b -= 1 + dice_below(&dice, 9 < b ? 9 : b);
				pairs[count++] = (struct bc_pair){.a = a, .b = b};
			}
		for (size_t i = 0; i < count; i++) {
			best[i] = 1;
			for (size_t j = 0; j < i; j++)
				if (pairs[j].a < pairs[i].a && pairs[j].b < pairs[i].b &&
					best[j] >= best[i])
					best[i] = best[j] + 1;
			longest = best[i] > longest ? best[i] : longest;
		}
		size_t found = bc_longest_chain(pairs, count, work);
		assert_int_equal(found, longest);
		assert_true(is_chain(pairs, found));
	}
}
