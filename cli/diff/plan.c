#include "cli/diff/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/diff/window.h"

/* A block ends a difference, without looking further ahead, if it has at least SURE_BLOCK matches
 * and SURE_RATIO times as many as there are unmatched entries before it. */
#define SURE_BLOCK 32u
#define SURE_RATIO 8u

/* With the whole look-ahead, each match makes up for this many unmatched entries. */
#define LAST_RATIO 4u

/* On the same clock: how far the partner of an entry is searched. */
#define REACH 64u

int bc_plan_init(struct bc_plan *p, const struct bc_match_options *options,
	const struct bc_window *a, const struct bc_window *b)
{
	size_t items = options->lookahead;

	*p = (struct bc_plan){.options = options, .a = a, .b = b};
	p->blocks = calloc(items, sizeof(*p->blocks));
	p->parts = calloc(items, sizeof(*p->parts));
	p->a_keys = calloc(items, sizeof(*p->a_keys));
	p->b_keys = calloc(items, sizeof(*p->b_keys));
	if (p->blocks != NULL && p->parts != NULL && p->a_keys != NULL && p->b_keys != NULL &&
		bc_align_open(&p->align, items) == 0)
		return 0;
	bc_plan_free(p);
	return -ENOMEM;
}

void bc_plan_free(struct bc_plan *p)
{
	bc_align_close(p->align);
	free(p->blocks);
	free(p->parts);
	free(p->a_keys);
	free(p->b_keys);
	*p = (struct bc_plan){0};
}

/* ---- alignment by content */

static void add_block(struct bc_plan *p, size_t a, size_t b, size_t n)
{
	p->count = bc_block_append(p->blocks, p->count, a, b, n);
}

/* Whether the n entries from x and from y match: keys are given. */
static bool is_run_same(const uint64_t *a, size_t x, const uint64_t *b, size_t y, size_t n)
{
	return memcmp(&a[x], &b[y], n * sizeof(*a)) == 0;
}

/* If entries of only one trace lie between two blocks, and they can be exchanged with one of the
 * blocks, moves them next to the entries without a match on its other side. So two differences
 * become one. */
static void join_gaps(struct bc_plan *p, const uint64_t *a, const uint64_t *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->count; i++) {
		struct bc_block next = p->blocks[i];
		while (kept != 0) {
			struct bc_block *last = &p->blocks[kept - 1];
			size_t x = last->a + last->n;
			size_t y = last->b + last->n;
			if (x != next.a && y != next.b)
				break;
			if (i + 1 < p->count && is_run_same(a, x, b, y, next.n)) {
				last->n += next.n;
				next.n = 0;
				break;
			}
			if (last->a + last->b == 0 ||
				!is_run_same(a, next.a - last->n, b, next.b - last->n, last->n))
				break;
			next.a -= last->n;
			next.b -= last->n;
			next.n += last->n;
			kept--;
		}
		if (next.n != 0)
			p->blocks[kept++] = next;
	}
	p->count = kept;
}

/* What has to be equal for entries to match: in this order, because deltas survive a shift of the
 * clock, but absolute times say which of several equal entries it is. */
enum keys {
	BY_TICK,  /* contents and absolute time */
	BY_DELTA, /* contents and time since the previous entry */
	BY_CONTENTS,
};

static enum keys first_keys(const struct bc_plan *p)
{
	if (!bc_time_is_compared(p->options))
		return BY_CONTENTS;
	return p->a->entries[p->a->begin].has_delta || p->b->entries[p->b->begin].has_delta
		       ? BY_DELTA
		       : BY_TICK;
}

/* Aligns the first n and k entries. */
static void align(struct bc_plan *p, size_t n, size_t k, enum keys keys)
{
	const uint64_t *a = p->a->keys + p->a->begin;
	const uint64_t *b = p->b->keys + p->b->begin;

	if (keys != BY_CONTENTS) {
		bc_window_timed_keys(p->a, n, keys == BY_DELTA, p->skew, p->a_keys);
		bc_window_timed_keys(p->b, k, keys == BY_DELTA, 0, p->b_keys);
		a = p->a_keys;
		b = p->b_keys;
	}
	p->count = bc_align_run(p->align, a, n, b, k, p->blocks);
	join_gaps(p, a, b);
}

/* Aligns what an alignment has left over in the first n and k entries. */
static void align_rest(struct bc_plan *p, size_t n, size_t k, enum keys keys)
{
	const uint64_t *a = p->a->keys + p->a->begin;
	const uint64_t *b = p->b->keys + p->b->begin;
	size_t parts = p->count;
	size_t x = 0;
	size_t y = 0;

	if (keys != BY_CONTENTS) {
		bc_window_timed_keys(p->a, n, true, 0, p->a_keys);
		bc_window_timed_keys(p->b, k, true, 0, p->b_keys);
		a = p->a_keys;
		b = p->b_keys;
	}
	memcpy(p->parts, p->blocks, parts * sizeof(*p->parts));
	p->count = 0;
	for (size_t i = 0; i <= parts; i++) {
		struct bc_block next = {.a = n, .b = k};
		if (i < parts)
			next = p->parts[i];
		/* The time of the last entries before a block may only seem different because the
		 * clock was shifted before them. */
		while (next.n != 0 && x < next.a && y < next.b && a[next.a - 1] == b[next.b - 1]) {
			next.a--;
			next.b--;
			next.n++;
		}
		if (x < next.a && y < next.b) {
			/* There is room for the blocks of a part behind those before it. */
			struct bc_block *within = p->blocks + p->count;
			size_t found = bc_align_run(
				p->align, a + x, next.a - x, b + y, next.b - y, within);
			for (size_t j = 0; j < found; j++) {
				struct bc_block block = within[j];
				add_block(p, x + block.a, y + block.b, block.n);
			}
		}
		add_block(p, next.a, next.b, next.n);
		x = next.a + next.n;
		y = next.b + next.n;
	}
}

/* Decides how much of an alignment is used: what lies behind a long difference at the end of the
 * windows may be aligned better when more can be seen. Returns whether there is a sure part. */
static bool choose_end(struct bc_plan *p, size_t n, size_t k, bool is_last_try)
{
	size_t loose = 0; /* entries without a match before the block */
	size_t run = 0;   /* matches up to the end of the block */
	size_t x = 0;
	size_t y = 0;
	size_t sure = 0;    /* blocks up to the last sure one */
	size_t longest = 0; /* up to the longest one that is far enough */
	size_t least = (n + k) / 8;

	if (bc_window_is_last(p->a) && bc_window_is_last(p->b) && n == bc_window_count(p->a) &&
		k == bc_window_count(p->b)) {
		p->a_stop = n;
		p->b_stop = k;
		return true;
	}
	for (size_t i = 0; i < p->count; i++) {
		const struct bc_block *block = &p->blocks[i];
		size_t gap = block->a - x + block->b - y;
		x = block->a + block->n;
		y = block->b + block->n;
		/* At the last try, matches make up for what is loose before them; many short blocks
		 * with few entries between them are as good as a long one. */
		run = is_last_try && gap < SURE_BLOCK ? run + block->n : block->n;
		loose += gap;
		if (is_last_try)
			loose -= loose < LAST_RATIO * block->n ? loose : LAST_RATIO * block->n;
		if (run >= SURE_BLOCK && (is_last_try ? loose == 0 : run >= SURE_RATIO * loose))
			sure = i + 1;
		if (longest == 0 || x + y <= least || block->n > p->blocks[longest - 1].n)
			longest = i + 1;
	}
	/* The last try must get on in large steps: to the longest block that ends beyond `least`,
	 * or the last one. */
	if (is_last_try && (sure == 0 || p->blocks[sure - 1].a + p->blocks[sure - 1].b < least))
		sure = sure < longest ? longest : sure;
	p->count = sure;
	if (sure == 0)
		return false;
	p->a_stop = p->blocks[sure - 1].a + p->blocks[sure - 1].n;
	p->b_stop = p->blocks[sure - 1].b + p->blocks[sure - 1].n;
	return true;
}

/* ---- alignment by time */

/* Whether an entry is earlier than another one by more than the window. */
static bool is_earlier(
	const struct bc_plan *p, const struct bc_entry *one, const struct bc_entry *other)
{
	if (one->epoch != other->epoch)
		return one->epoch < other->epoch;
	return one->tick < other->tick && other->tick - one->tick > p->options->window;
}

static bool is_match(const struct bc_plan *p, size_t x, size_t y)
{
	return p->a->keys[p->a->begin + x] == p->b->keys[p->b->begin + y] &&
	       bc_time_is_same(p->options, &p->a->entries[p->a->begin + x],
		       &p->b->entries[p->b->begin + y], p->skew);
}

/* Advances to the nearest match within the window. Returns false if there is none. */
static bool find_partner(const struct bc_plan *p, size_t n, size_t k, size_t *x, size_t *y)
{
	const struct bc_entry *a = &p->a->entries[p->a->begin + *x];
	const struct bc_entry *b = &p->b->entries[p->b->begin + *y];

	for (size_t d = 1; d <= REACH; d++) {
		bool is_in_b = *y + d < k && !is_earlier(p, a, &b[d]);
		bool is_in_a = *x + d < n && !is_earlier(p, b, &a[d]);
		if (is_in_b && is_match(p, *x, *y + d)) {
			*y += d;
			return true;
		}
		if (is_in_a && is_match(p, *x + d, *y)) {
			*x += d;
			return true;
		}
		if (!is_in_a && !is_in_b)
			break;
	}
	return false;
}

bool bc_plan_join(struct bc_plan *p, size_t n, size_t k)
{
	const struct bc_entry *a = p->a->entries + p->a->begin;
	const struct bc_entry *b = p->b->entries + p->b->begin;
	size_t x = 0;
	size_t y = 0;

	p->count = 0;
	while (x < n && y < k) {
		if (is_match(p, x, y) || find_partner(p, n, k, &x, &y)) {
			add_block(p, x++, y++, 1);
		} else if (is_earlier(p, &a[x], &b[y])) {
			x++;
		} else if (is_earlier(p, &b[y], &a[x])) {
			y++;
		} else {
			x++;
			y++;
		}
	}
	/* An entry at the end may have its partner behind what is looked at of the other trace. */
	bool a_ends = bc_window_is_last(p->a) && n == bc_window_count(p->a);
	bool b_ends = bc_window_is_last(p->b) && k == bc_window_count(p->b);
	const struct bc_block *last = p->count != 0 ? &p->blocks[p->count - 1]
						    : &(struct bc_block){0};
	while (!b_ends && x > last->a + last->n && !is_earlier(p, &a[x - 1], &b[k - 1]))
		x--;
	while (!a_ends && y > last->b + last->n && !is_earlier(p, &b[y - 1], &a[n - 1]))
		y--;
	p->a_stop = x;
	p->b_stop = y;
	return x + y != 0;
}

/* Counts the entries of the windows that match. */
static size_t count_matched(const struct bc_plan *p)
{
	size_t matched = 0;

	for (size_t i = 0; i < p->count; i++)
		matched += p->blocks[i].n;
	return matched;
}

bool bc_plan_align(struct bc_plan *p, size_t n, size_t k, bool is_last_try)
{
	enum keys keys = first_keys(p);

	align(p, n, k, keys);
	bool is_sure = !is_last_try && choose_end(p, n, k, false);
	if (keys == BY_TICK && !is_sure) {
		size_t matched = count_matched(p);
		keys = BY_DELTA;
		align(p, n, k, keys);
		is_sure = !is_last_try && choose_end(p, n, k, false);
		if (is_last_try && count_matched(p) <= matched) {
			keys = BY_TICK;
			align(p, n, k, keys);
		}
	}
	if (!is_last_try && !is_sure)
		return false;
	n = is_last_try ? n : p->a_stop;
	k = is_last_try ? k : p->b_stop;
	if (keys == BY_TICK)
		align_rest(p, n, k, BY_DELTA);
	/* What differs only in its time is one difference and not two. */
	if (keys != BY_CONTENTS)
		align_rest(p, n, k, BY_CONTENTS);
	p->matched = count_matched(p);
	return is_sure || choose_end(p, n, k, true);
}
