/* A stack has lines, the one touched last on top: a ring. A cache of 2^k lines has the top 2^k.
 * Each line knows the smallest such k, and a mark is at the last line of each cache that is full. A
 * touch moves one line out of each cache that lacked the touched one, so it costs the logarithm of
 * its depth (Kim, Hill and Wood, SIGMETRICS 1991).
 *
 * When there are too many lines, `far` drops those with the higher hashes: one in 2^shift remains,
 * and a depth of d stands for d * 2^shift (SHARDS: Waldspurger and others, FAST 2015). That needs
 * many lines in the sample, and small caches have few. So `near` continues with the top of the
 * stack. Hashes replace lines; those below 2^48 have different ones. */
#include "cli/stats/lru_stack.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SIZES 65u

struct line {
	uint64_t hash;
	uint32_t above;
	uint32_t below;
	uint32_t k;
};

struct stack {
	bool is_near;
	unsigned shift;
	uint64_t hash_max;
	uint32_t max_lines;
	uint32_t count;
	uint32_t top;
	uint32_t marks[SIZES];
	/* Touches, each counted 2^shift times: of lines that were not in the stack, and of those
	 * that were in a cache of 2^k lines, not in a smaller one. */
	uint64_t cold;
	uint64_t hits[SIZES];
	/* Hash table, of 2 * max_lines: indexes of lines plus 1; 0: free. */
	uint32_t slots[2 * BC_LRU_STACK_LINES];
	struct line lines[BC_LRU_STACK_LINES];
	struct line old[BC_LRU_STACK_LINES]; /* when lines are dropped */
};

struct bc_lru_stack {
	struct stack far;
	struct stack near; /* if far.shift != 0 */
};

struct bc_lru_stack *bc_lru_stack_open(uint32_t max_lines)
{
	struct bc_lru_stack *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->far.hash_max = UINT64_MAX;
	s->far.max_lines = max_lines;
	return s;
}

static uint32_t *find_slot(struct stack *s, uint64_t hash)
{
	const uint32_t mask = 2 * s->max_lines - 1;
	uint32_t at = (uint32_t)hash & mask;

	while (s->slots[at] != 0 && s->lines[s->slots[at] - 1].hash != hash)
		at = (at + 1) & mask;
	return &s->slots[at];
}

/* Puts a line on top that caches of fewer than 2^k lines lacked. */
static void put_on_top(struct stack *s, uint32_t i, unsigned k)
{
	struct line *line = &s->lines[i];

	for (unsigned j = 0; j < k; j++) {
		struct line *last = &s->lines[s->marks[j]];
		last->k++;
		s->marks[j] = j != 0 ? last->above : i;
	}
	line->k = 0;
	line->below = s->top;
	line->above = s->lines[s->top].above;
	s->lines[line->above].below = i;
	s->lines[s->top].above = i;
	s->top = i;
}

static void add_line(struct stack *s, uint64_t hash)
{
	const uint32_t i = s->count++;
	const unsigned full = i != 0 ? 32 - (unsigned)__builtin_clz(i) : 0; /* caches */

	*find_slot(s, hash) = i + 1;
	s->lines[i].hash = hash;
	put_on_top(s, i, full);
	if ((i & s->count) == 0)
		s->marks[full] = s->lines[i].above;
}

/* Drops about half of the lines. */
static void halve(struct stack *s)
{
	uint32_t i = s->top;
	uint32_t depth = s->count;

	memcpy(s->old, s->lines, s->count * sizeof(*s->old));
	memset(s->slots, 0, 2 * s->max_lines * sizeof(*s->slots));
	s->lines[0] = (struct line){.hash = 0};
	s->count = s->top = 0;
	s->hash_max >>= !s->is_near;
	s->shift += !s->is_near;
	for (; depth != 0; depth--) {
		i = s->old[i].above; /* the lowest first */
		if (s->old[i].hash <= s->hash_max && (!s->is_near || depth <= s->max_lines / 2))
			add_line(s, s->old[i].hash);
	}
}

static void touch(struct stack *s, uint64_t hash)
{
	const uint32_t slot = *find_slot(s, hash);
	struct line *line = &s->lines[slot - (slot != 0)];
	const unsigned k = line->k;

	if (slot == 0) {
		s->cold += UINT64_C(1) << s->shift;
		add_line(s, hash);
		return;
	}
	s->hits[k + s->shift] += UINT64_C(1) << s->shift;
	if (slot - 1 == s->top)
		return;
	if (s->marks[k] == slot - 1)
		s->marks[k] = line->above;
	s->lines[line->above].below = line->below;
	s->lines[line->below].above = line->above;
	put_on_top(s, slot - 1, k);
}

void bc_lru_stack_touch(struct bc_lru_stack *s, uint64_t line, unsigned space)
{
	uint64_t hash = (line ^ (uint64_t)space << 48) + UINT64_C(0x9E3779B97F4A7C15);

	hash *= UINT64_C(0xBF58476D1CE4E5B9);
	hash = (hash ^ hash >> 29) * UINT64_C(0x94D049BB133111EB);
	if (hash <= s->far.hash_max)
		touch(&s->far, hash);
	if (s->far.shift != 0)
		touch(&s->near, hash);
	if (s->far.count == s->far.max_lines && s->far.shift == 0) {
		s->near = s->far;
		s->near.is_near = true;
		s->near.max_lines /= 8;
	}
	while (s->far.count == s->far.max_lines)
		halve(&s->far);
	if (s->near.is_near && s->near.count >= s->near.max_lines)
		halve(&s->near);
}

uint64_t bc_lru_stack_misses(const struct bc_lru_stack *s, unsigned k, unsigned *shift)
{
	const bool is_near = s->near.is_near && UINT64_C(1) << k <= s->near.max_lines / 2;
	const struct stack *stack = is_near ? &s->near : &s->far;
	uint64_t misses = stack->cold;

	*shift = stack->shift;
	while (++k < SIZES)
		misses += stack->hits[k];
	return misses;
}
