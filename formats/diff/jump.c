#include "formats/diff/jump.h"

#include <errno.h>
#include <stdlib.h>

/* Shorter runs are ignored, except at the ends of the rows. */
#define RUN_MIN 16u

/* A run of at least this length that reaches the end of the known items counts as a long one. */
#define OPEN_RUN 256u

/* Limit of time comparisons per search. */
#define STEPS_MAX (1u << 18)

/* Solutions with more edits than this get a second look. */
#define SMALL_EDITS 16u

/* Distance of the positions in b at which equal stretches are looked up. */
#define STEP 16u

int bc_jump_init(struct bc_jump_finder *finder, size_t items)
{
	if (bc_recur_init(&finder->a, items) != 0)
		return -ENOMEM;
	if (bc_recur_init(&finder->b, items) != 0)
		goto no_b;
	finder->prefixes = calloc(BC_JUMP_LONG, sizeof(*finder->prefixes));
	if (finder->prefixes != NULL)
		return 0;
	bc_recur_free(&finder->b);
no_b:
	bc_recur_free(&finder->a);
	return -ENOMEM;
}

void bc_jump_free(struct bc_jump_finder *finder)
{
	free(finder->prefixes);
	finder->prefixes = NULL;
	bc_recur_free(&finder->b);
	bc_recur_free(&finder->a);
}

/* The value of a run of n items here. */
static size_t worth(
	const struct bc_align_row *a, size_t x, const struct bc_align_row *b, size_t y, size_t n)
{
	bool is_a_over = x + n == a->count;
	bool is_b_over = y + n == b->count;

	if (is_a_over && is_b_over && a->is_whole && b->is_whole)
		return BC_JUMP_LONG;
	bool is_open = (is_a_over && !a->is_whole) || (is_b_over && !b->is_whole);
	return n >= BC_JUMP_LONG || (is_open && n >= OPEN_RUN) ? BC_JUMP_LONG : n;
}

static size_t count_run(const struct bc_align_row *a, size_t x, const struct bc_align_row *b,
	size_t y, const struct bc_align_time *time)
{
	size_t n = 0;

	while (n < BC_JUMP_LONG && x + n < a->count && y + n < b->count &&
		bc_align_is_match(a, x + n, b, y + n, time))
		n++;
	return n;
}

/* The skew of the clocks according to the next pair with times. */
static uint64_t skew_at(
	const struct bc_align_row *a, size_t x, const struct bc_align_row *b, size_t y)
{
	size_t n = 0;

	while (n < RUN_MIN && x + n + 1 < a->count && y + n + 1 < b->count &&
		a->ticks[x + n] == BC_TICK_NONE)
		n++;
	return b->ticks[y + n] - a->ticks[x + n];
}

void bc_jump_weigh(struct bc_jump *jump, const struct bc_align_row *a, const struct bc_align_row *b,
	const struct bc_align_time *time)
{
	size_t x = jump->a;
	size_t y = jump->b;
	size_t run = worth(a, x, b, y, count_run(a, x, b, y, time));

	jump->run = run;
	jump->is_clock_kept = true;
	if (time == NULL || run == BC_JUMP_LONG || x == a->count || y == b->count)
		return;
	struct bc_align_time other = {.skew = skew_at(a, x, b, y), .window = time->window};
	run = worth(a, x, b, y, count_run(a, x, b, y, &other));
	if (run / 2 <= jump->run)
		return;
	jump->run = run;
	jump->is_clock_kept = false;
}

static size_t value(const struct bc_jump *jump)
{
	return jump->is_clock_kept ? jump->run : jump->run / 2;
}

bool bc_jump_is_better(const struct bc_jump *one, const struct bc_jump *other)
{
	size_t x = value(one);
	size_t y = value(other);

	if (one->edits == other->edits)
		return x > y || (x == y && one->hunks < other->hunks);
	if (one->edits > other->edits)
		return x > y + y / 2 + (one->edits - other->edits) / 16;
	return y <= x + x / 2 + (other->edits - one->edits) / 16;
}

struct search {
	const struct bc_align_row *a;
	const struct bc_align_row *b;
	const struct bc_align_time *time;
	struct bc_jump *best;
	size_t steps;
	bool is_any;
	size_t hashes_run; /* length of the run at the candidate, ignoring times and row ends */
	bool has_found;
};

/* Whether to prefer a candidate to the best one. find_any candidates may skip items that both rows
 * contain. So one that matches more of these is preferred, unless that is little compared with the
 * items that both rows have there and the run after it is long. */
static bool is_worth_it(const struct search *s, const struct bc_jump *jump)
{
	size_t least = jump->a < jump->b ? jump->a : jump->b;

	if (!bc_jump_is_better(jump, s->best))
		return false;
	if (!s->is_any)
		return true;
	/* The ends of the rows may be far away and have few matches. */
	return 2 * s->best->run < least && s->hashes_run >= 2 * least &&
	       (value(jump) >= BC_JUMP_LONG / 4 ||
		       value(jump) > 2 * value(s->best) + jump->edits - s->best->edits);
}

/* Evaluates a candidate with a run of this length. Most are rejected before their times are
 * compared. */
static void consider(struct search *s, size_t x, size_t y, size_t edits, size_t run)
{
	struct bc_jump jump = {.a = x, .b = y, .edits = edits, .hunks = 1};

	s->hashes_run = run;
	jump.run = worth(s->a, x, s->b, y, run);
	jump.is_clock_kept = bc_align_is_match(s->a, x, s->b, y, s->time);
	if (jump.run < RUN_MIN || s->steps > STEPS_MAX || !is_worth_it(s, &jump))
		return;
	if (s->time != NULL) {
		bc_jump_weigh(&jump, s->a, s->b, s->time);
		s->steps += jump.run;
		if (jump.run < RUN_MIN || !is_worth_it(s, &jump))
			return;
	}
	*s->best = jump;
	s->has_found = true;
}

/* Finds where the start of one row occurs in the other, for all positions in linear time: the Z
 * algorithm (D. Gusfield, "Algorithms on Strings, Trees, and Sequences", 1.4). */
static void find_head(struct search *s, uint32_t *z, const struct bc_align_row *head,
	const struct bc_align_row *in, bool is_in_a)
{
	size_t length = head->count < BC_JUMP_LONG ? head->count : BC_JUMP_LONG;
	const uint64_t *p = head->hashes;
	size_t left = 0;
	size_t right = 0;

	z[0] = (uint32_t)length;
	for (size_t i = 1; i < length; i++) {
		size_t k = 0;
		if (i < right)
			k = z[i - left] < right - i ? z[i - left] : right - i;
		while (i + k < length && p[k] == p[i + k])
			k++;
		z[i] = (uint32_t)k;
		if (i + k > right)
			left = i, right = i + k;
	}
	left = right = 0;
	for (size_t i = 1; i < in->count; i++) {
		size_t k = 0;
		if (i < right)
			k = z[i - left] < right - i ? z[i - left] : right - i;
		while (k < length && i + k < in->count && p[k] == in->hashes[i + k])
			k++;
		if (i + k > right)
			left = i, right = i + k;
		if (k != 0)
			consider(s, is_in_a ? i : 0, is_in_a ? 0 : i, i, k);
	}
}

/* Tries to replace the same number of items in both rows. Fails if more of them match than chance
 * explains. */
static void find_replaced(struct search *s, size_t most)
{
	size_t count = s->a->count < s->b->count ? s->a->count : s->b->count;
	size_t matches = 0;

	for (size_t i = 0; i < count && i <= most;) {
		size_t run = 0;
		while (i + run < count && run < BC_JUMP_LONG &&
			s->a->hashes[i + run] == s->b->hashes[i + run])
			run++;
		if (i != 0 && run != 0 && 4 * matches <= i)
			consider(s, i, i, 2 * i, run);
		matches += run;
		i += run + 1;
	}
}

/* Whether the start of one row may occur again in the other, for long enough to be useful. This
 * avoids most searches. */
static bool may_recur(const struct bc_recur *in, const struct bc_align_row *head,
	const struct bc_align_row *row, uint64_t position, size_t need)
{
	/* Near the end there are no stretches to look up. */
	if (head->count < BC_RECUR_ITEMS || (row->is_whole && row->count < 2 * BC_RECUR_ITEMS))
		return head->is_whole && row->is_whole;
	if (bc_recur_end(in, head->hashes) <= position + 1)
		return false;
	if (need <= BC_RECUR_ITEMS || need > head->count)
		return true;
	return bc_recur_end(in, head->hashes + need - BC_RECUR_ITEMS) > position + 1;
}

bool bc_jump_find(struct bc_jump_finder *finder, const struct bc_align_row *a, uint64_t a_position,
	const struct bc_align_row *b, uint64_t b_position, const struct bc_align_time *time,
	struct bc_jump *best)
{
	struct search s = {.a = a, .b = b, .time = time, .best = best};
	bool is_small = best->run != 0 && best->edits < SMALL_EDITS;

	bc_recur_pop(&finder->a, a->hashes, a->count, a_position);
	bc_recur_pop(&finder->b, b->hashes, b->count, b_position);
	find_replaced(&s, is_small ? 4 * best->edits + SMALL_EDITS : SIZE_MAX);
	size_t need = value(best) + value(best) / 4;
	if (may_recur(&finder->a, b, a, a_position, need))
		find_head(&s, finder->prefixes, b, a, true);
	if (may_recur(&finder->b, a, b, b_position, need))
		find_head(&s, finder->prefixes, a, b, false);
	return s.has_found;
}

bool bc_jump_find_any(const struct bc_jump_finder *finder, const struct bc_align_row *a,
	uint64_t a_position, const struct bc_align_row *b, const struct bc_align_time *time,
	struct bc_jump *best)
{
	struct search s = {.a = a, .b = b, .time = time, .best = best, .is_any = true};

	for (size_t y = 0; y + BC_RECUR_ITEMS <= b->count;) {
		uint64_t end = bc_recur_end(&finder->a, b->hashes + y);
		size_t x = end > a_position ? (size_t)(end - 1 - a_position) : a->count;
		size_t run = x < a->count ? count_run(a, x, b, y, NULL) : 0;
		size_t back = 0;
		if (run < BC_RECUR_ITEMS) {
			y += STEP;
			continue;
		}
		while (back < x && back < y && a->hashes[x - back - 1] == b->hashes[y - back - 1])
			back++;
		run += back;
		consider(&s, x - back, y - back, x + y - 2 * back,
			run < BC_JUMP_LONG ? run : BC_JUMP_LONG);
		y += run - back;
	}
	return s.has_found;
}
