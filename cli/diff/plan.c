/* Which entries of two windows match, and how much of that is believed.
 *
 * A window shows only the next entries of its trace. The end of a long insertion may not be in
 * sight, and what seems to match near the end of a window may match better once more is. Five
 * heuristics decide how much of an alignment is used, in this order:
 *
 * 1. Growing windows (resolve() in match.c). 256 entries after the first difference are aligned,
 *    then 2,048, then --lookahead: the last try. So a small difference costs little.
 * 2. The key ladder (bc_plan_align()). Keys cover contents and absolute time; if that does not
 *    settle it, contents and delta. What is left over is aligned again with the next weaker keys,
 *    at last by contents only. The time tells which of several equal entries was lost.
 * 3. The settled run (choose_end()). Before the last try, an alignment is used up to its last run
 *    of 32 matches that is 8 times as long as all unmatched entries before it.
 * 4. The end of the last try. Without times, edge.c usually knows it. Otherwise (choose_end()),
 *    runs with small gaps between them count as one, and each match makes up for four unmatched
 *    entries before it. If that leaves less than an eighth of the windows, the alignment is used up
 *    to the longest block beyond that eighth. (Up to the last block instead, some edits are
 *    reported with three times as many lines as by GNU diff.)
 * 5. Far search (search_far() in match.c, far.c). If more than an eighth of the largest windows
 *    has no match, both files are read a second time, to find where they meet. Then 1 starts again.
 *
 * On the same clock, bc_plan_align_by_time() merges the windows by their times instead. */

#include "cli/diff/match_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Heuristic 3: a run of matches settles the differences before it if it has this many matches, and
 * this many for each unmatched entry. */
#define SETTLED_RUN   32u
#define SETTLED_RATIO 8u

/* Heuristic 4: each match makes up for this many unmatched entries before it. */
#define LAST_RATIO 4u

/* On the same clock: how many entries ahead a counterpart is searched. */
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

/* True if the n keys from x and from y are equal. */
static bool is_run_same(const uint64_t *a, size_t x, const uint64_t *b, size_t y, size_t n)
{
	return memcmp(&a[x], &b[y], n * sizeof(*a)) == 0;
}

/* Joins differences. Where entries of only one trace lie between two blocks and equal the end of
 * the block before or the start of the one after them, that block is shifted across. The difference
 * then lies next to the one on the other side of the block, so that two become one. */
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

/* What must be equal for entries to match: the key ladder, heuristic 2. */
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

/* Returns keys of the first n entries of a window; those that cover the time are in `buffer`. */
static const uint64_t *keys_of(const struct bc_plan *p, const struct bc_window *w, size_t n,
	enum keys keys, uint64_t *buffer)
{
	if (keys == BY_CONTENTS)
		return w->keys + w->begin;
	bc_window_timed_keys(w, n, keys == BY_DELTA, w == p->a ? p->skew : 0, buffer);
	return buffer;
}

/* Aligns the first n and k entries. */
static void align_windows(struct bc_plan *p, size_t n, size_t k, enum keys keys)
{
	const uint64_t *a = keys_of(p, p->a, n, keys, p->a_keys);
	const uint64_t *b = keys_of(p, p->b, k, keys, p->b_keys);

	p->count = bc_align_run(p->align, a, n, b, k, p->blocks);
	join_gaps(p, a, b);
}

/* Aligns the unmatched ones of the first n and k entries by other keys. */
static void align_rest(struct bc_plan *p, size_t n, size_t k, enum keys keys)
{
	const uint64_t *a = keys_of(p, p->a, n, keys, p->a_keys);
	const uint64_t *b = keys_of(p, p->b, k, keys, p->b_keys);
	size_t parts = p->count;
	size_t x = 0;
	size_t y = 0;

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
			/* Append the blocks; each takes entries, so the array is large enough. */
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

/* Sets the ends of what is used of an alignment (heuristics 3 and 4). False: that is nothing. */
static bool choose_end(struct bc_plan *p, size_t n, size_t k, bool is_last_try)
{
	size_t unmatched = 0; /* entries before the end of the block; see LAST_RATIO */
	size_t run = 0;       /* matches up to the end of the block */
	size_t used = 0;      /* blocks */
	size_t longest = 0;   /* block, from 1; the first one that ends beyond `least`, or longer */
	size_t least = (n + k) / 8;
	size_t x = 0;
	size_t y = 0;

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
		unmatched += gap;
		if (is_last_try)
			unmatched -= unmatched < LAST_RATIO * block->n ? unmatched
								       : LAST_RATIO * block->n;
		run = is_last_try && gap < SETTLED_RUN ? run + block->n : block->n;
		if (run >= SETTLED_RUN &&
			(is_last_try ? unmatched == 0 : run >= SETTLED_RATIO * unmatched))
			used = i + 1;
		if (longest == 0 || x + y <= least || block->n > p->blocks[longest - 1].n)
			longest = i + 1;
	}
	if (is_last_try && (used == 0 || p->blocks[used - 1].a + p->blocks[used - 1].b < least))
		used = used < longest ? longest : used;
	p->count = used;
	if (used == 0)
		return false;
	p->a_stop = p->blocks[used - 1].a + p->blocks[used - 1].n;
	p->b_stop = p->blocks[used - 1].b + p->blocks[used - 1].n;
	return true;
}

/* ---- alignment by time */

/* True if an entry is earlier than another one by more than --window. */
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

/* Advances to the nearest match within --window. Returns false if nothing matches. */
static bool find_counterpart(const struct bc_plan *p, size_t n, size_t k, size_t *x, size_t *y)
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

bool bc_plan_align_by_time(struct bc_plan *p, size_t n, size_t k)
{
	const struct bc_entry *a = p->a->entries + p->a->begin;
	const struct bc_entry *b = p->b->entries + p->b->begin;
	size_t x = 0;
	size_t y = 0;

	p->count = 0;
	while (x < n && y < k) {
		if (is_match(p, x, y) || find_counterpart(p, n, k, &x, &y)) {
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
	/* The counterparts of the last entries may follow in what has not been read of the other
	 * trace: leave these entries for the next round. */
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

	align_windows(p, n, k, keys);
	bool is_settled = !is_last_try && choose_end(p, n, k, false);
	if (keys == BY_TICK && !is_settled) {
		size_t matched = count_matched(p);
		keys = BY_DELTA;
		align_windows(p, n, k, keys);
		is_settled = !is_last_try && choose_end(p, n, k, false);
		if (is_last_try && count_matched(p) <= matched) {
			keys = BY_TICK;
			align_windows(p, n, k, keys);
		}
	}
	if (!is_last_try && !is_settled)
		return false;
	n = is_last_try ? n : p->a_stop;
	k = is_last_try ? k : p->b_stop;
	if (keys == BY_TICK)
		align_rest(p, n, k, BY_DELTA);
	if (keys != BY_CONTENTS)
		align_rest(p, n, k, BY_CONTENTS);
	p->matched = count_matched(p);
	return is_settled || choose_end(p, n, k, true);
}

void bc_plan_align_to_edge(struct bc_plan *p, size_t n, size_t k)
{
	p->count = 0;
	if (n != 0 && k != 0)
		align_windows(p, n, k, BY_CONTENTS);
	const struct bc_block *last = p->count != 0 ? &p->blocks[p->count - 1]
						    : &(struct bc_block){.a = n, .b = k};
	p->a_stop = last->a + last->n;
	p->b_stop = last->b + last->n;
}
