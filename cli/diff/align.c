/* Aligns two sequences of keys, with few items left over. docs/diff.md has a picture.
 *
 * 1. The common prefix and suffix match.
 * 2. Keys that occur in only one sequence are set aside: they can have no counterpart, and the
 * search is faster without them.
 * 3. In a region, an exact search finds a point on a shortest path of insertions and deletions,
 * from both ends at once, and the two parts are solved alike (Myers 1986, linear memory). It costs
 *    O(length * differences), so its steps are limited (STEPS_MAX, and a budget for all regions).
 * 4. If it gives up, anchors divide the region: runs of GRAM items that are rare in both sequences.
 *    Of all pairs of equal anchors, the longest chain in which both positions increase is kept, and
 *    the regions between them are solved alike. Without anchors, the region is split at the point
 *    where the search had come furthest.
 *
 * All memory is allocated at the start, for sequences of `items` keys. */
#include "cli/diff/match_internal.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* Number of items of an anchor, how often it may occur in each sequence, and the limit of pairs for
 * each item; with more pairs, anchors must be rarer. */
#define GRAM  8u
#define RARE  32u
#define PAIRS 8u

/* Maximum steps of the exact search in one region: STEPS_MAX while the searches of all regions have
 * visited fewer than DIAGONALS_EACH diagonals for each item, STEPS_MIN after that. */
#define STEPS_MAX      4096
#define STEPS_MIN      256
#define DIAGONALS_EACH 1024

/* How deep regions between anchors are searched for further anchors. */
#define DEPTH_MAX 16

/* Where a key, or the hash of an anchor, occurs. */
struct slot {
	uint64_t key;
	uint32_t a; /* the last occurrence in each sequence */
	uint32_t b;
	uint32_t a_count;
	uint32_t b_count;
};

struct bc_align {
	/* The items in both sequences: keys, positions, and the counterpart of each item of A. */
	uint64_t *x;
	uint64_t *y;
	uint32_t *x_at;
	uint32_t *y_at;
	uint32_t *counterpart;
	struct slot *slots;
	size_t mask;           /* of the part of `slots` in use */
	uint32_t *earlier;     /* by position in y: the occurrence of the same anchor before it */
	struct bc_pair *pairs; /* a stack: anchors of the regions being searched */
	size_t pair_count;
	uint32_t *chain;
	int32_t *forward; /* by diagonal: struct search */
	int32_t *backward;
	int64_t diagonals; /* that may still be searched */
	size_t items;
};

int bc_align_open(struct bc_align **align, size_t items)
{
	struct bc_align *s = calloc(1, sizeof(*s));
	size_t slots = 64;

	*align = NULL;
	if (s == NULL)
		return -ENOMEM;
	while (slots < 4 * items)
		slots *= 2;
	s->items = items;
	s->x = calloc(items, sizeof(*s->x));
	s->y = calloc(items, sizeof(*s->y));
	s->x_at = calloc(items, sizeof(*s->x_at));
	s->y_at = calloc(items, sizeof(*s->y_at));
	s->counterpart = calloc(items, sizeof(*s->counterpart));
	s->slots = malloc(slots * sizeof(*s->slots));
	s->earlier = calloc(items, sizeof(*s->earlier));
	s->pairs = calloc((PAIRS + 1) * items, sizeof(*s->pairs));
	s->chain = calloc(2 * PAIRS * items, sizeof(*s->chain));
	s->forward = calloc(2 * items + 3, sizeof(*s->forward));
	s->backward = calloc(2 * items + 3, sizeof(*s->backward));
	if (s->x != NULL && s->y != NULL && s->x_at != NULL && s->y_at != NULL &&
		s->counterpart != NULL && s->slots != NULL && s->earlier != NULL &&
		s->pairs != NULL && s->chain != NULL && s->forward != NULL && s->backward != NULL) {
		*align = s;
		return 0;
	}
	bc_align_close(s);
	return -ENOMEM;
}

void bc_align_close(struct bc_align *s)
{
	if (s == NULL)
		return;
	free(s->x);
	free(s->y);
	free(s->x_at);
	free(s->y_at);
	free(s->counterpart);
	free(s->slots);
	free(s->earlier);
	free(s->pairs);
	free(s->chain);
	free(s->forward);
	free(s->backward);
	free(s);
}

/* ---- the table of keys */

static void clear_slots(struct bc_align *s, size_t keys)
{
	size_t slots = 64;

	while (slots < 2 * keys)
		slots *= 2;
	s->mask = slots - 1;
	memset(s->slots, 0, slots * sizeof(*s->slots));
}

/* Returns the slot of a key, which is unused if both counts are 0. */
static struct slot *slot_of(struct bc_align *s, uint64_t key)
{
	for (size_t i = key * UINT64_C(0x9E3779B97F4A7C15) >> 32;; i++) {
		struct slot *slot = &s->slots[i & s->mask];
		if (slot->key == key || (slot->a_count | slot->b_count) == 0) {
			slot->key = key;
			return slot;
		}
	}
}

/* Writes the items in keys[0, n) that both sequences have to x and x_at. Returns their number. */
static size_t keep_common(
	struct bc_align *s, const uint64_t *keys, size_t n, uint64_t *x, uint32_t *x_at)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const struct slot *slot = slot_of(s, keys[i]);
		if (slot->a_count == 0 || slot->b_count == 0)
			continue;
		x[kept] = keys[i];
		x_at[kept++] = (uint32_t)i;
	}
	return kept;
}

/* ---- chains */

size_t bc_longest_chain(struct bc_pair *pairs, size_t count, uint32_t *work)
{
	uint32_t *ends = work; /* by length: the pair that ends a chain with the smallest b */
	uint32_t *before = work + count;
	size_t length = 0;

	for (uint32_t i = 0; i < count; i++) {
		size_t low = 0;
		size_t high = length;
		while (low != high) {
			size_t middle = low + (high - low) / 2;
			if (pairs[ends[middle]].b < pairs[i].b)
				low = middle + 1;
			else
				high = middle;
		}
		before[i] = low != 0 ? ends[low - 1] : NONE;
		ends[low] = i;
		length = low == length ? length + 1 : length;
	}
	/* Walk back from the end; `ends` collects the chain in order. */
	uint32_t at = length != 0 ? ends[length - 1] : NONE;
	for (size_t k = length; k != 0; k--, at = before[at])
		ends[k - 1] = at;
	for (size_t k = 0; k < length; k++)
		pairs[k] = pairs[ends[k]];
	return length;
}

/* ---- anchors */

static uint64_t hash_gram(const uint64_t *keys)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < GRAM; i++)
		hash = (hash ^ keys[i]) * UINT64_C(0x9E3779B97F4A7C15) ^ hash >> 29;
	return hash;
}

/* A region: x[x0, x1) against y[y0, y1). */
struct region {
	int32_t x0;
	int32_t x1;
	int32_t y0;
	int32_t y1;
};

/* Collects all pairs of equal anchors that occur at most `rare` times in each sequence; the table
 * must be filled. Returns false if there are too many. */
static bool collect_pairs(struct bc_align *s, const struct region *r, uint32_t rare,
	struct bc_pair *pairs, size_t *count)
{
	*count = 0;
	for (int32_t i = r->x0; i + (int32_t)GRAM <= r->x1; i++) {
		const struct slot *slot = slot_of(s, hash_gram(&s->x[i]));
		if (slot->a_count > rare || slot->b_count > rare || slot->b_count == 0)
			continue;
		if (*count + slot->b_count > PAIRS * (size_t)(r->x1 - r->x0))
			return false;
		for (uint32_t j = slot->b; j != NONE; j = s->earlier[j])
			if (s->x[i] == s->y[j])
				pairs[(*count)++] = (struct bc_pair){.a = (uint32_t)i, .b = j};
	}
	return true;
}

/* Pushes the anchors of a region: runs of GRAM items that are rare in both sequences, reduced to
 * the longest chain. Returns their number. */
static size_t push_anchors(struct bc_align *s, const struct region *r)
{
	struct bc_pair *pairs = s->pairs + s->pair_count;
	size_t count = 0;

	if (r->x1 - r->x0 < (int32_t)GRAM || r->y1 - r->y0 < (int32_t)GRAM)
		return 0;
	clear_slots(s, (size_t)(r->x1 - r->x0 + r->y1 - r->y0));
	for (int32_t j = r->y0; j + (int32_t)GRAM <= r->y1; j++) {
		struct slot *slot = slot_of(s, hash_gram(&s->y[j]));
		s->earlier[j] = slot->b_count != 0 ? slot->b : NONE;
		slot->b = (uint32_t)j;
		slot->b_count++;
	}
	for (int32_t i = r->x0; i + (int32_t)GRAM <= r->x1; i++)
		slot_of(s, hash_gram(&s->x[i]))->a_count++;
	for (uint32_t rare = RARE; !collect_pairs(s, r, rare, pairs, &count); rare /= 2)
		;
	count = bc_longest_chain(pairs, count, s->chain);
	s->pair_count += count;
	return count;
}

/* ---- exact search */

/* The searches from both ends of a region: the furthest x by diagonal (x - y - base, 1 or more).
 * Those in [f0, f1] and [b0, b1] have been reached, every other one in the last step. */
struct search {
	const struct region *r;
	int32_t base;
	int32_t last; /* diagonal */
	int32_t *f;
	int32_t f0;
	int32_t f1;
	int32_t *b;
	int32_t b0;
	int32_t b1;
};

/* Moves each end of the search from the start on by one insertion or deletion and the matches after
 * it. Returns the diagonal on which it meets the other search, or 0. */
static int32_t step_forward(const struct bc_align *s, struct search *t, bool can_meet)
{
	int32_t *f = t->f;

	if (t->f0 > 1)
		f[--t->f0 - 1] = -1;
	else
		t->f0++;
	if (t->f1 < t->last)
		f[++t->f1 + 1] = -1;
	else
		t->f1--;
	for (int32_t d = t->f1; d >= t->f0; d -= 2) {
		int32_t x = f[d - 1] < f[d + 1] ? f[d + 1] : f[d - 1] + 1;
		int32_t y = x - d - t->base;
		while (x < t->r->x1 && y < t->r->y1 && s->x[x] == s->y[y])
			x++, y++;
		f[d] = x;
		if (can_meet && t->b0 <= d && d <= t->b1 && t->b[d] <= x)
			return d;
	}
	return 0;
}

/* The same from the end. */
static int32_t step_backward(const struct bc_align *s, struct search *t, bool can_meet)
{
	int32_t *b = t->b;

	if (t->b0 > 1)
		b[--t->b0 - 1] = INT32_MAX;
	else
		t->b0++;
	if (t->b1 < t->last)
		b[++t->b1 + 1] = INT32_MAX;
	else
		t->b1--;
	for (int32_t d = t->b1; d >= t->b0; d -= 2) {
		int32_t x = b[d - 1] < b[d + 1] ? b[d - 1] : b[d + 1] - 1;
		int32_t y = x - d - t->base;
		while (x > t->r->x0 && y > t->r->y0 && s->x[x - 1] == s->y[y - 1])
			x--, y--;
		b[d] = x;
		if (can_meet && t->f0 <= d && d <= t->f1 && x <= t->f[d])
			return d;
	}
	return 0;
}

static struct bc_pair point_on(const struct search *t, int32_t diagonal, int32_t x)
{
	return (struct bc_pair){(uint32_t)x, (uint32_t)(x - diagonal - t->base)};
}

/* Returns the point that is furthest from the end where its search began. */
static struct bc_pair furthest_point(const struct search *t)
{
	const struct region *r = t->r;
	struct bc_pair best = {0};
	int32_t most = -1;

	for (int is_back = 0; is_back < 2; is_back++) {
		int32_t sign = is_back ? -1 : 1;
		for (int32_t d = is_back ? t->b0 : t->f0; d <= (is_back ? t->b1 : t->f1); d += 2) {
			int32_t skew = d + t->base;
			int32_t x = (is_back ? t->b : t->f)[d];
			x = x < r->x0 ? r->x0 : x > r->x1 ? r->x1 : x;
			x = x - skew < r->y0 ? r->y0 + skew : x - skew > r->y1 ? r->y1 + skew : x;
			int32_t way = sign * (2 * x - skew) -
				      (is_back ? -r->x1 - r->y1 : r->x0 + r->y0);
			if (way > most) {
				most = way;
				best = (struct bc_pair){(uint32_t)x, (uint32_t)(x - skew)};
			}
		}
	}
	return best;
}

/* Finds a point on a shortest path of insertions and deletions through a region, searching from
 * both ends at once (Myers 1986, with linear memory). If that takes too many steps, the point is
 * the furthest one reached, and *is_exact is false. */
static struct bc_pair split_region(struct bc_align *s, const struct region *r, bool *is_exact)
{
	struct search t = {.r = r, .base = r->x0 - r->y1 - 1, .f = s->forward, .b = s->backward};
	t.last = r->x1 - r->y0 - t.base;
	t.f0 = t.f1 = r->x0 - r->y0 - t.base;
	t.b0 = t.b1 = r->x1 - r->y1 - t.base;
	t.f[t.f0] = r->x0;
	t.b[t.b0] = r->x1;
	/* The searches can meet only if the number of steps taken has the right parity. */
	const bool is_odd = ((t.f0 - t.b0) & 1) != 0;
	*is_exact = true;
	for (int32_t step = 0; step < (s->diagonals > 0 ? STEPS_MAX : STEPS_MIN); step++) {
		s->diagonals -= step;
		int32_t met = step_forward(s, &t, is_odd);
		if (met != 0)
			return point_on(&t, met, t.f[met]);
		met = step_backward(s, &t, !is_odd);
		if (met != 0)
			return point_on(&t, met, t.b[met]);
	}
	*is_exact = false;
	return furthest_point(&t);
}

static void solve_region(struct bc_align *s, struct region r, int depth);

/* Solves the regions around the anchors on top of the stack, and removes them. */
static void solve_between(struct bc_align *s, struct region r, size_t anchors, int depth)
{
	size_t base = s->pair_count - anchors;

	for (size_t k = 0; k < anchors; k++) {
		const struct bc_pair pair = s->pairs[base + k];
		struct region before = {r.x0, (int32_t)pair.a, r.y0, (int32_t)pair.b};
		solve_region(s, before, depth + 1);
		s->counterpart[pair.a] = pair.b;
		r.x0 = (int32_t)pair.a + 1;
		r.y0 = (int32_t)pair.b + 1;
	}
	s->pair_count = base;
	solve_region(s, r, depth + 1);
}

/* Finds counterparts in a region. */
static void solve_region(struct bc_align *s, struct region r, int depth)
{
	for (;;) {
		for (; r.x0 < r.x1 && r.y0 < r.y1 && s->x[r.x0] == s->y[r.y0]; r.x0++, r.y0++)
			s->counterpart[r.x0] = (uint32_t)r.y0;
		for (; r.x0 < r.x1 && r.y0 < r.y1 && s->x[r.x1 - 1] == s->y[r.y1 - 1];
			r.x1--, r.y1--)
			s->counterpart[r.x1 - 1] = (uint32_t)r.y1 - 1;
		if (r.x0 == r.x1 || r.y0 == r.y1)
			return;
		bool is_exact;
		struct bc_pair at = split_region(s, &r, &is_exact);
		size_t anchors = is_exact || depth >= DEPTH_MAX ? 0 : push_anchors(s, &r);
		if (anchors != 0) {
			solve_between(s, r, anchors, depth);
			return;
		}
		struct region half = {r.x0, (int32_t)at.a, r.y0, (int32_t)at.b};
		solve_region(s, half, depth);
		r.x0 = half.x1;
		r.y0 = half.y1;
	}
}

size_t bc_block_append(struct bc_block *blocks, size_t count, size_t a, size_t b, size_t n)
{
	struct bc_block *last = &blocks[count == 0 ? 0 : count - 1];

	if (n == 0)
		return count;
	if (count != 0 && last->a + last->n == a && last->b + last->n == b) {
		last->n += n;
		return count;
	}
	blocks[count] = (struct bc_block){.a = a, .b = b, .n = n};
	return count + 1;
}

size_t bc_align_run(struct bc_align *s, const uint64_t *a, size_t n, const uint64_t *b, size_t m,
	struct bc_block *blocks)
{
	size_t first = 0;
	size_t last = 0;

	assert(n <= s->items && m <= s->items);
	/* Match the common prefix and suffix first, even if those items also occur elsewhere. */
	while (first < n && first < m && a[first] == b[first])
		first++;
	while (first + last < n && first + last < m && a[n - 1 - last] == b[m - 1 - last])
		last++;
	a += first;
	b += first;
	n -= first + last;
	m -= first + last;
	clear_slots(s, n + m);
	for (size_t i = 0; i < n; i++)
		slot_of(s, a[i])->a_count++;
	for (size_t i = 0; i < m; i++)
		slot_of(s, b[i])->b_count++;
	struct region all = {.x1 = (int32_t)keep_common(s, a, n, s->x, s->x_at),
		.y1 = (int32_t)keep_common(s, b, m, s->y, s->y_at)};
	memset(s->counterpart, 0xff, (size_t)all.x1 * sizeof(*s->counterpart));
	s->pair_count = 0;
	s->diagonals = (int64_t)(n + m) * DIAGONALS_EACH;
	solve_region(s, all, 0);
	size_t count = bc_block_append(blocks, 0, 0, 0, first);
	for (int32_t i = 0; i < all.x1; i++)
		if (s->counterpart[i] != NONE)
			count = bc_block_append(blocks, count, first + s->x_at[i],
				first + s->y_at[s->counterpart[i]], 1);
	return bc_block_append(blocks, count, first + n, first + m, last);
}
