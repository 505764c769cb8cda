#include "formats/diff/align.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* E. W. Myers, "An O(ND) Difference Algorithm and Its Variations". For each number of edits d and
 * each diagonal k (position in a - position in b), reach holds the furthest position in a. All of
 * them are kept, so that go_back() can retrace the edits: O(d^2) memory. */

/* Lengths of equal runs after which the rows count as aligned again, longest first. */
static const size_t run_lengths[] = {32, 8};

/* Number of consecutive matches required after d edits. */
static size_t wanted_run(unsigned d)
{
	return 8 + (d < 56 ? d : 56);
}

int bc_align_init(struct bc_align *align, size_t items)
{
	/* There cannot be more edits than items. */
	align->edits_max = 2 * items < BC_ALIGN_EDITS ? (unsigned)(2 * items) : BC_ALIGN_EDITS;
	size_t edits = align->edits_max + 1;

	align->count = 0;
	align->items = items;
	for (align->slots = 16; align->slots < 2 * items;)
		align->slots *= 2;
	align->reach = calloc(edits * edits, sizeof(*align->reach));
	align->table = calloc(align->slots, sizeof(*align->table));
	align->runs = calloc(items, sizeof(*align->runs));
	if (align->reach != NULL && align->table != NULL && align->runs != NULL)
		return 0;
	bc_align_free(align);
	return -ENOMEM;
}

void bc_align_free(struct bc_align *align)
{
	free(align->reach);
	free(align->table);
	free(align->runs);
	align->reach = NULL;
	align->table = NULL;
	align->runs = NULL;
}

static int32_t *reach_of(const struct bc_align *align, int d, int k)
{
	return &align->reach[(ptrdiff_t)d * d + d + k];
}

/* The position on diagonal k after edit d, or -1 if it cannot be reached. Sets *inserts if the edit
 * is an insertion. */
static int32_t step(const struct bc_align *align, int d, int k, size_t n, size_t m, bool *inserts)
{
	int32_t inserted = k + 1 <= d - 1 ? *reach_of(align, d - 1, k + 1) : -1;
	int32_t deleted = k - 1 >= 1 - d ? *reach_of(align, d - 1, k - 1) : -1;

	if (inserted >= 0 && inserted - k > (int32_t)m)
		inserted = -1;
	if (deleted >= 0)
		deleted = deleted < (int32_t)n ? deleted + 1 : -1;
	*inserts = inserted >= deleted;
	return *inserts ? inserted : deleted;
}

/* Converts the edits that lead to the position reached on diagonal k after d edits to hunks. */
static void go_back(struct bc_align *align, int d, int k, size_t n, size_t m)
{
	struct bc_hunk *hunks = align->hunks;
	size_t first = BC_ALIGN_EDITS;

	for (; d > 0; d--) {
		bool inserts;
		step(align, d, k, n, m, &inserts);
		k += inserts ? 1 : -1;
		size_t x = (size_t)*reach_of(align, d - 1, k);
		size_t y = (size_t)((ptrdiff_t)x - k);
		struct bc_hunk *next = &hunks[first];
		if (first == BC_ALIGN_EDITS || x + !inserts != next->a || y + inserts != next->b)
			next = &hunks[--first], *next = (struct bc_hunk){.a_count = 0};
		next->a = x;
		next->b = y;
		next->a_count += !inserts;
		next->b_count += inserts;
	}
	align->count = BC_ALIGN_EDITS - first;
	memmove(hunks, hunks + first, align->count * sizeof(*hunks));
}

/* Joins hunks. A hunk that only deletes or only inserts can move up to the hunk before it if the
 * items between them still match after the move. Starts at the end, where the rows are aligned. */
static void gather(struct bc_align *align, const struct bc_align_row *a,
	const struct bc_align_row *b, const struct bc_align_time *time)
{
	struct bc_hunk *hunks = align->hunks;

	for (size_t i = align->count; i-- > 1;) {
		struct bc_hunk *before = &hunks[i - 1];
		size_t x = before->a + before->a_count + hunks[i].a_count;
		size_t y = before->b + before->b_count + hunks[i].b_count;
		size_t matches = hunks[i].a - (before->a + before->a_count);
		bool is_one = hunks[i].a_count == 0 || hunks[i].b_count == 0;
		for (size_t n = 0; is_one && n < matches; n++)
			is_one = bc_align_is_match(a, x + n, b, y + n, time);
		if (!is_one)
			continue;
		before->a_count += hunks[i].a_count;
		before->b_count += hunks[i].b_count;
		memmove(&hunks[i], &hunks[i + 1], (--align->count - i) * sizeof(*hunks));
	}
}

static size_t hunk_size(const struct bc_hunk *hunk)
{
	return hunk->a_count > hunk->b_count ? hunk->a_count : hunk->b_count;
}

/* Joins hunks that are separated by only a few matches, which are probably accidental. */
static void coalesce(struct bc_align *align)
{
	struct bc_hunk *hunks = align->hunks;
	size_t last = 0;

	for (size_t i = 1; i < align->count; i++) {
		struct bc_hunk *before = &hunks[last];
		size_t matches = hunks[i].a - (before->a + before->a_count);
		size_t size = hunk_size(before) < hunk_size(&hunks[i]) ? hunk_size(before)
								       : hunk_size(&hunks[i]);
		if (matches > size / 8) {
			hunks[++last] = hunks[i];
			continue;
		}
		before->a_count = hunks[i].a + hunks[i].a_count - before->a;
		before->b_count = hunks[i].b + hunks[i].b_count - before->b;
	}
	align->count = align->count != 0 ? last + 1 : 0;
}

/* Whether to stop at this position: enough matches after the last edit, or both rows end here. */
static bool is_end(const struct bc_align_row *a, const struct bc_align_row *b, size_t x, size_t y,
	size_t run, unsigned d)
{
	if (run >= wanted_run(d))
		return true;
	if (a->is_whole && b->is_whole)
		return x == a->count && y == b->count;
	/* One row has ended, and most of it has matched. */
	return ((a->is_whole && x == a->count) || (b->is_whole && y == b->count)) &&
	       (x + y - d) / 2 >= d;
}

bool bc_align_near(struct bc_align *align, const struct bc_align_row *a,
	const struct bc_align_row *b, unsigned edits, const struct bc_align_time *time)
{
	assert(edits <= BC_ALIGN_EDITS && a->count <= align->items && b->count <= align->items);
	edits = edits < align->edits_max ? edits : align->edits_max;
	for (int d = 0; d <= (int)edits; d++) {
		for (int k = -d; k <= d; k += 2) {
			bool inserts;
			int32_t from = d != 0 ? step(align, d, k, a->count, b->count, &inserts) : 0;
			*reach_of(align, d, k) = from;
			if (from < 0)
				continue;
			size_t x = (size_t)from;
			size_t y = (size_t)(from - k);
			size_t run = 0;
			for (; x < a->count && y < b->count && run < wanted_run((unsigned)d) &&
				bc_align_is_match(a, x, b, y, time);
				x++, y++)
				run++;
			*reach_of(align, d, k) = (int32_t)x;
			if (!is_end(a, b, x, y, run, (unsigned)d))
				continue;
			go_back(align, d, k, a->count, b->count);
			gather(align, a, b, time);
			coalesce(align);
			return true;
		}
	}
	return false;
}

/* Uses the furthest position reached with the maximum number of edits, if at least half of the
 * items before it match. */
static bool take_furthest(
	struct bc_align *align, const struct bc_align_row *a, const struct bc_align_row *b)
{
	const int d = (int)align->edits_max;
	int64_t most = -1;
	int at = 0;

	for (int k = -d; k <= d; k += 2) {
		int64_t x = *reach_of(align, d, k);
		if (x >= 0 && 2 * x - k > most) {
			most = 2 * x - k;
			at = k;
		}
	}
	int64_t matches = (most - d) / 2;
	int64_t longer = (most + (at > 0 ? at : -at)) / 2;
	if (most < 0 || 2 * matches < longer)
		return false;
	go_back(align, d, at, a->count, b->count);
	gather(align, a, b, NULL);
	coalesce(align);
	return true;
}

#define BASE UINT64_C(0x9E3779B97F4A7C15)

/* Rolling hash of the `length` items at `at`, computed from the hash of the run before. */
static uint64_t roll(
	const uint64_t *hashes, size_t at, size_t length, uint64_t before, uint64_t top)
{
	uint64_t sum = 0;

	if (at != 0)
		return (before - hashes[at - 1] * top) * BASE + hashes[at + length - 1];
	for (size_t i = 0; i < length; i++)
		sum = sum * BASE + hashes[i];
	return sum;
}

static size_t slot_of(const struct bc_align *align, uint64_t run)
{
	return (size_t)((run * BASE) >> 20) & (align->slots - 1);
}

/* Indexes the first position of each run in `a`. */
static void index_runs(
	struct bc_align *align, const struct bc_align_row *a, size_t length, uint64_t top)
{
	memset(align->table, 0, align->slots * sizeof(*align->table));
	for (size_t i = 0; i + length <= a->count; i++) {
		align->runs[i] = roll(a->hashes, i, length, i != 0 ? align->runs[i - 1] : 0, top);
		size_t slot = slot_of(align, align->runs[i]);
		while (align->table[slot] != 0 &&
			align->runs[align->table[slot] - 1] != align->runs[i])
			slot = (slot + 1) & (align->slots - 1);
		if (align->table[slot] == 0)
			align->table[slot] = (uint32_t)i + 1;
	}
}

/* Finds the nearest run of `length` items that both rows contain. */
static bool find_run(struct bc_align *align, const struct bc_align_row *a,
	const struct bc_align_row *b, size_t length)
{
	uint64_t top = 1;
	uint64_t run = 0;
	size_t best = SIZE_MAX;

	if (a->count < length || b->count < length)
		return false;
	for (size_t i = 1; i < length; i++)
		top *= BASE;
	index_runs(align, a, length, top);
	for (size_t j = 0; j + length <= b->count && j < best; j++) {
		run = roll(b->hashes, j, length, run, top);
		size_t slot = slot_of(align, run);
		while (align->table[slot] != 0 && align->runs[align->table[slot] - 1] != run)
			slot = (slot + 1) & (align->slots - 1);
		if (align->table[slot] == 0)
			continue;
		size_t i = align->table[slot] - 1;
		if (i + j >= best ||
			memcmp(a->hashes + i, b->hashes + j, length * sizeof(*a->hashes)) != 0)
			continue;
		best = i + j;
		align->hunks[0] = (struct bc_hunk){.a_count = i, .b_count = j};
	}
	align->count = best != SIZE_MAX;
	return best != SIZE_MAX;
}

bool bc_align_far(
	struct bc_align *align, const struct bc_align_row *a, const struct bc_align_row *b)
{
	size_t same = 0;

	if (take_furthest(align, a, b))
		return true;
	for (size_t i = 0; i < sizeof(run_lengths) / sizeof(run_lengths[0]); i++)
		if (find_run(align, a, b, run_lengths[i]))
			return true;
	if (!a->is_whole || !b->is_whole)
		return false;
	while (same < a->count && same < b->count &&
		a->hashes[a->count - 1 - same] == b->hashes[b->count - 1 - same])
		same++;
	align->hunks[0] = (struct bc_hunk){.a_count = a->count - same, .b_count = b->count - same};
	align->count = same != 0;
	return same != 0;
}
