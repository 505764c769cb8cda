/* Where the best alignment leaves the largest windows.
 *
 * The end of a window is not the end of its trace. What seems to be the shortest alignment of two
 * windows may put off a long difference, at the price of a few short ones in each window: loops
 * invite this. So both traces are read a second time, AHEAD times as far as the windows, keeping
 * only the key of each entry. A greedy search (Myers 1986) finds the fewest insertions and
 * deletions by which the end of these keys is reached in either trace; where a trace ends, both
 * ends. It keeps no paths, only where each one leaves the windows.
 *
 * The search takes as many steps as a window has entries, at most; then the path that got furthest
 * is the best one, if it is well beyond the windows. Its cost is quadratic, so there is a limit for
 * all searches without a result. */
#include "cli/diff/match_internal.h"

#include <stdlib.h>
#include <string.h>

#define AHEAD 4u
#define NONE  INT32_MIN

/* Diagonals that all searches without a result may visit: these, and as many for each entry. */
#define DIAGONALS      (UINT64_C(1) << 27)
#define DIAGONALS_EACH 32u

/* The furthest position in A on a diagonal (position in A - position in B), and the diagonal on
 * which the path to it left the windows. */
struct bc_edge_reach {
	int32_t x;
	int32_t left;
};

static bool open_ahead(struct bc_edge_keys *s, const struct bc_window *w)
{
	s->room = AHEAD * w->limit;
	s->keys = calloc(s->room, sizeof(*s->keys));
	s->again = s->keys != NULL ? w->source.again(w->source.context) : NULL;
	return s->again != NULL;
}

/* Reads the keys of the entries from the window on. */
static void read_ahead(struct bc_edge_keys *s, const struct bc_window *w)
{
	uint64_t passed = w->position - s->position;
	size_t n = passed < s->count ? (size_t)passed : s->count;

	s->position += n;
	s->count -= n;
	memmove(s->keys, s->keys + n, s->count * sizeof(*s->keys));
	while (s->count != s->room &&
		(s->left != 0 || (s->left = w->source.next(s->again, &s->run)) != 0)) {
		if (s->position < w->position)
			s->position++;
		else
			s->keys[s->count++] = bc_compare_hash(s->run, w->fields);
		s->run++;
		s->left--;
	}
}

/* Returns the diagonal on which the best path leaves the windows of n and k entries, or NONE. */
static int32_t search(struct bc_edge *edge, int32_t n, int32_t k, int32_t steps, uint64_t limit)
{
	const uint64_t *a = edge->a.keys;
	const uint64_t *b = edge->b.keys;
	const int32_t x_end = (int32_t)edge->a.count;
	const int32_t y_end = (int32_t)edge->b.count;
	const bool a_ends = edge->a.count != edge->a.room;
	const bool b_ends = edge->b.count != edge->b.room;
	const struct bc_edge_reach nothing = {.x = -1, .left = NONE};
	struct bc_edge_reach *reach = edge->reach + steps + 2;
	int32_t furthest = 0;
	int32_t best = NONE;

	reach[1] = (struct bc_edge_reach){.x = 0, .left = NONE};
	reach[-1] = nothing;
	for (int32_t step = 0; step <= steps && edge->diagonals < limit; step++) {
		edge->diagonals += (uint64_t)step + 1;
		furthest = 0;
		for (int32_t d = step; d >= -step; d -= 2) {
			struct bc_edge_reach at = reach[d + 1];
			if (reach[d - 1].x >= at.x) {
				at = reach[d - 1];
				at.x++;
			}
			int32_t y = at.x - d;
			for (; at.x < x_end && y < y_end && a[at.x] == b[y]; y++)
				at.x++;
			if (at.left == NONE && (at.x >= n || y >= k))
				at.left = d;
			reach[d] = at;
			if ((at.x == x_end && !a_ends) || (y == y_end && !b_ends) ||
				(at.x == x_end && y == y_end))
				return at.left;
			if (at.x + y > furthest) {
				furthest = at.x + y;
				best = at.left;
			}
		}
		reach[step + 2] = reach[-step - 2] = nothing;
	}
	return furthest >= (n + k) / 8 * 9 ? best : NONE;
}

bool bc_edge_find(struct bc_edge *edge, const struct bc_window *a, const struct bc_window *b,
	size_t *n, size_t *k)
{
	if (edge->reach == NULL) {
		edge->reach = calloc(2 * a->limit + 5, sizeof(*edge->reach));
		edge->can_read = edge->reach != NULL && open_ahead(&edge->a, a) &&
				 open_ahead(&edge->b, b);
	}
	if (!edge->can_read)
		return false;
	read_ahead(&edge->a, a);
	read_ahead(&edge->b, b);
	uint64_t diagonals = edge->diagonals;
	int32_t d = search(edge, (int32_t)*n, (int32_t)*k, (int32_t)a->limit,
		DIAGONALS + DIAGONALS_EACH * (a->position + b->position));
	if (d == NONE)
		return false;
	edge->diagonals = diagonals;
	int64_t more_in_a = (int64_t)*n - (int64_t)*k;
	if (d >= more_in_a)
		*k -= (size_t)(d - more_in_a);
	else
		*n -= (size_t)(more_in_a - d);
	return true;
}

void bc_edge_close(
	struct bc_edge *edge, const struct bc_match_source *a, const struct bc_match_source *b)
{
	if (edge->a.again != NULL)
		a->close(edge->a.again);
	if (edge->b.again != NULL)
		b->close(edge->b.again);
	free(edge->a.keys);
	free(edge->b.keys);
	free(edge->reach);
}
