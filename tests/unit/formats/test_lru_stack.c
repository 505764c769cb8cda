#include <stdlib.h>
#include <string.h>

#include "cli/stats/lru_stack.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define TOUCHES 20000
#define MAX_K   17

/* Counts misses in a list of lines, the one touched last first. */
static void search(const uint64_t *lines, uint64_t misses[MAX_K])
{
	static uint64_t list[TOUCHES];
	size_t count = 0;

	memset(misses, 0, MAX_K * sizeof(*misses));
	for (size_t i = 0; i < TOUCHES; i++) {
		size_t depth = 0;
		while (depth < count && list[depth] != lines[i])
			depth++;
		for (unsigned k = 0; k < MAX_K; k++)
			misses[k] += depth == count || depth >= (size_t)1 << k;
		count += depth == count;
		memmove(list + 1, list, depth * sizeof(*list));
		list[0] = lines[i];
	}
}

static void touch_all(struct bc_lru_stack *stack, const uint64_t *lines)
{
	assert_non_null(stack);
	for (size_t i = 0; i < TOUCHES; i++)
		bc_lru_stack_touch(stack, lines[i], (unsigned)(lines[i] % 3));
}

/* Some lines more often than others. */
static void roll(uint64_t *lines, uint32_t seed, uint32_t below)
{
	struct dice dice = {seed};

	for (size_t i = 0; i < TOUCHES; i++)
		lines[i] = dice_below(&dice, 1 + dice_below(&dice, below));
}

TEST(misses_of_every_cache_are_those_of_a_search)
{
	static uint64_t lines[TOUCHES];
	uint64_t misses[MAX_K];
	unsigned shift;

	for (uint32_t below = 1; below < 1100; below = below * 3 + 1) {
		struct bc_lru_stack *stack = bc_lru_stack_open(2048);
		roll(lines, below, below);
		search(lines, misses);
		touch_all(stack, lines);
		for (unsigned k = 0; k < MAX_K; k++) {
			assert_int_equal(bc_lru_stack_misses(stack, k, &shift), misses[k]);
			assert_int_equal(shift, 0);
		}
		free(stack);
	}
}

TEST(with_too_many_lines_small_caches_stay_exact_and_others_are_near)
{
	static uint64_t lines[TOUCHES];
	uint64_t misses[MAX_K];
	unsigned shift;

	for (uint32_t seed = 1; seed < 4; seed++) {
		for (uint32_t max = 64; max <= 512; max *= 8) {
			struct bc_lru_stack *stack = bc_lru_stack_open(max);
			roll(lines, seed, 2000);
			search(lines, misses);
			touch_all(stack, lines);
			for (unsigned k = 0; k < MAX_K; k++) {
				uint64_t found = bc_lru_stack_misses(stack, k, &shift);
				int64_t error = (int64_t)(found - misses[k]);
				if (1u << k <= max / 16)
					assert_int_equal(error, 0);
				assert_true((shift == 0) == (1u << k <= max / 16));
				assert_true(llabs(error) < TOUCHES / (max == 64 ? 5 : 20));
			}
			free(stack);
		}
	}
}
