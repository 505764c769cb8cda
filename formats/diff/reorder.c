#include "formats/diff/reorder.h"

#include <stdbool.h>
#include <stdlib.h>

#include "formats/diff/compare.h"
#include "formats/diff/match_time.h"

static bool is_before(const struct bc_window *w, uint32_t i, uint64_t key, uint64_t tick)
{
	const uint64_t own = w->keys[w->begin + i];

	return own != key ? own < key : w->entries[w->begin + i].tick < tick;
}

static int compare(const void *x, const void *y, void *context)
{
	const struct bc_window *w = context;
	uint32_t i = *(const uint32_t *)x;
	uint32_t j = *(const uint32_t *)y;

	if (is_before(w, i, w->keys[w->begin + j], w->entries[w->begin + j].tick))
		return -1;
	if (is_before(w, j, w->keys[w->begin + i], w->entries[w->begin + i].tick))
		return 1;
	return (i > j) - (i < j);
}

static size_t find(
	const struct bc_window *w, const struct bc_leftover *left, uint64_t key, uint64_t tick)
{
	size_t low = 0;
	size_t high = left->count;

	while (low != high) {
		size_t middle = low + (high - low) / 2;
		if (is_before(w, left->at[middle], key, tick))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void bc_reorder_pair(const struct bc_match_options *options, const struct bc_window *a,
	const struct bc_leftover *a_left, const struct bc_window *b,
	const struct bc_leftover *b_left, uint64_t skew)
{
	uint64_t window = options->window;

	qsort_r(b_left->at, b_left->count, sizeof(*b_left->at), compare, (void *)(uintptr_t)b);
	for (size_t i = 0; i < a_left->count; i++) {
		size_t x = a->begin + a_left->at[i];
		uint64_t tick = a->entries[x].tick + skew;
		/* By B's clock, the time may be before tick 0. */
		uint64_t from = tick > window && tick >> 63 == 0 ? tick - window : 0;
		for (size_t j = find(b, b_left, a->keys[x], from); j < b_left->count; j++) {
			size_t y = b->begin + b_left->at[j];
			uint64_t other = b->entries[y].tick;
			if (b->keys[y] != a->keys[x] || (other > tick && other - tick > window))
				break;
			if (b->is_taken[y] ||
				!bc_time_is_same(options, &a->entries[x], &b->entries[y], skew) ||
				bc_compare_entries(
					&a->entries[x], &b->entries[y], options->fields) != 0)
				continue;
			a->is_taken[x] = b->is_taken[y] = true;
			break;
		}
	}
}
