#include "formats/diff/match_stretch.h"

#include <stdbool.h>
#include <string.h>

#include "formats/diff/match_time.h"

struct search {
	struct bc_match_stretch *stretch;
	const struct bc_backlog *a;
	const struct bc_backlog *b;
	const struct bc_match_options *options;
	uint64_t skew;
};

/* Pairs an entry with an unmatched one of the other row. */
static bool find_waiting(
	const struct search *s, struct bc_match_waiting *waiting, size_t other, bool is_a)
{
	for (size_t i = 0; i < waiting->count; i++) {
		size_t x = s->a->begin + (is_a ? other : waiting->at[i]);
		size_t y = s->b->begin + (is_a ? waiting->at[i] : other);
		if (s->a->hashes[x] != s->b->hashes[y] ||
			!bc_match_time_is_same(
				s->options, &s->a->entries[x], &s->b->entries[y], s->skew))
			continue;
		memmove(&waiting->at[i], &waiting->at[i + 1],
			(--waiting->count - i) * sizeof(waiting->at[0]));
		return true;
	}
	return false;
}

/* Whether the oldest unmatched entry is too old to find a match. */
static bool is_stale(const struct search *s, const struct bc_backlog *held,
	const struct bc_match_waiting *waiting, uint64_t newest)
{
	if (waiting->count == 0)
		return false;
	uint64_t age = newest - held->ticks[held->begin + waiting->at[0]];
	return age > s->options->window && age < UINT64_C(1) << 63;
}

/* Adds the entries at distance i from the heads. Returns whether the stretch may continue. */
static bool take_pair(const struct search *s, size_t i)
{
	struct bc_match_waiting *a = &s->stretch->a;
	struct bc_match_waiting *b = &s->stretch->b;

	if (!find_waiting(s, b, i, true))
		a->at[a->count++] = i;
	if (!find_waiting(s, a, i, false))
		b->at[b->count++] = i;
	uint64_t a_tick = s->a->ticks[s->a->begin + i];
	uint64_t b_tick = s->b->ticks[s->b->begin + i];
	return a->count < BC_STRETCH_WAITING && b->count < BC_STRETCH_WAITING &&
	       !is_stale(s, s->a, a, b_tick - s->skew) && !is_stale(s, s->b, b, a_tick + s->skew);
}

int64_t bc_match_stretch_find(struct bc_match_stretch *stretch, struct bc_match_row *a,
	struct bc_match_row *b, const struct bc_match_options *options, uint64_t skew)
{
	const struct search s = {stretch, &a->held, &b->held, options, skew};

	stretch->a.count = stretch->b.count = 0;
	for (size_t i = 0; i < options->lookahead; i++) {
		int rc = bc_match_row_hold(a, i + 1);
		rc = rc == 0 ? bc_match_row_hold(b, i + 1) : rc;
		if (rc != 0)
			return rc;
		if (i >= bc_backlog_count(s.a) || i >= bc_backlog_count(s.b) ||
			(s.a->entries[s.a->begin + i].has & BC_HAS_TIME) == 0)
			return 0;
		bool goes_on = take_pair(&s, i);
		if (stretch->a.count == 0 && stretch->b.count == 0)
			return (int64_t)i + 1;
		if (!goes_on)
			return 0;
	}
	return 0;
}
