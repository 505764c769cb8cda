/* Compares two traces: reads both side by side, and reports each entry once.
 *
 * As long as entries are equal, bc_match_run() takes them from the sources without a copy, or skips
 * them where the sink finds their bytes equal. At the first difference, resolve() fills the
 * windows, has them aligned (plan.c explains how, and how much of an alignment is used), and
 * reports blocks of matches and the hunks between them. What is reported leaves the windows;
 * entries beyond the used part stay for the next round.
 *
 * Invariants: windows hold at most --lookahead entries; the skew is B's clock against A's, as of
 * the last match; plan.blocks is valid only within resolve(). */
#include "cli/diff/match_internal.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- equal entries at about the same time in a different order */

/* The unmatched entries of a window, as indices from its begin. */
struct leftover {
	uint32_t *at;
	size_t count;
};

static bool sorts_before(const struct bc_window *w, uint32_t i, uint64_t key, uint64_t tick)
{
	const uint64_t own = w->keys[w->begin + i];

	return own != key ? own < key : w->entries[w->begin + i].tick < tick;
}

static int compare_leftovers(const void *x, const void *y, void *context)
{
	const struct bc_window *w = context;
	uint32_t i = *(const uint32_t *)x;
	uint32_t j = *(const uint32_t *)y;

	if (sorts_before(w, i, w->keys[w->begin + j], w->entries[w->begin + j].tick))
		return -1;
	if (sorts_before(w, j, w->keys[w->begin + i], w->entries[w->begin + i].tick))
		return 1;
	return (i > j) - (i < j);
}

static size_t find_leftover(
	const struct bc_window *w, const struct leftover *left, uint64_t key, uint64_t tick)
{
	size_t low = 0;
	size_t high = left->count;

	while (low != high) {
		size_t middle = low + (high - low) / 2;
		if (sorts_before(w, left->at[middle], key, tick))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Pairs leftover entries of A and B whose contents are equal, and whose times are after adding
 * `skew` to A's. Sets is_taken for both. Sorts b_left. */
static void reorder_pair(const struct bc_match_options *options, const struct bc_window *a,
	const struct leftover *a_left, const struct bc_window *b, const struct leftover *b_left,
	uint64_t skew)
{
	uint64_t window = options->window;

	qsort_r(b_left->at, b_left->count, sizeof(*b_left->at), compare_leftovers,
		(void *)(uintptr_t)b);
	for (size_t i = 0; i < a_left->count; i++) {
		size_t x = a->begin + a_left->at[i];
		uint64_t tick = a->entries[x].tick + skew;
		/* By B's clock, the time may be before tick 0. */
		uint64_t from = tick > window && tick >> 63 == 0 ? tick - window : 0;
		for (size_t j = find_leftover(b, b_left, a->keys[x], from); j < b_left->count;
			j++) {
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

/* ---- match */

/* Heuristic 1: entries aligned first after a difference, and the factor for each further try. */
#define FIRST_WINDOW  256u
#define WINDOW_GROWTH 8u

/* Heuristic 5: the search goes beyond the look-ahead if one entry in FAR_MATCHED has no match. */
#define FAR_MATCHED 8u

/* Budget of heuristic 5: this many entries may be read again, plus one for each entry compared. */
#define REREAD_ENTRIES (UINT64_C(4) * BC_FAR_MAX)

struct bc_match {
	struct bc_match_options options;
	struct bc_match_sink sink;
	struct bc_window a;
	struct bc_window b;
	bool is_origin_open; /* the next pair may set the skew */
	bool has_differed;   /* since the last match */
	struct bc_plan plan;
	struct leftover a_left;
	struct leftover b_left;
	struct bc_edge edge;
	uint64_t reread_entries; /* read again so far */
	bool is_pipe;            /* a trace can be read only once */
};

int bc_match_open(struct bc_match **match, const struct bc_match_options *options,
	const struct bc_match_source *a, const struct bc_match_source *b,
	const struct bc_match_sink *sink)
{
	struct bc_match *m = calloc(1, sizeof(*m));
	size_t items = options->lookahead;

	*match = m;
	if (m == NULL)
		return -ENOMEM;
	m->options = *options;
	m->sink = *sink;
	m->is_origin_open = options->is_relative;
	m->a_left.at = calloc(items, sizeof(*m->a_left.at));
	m->b_left.at = calloc(items, sizeof(*m->b_left.at));
	if (m->a_left.at != NULL && m->b_left.at != NULL &&
		bc_window_init(&m->a, a, options->fields, items) == 0 &&
		bc_window_init(&m->b, b, options->fields, items) == 0 &&
		bc_plan_init(&m->plan, &m->options, &m->a, &m->b) == 0)
		return 0;
	bc_match_close(m);
	*match = NULL;
	return -ENOMEM;
}

void bc_match_close(struct bc_match *m)
{
	if (m == NULL)
		return;
	bc_edge_close(&m->edge, &m->a.source, &m->b.source);
	bc_plan_free(&m->plan);
	bc_window_free(&m->a);
	bc_window_free(&m->b);
	free(m->a_left.at);
	free(m->b_left.at);
	free(m);
}

/* ---- times */

uint64_t bc_match_fields(
	const struct bc_match *m, const struct bc_entry *a, const struct bc_entry *b)
{
	return bc_compare_entries(a, b, m->options.fields) |
	       (bc_time_is_same(&m->options, a, b, m->plan.skew) ? 0 : BC_FIELD_TIME);
}

static void set_skew(struct bc_match *m, uint64_t skew, bool is_reported)
{
	int64_t ticks = (int64_t)(skew - m->plan.skew);

	m->plan.skew = skew;
	if (is_reported && ticks != 0)
		m->sink.shifted(m->sink.context, ticks);
}

/* True if the time since the previous entry is the same in A and in B. */
static bool is_step_same(const struct bc_match *m, size_t x, size_t y)
{
	struct bc_predecessor before_a = bc_window_before(&m->a, x);
	struct bc_predecessor before_b = bc_window_before(&m->b, y);
	const struct bc_entry *a = &m->a.entries[m->a.begin + x];
	const struct bc_entry *b = &m->b.entries[m->b.begin + y];

	return before_a.has_time && before_b.has_time && before_a.epoch == a->epoch &&
	       before_b.epoch == b->epoch && (a->traits & b->traits & BC_TRAIT_TIME) != 0 &&
	       a->tick - before_a.tick == b->tick - before_b.tick;
}

/* After a difference, a pair may set a new skew only if the next pair confirms it. True if entries
 * x and y do, or if both traces end here. */
static bool is_next_step_same(const struct bc_match *m, size_t x, size_t y)
{
	size_t n = bc_window_count(&m->a);
	size_t k = bc_window_count(&m->b);

	if (x < n && y < k)
		return m->a.keys[m->a.begin + x] == m->b.keys[m->b.begin + y] &&
		       is_step_same(m, x, y);
	return x == n && y == k && bc_window_is_last(&m->a) && bc_window_is_last(&m->b);
}

/* Entries x of A and y of B have equal contents, but different times at the current skew. Returns
 * true and sets a new skew if that explains the difference: at the start, after a break in the
 * clock, or if the time since the previous entries is the same. */
static bool accept_new_skew(struct bc_match *m, size_t x, size_t y)
{
	const struct bc_entry *a = &m->a.entries[m->a.begin + x];
	const struct bc_entry *b = &m->b.entries[m->b.begin + y];
	struct bc_predecessor before_a = bc_window_before(&m->a, x);
	struct bc_predecessor before_b = bc_window_before(&m->b, y);
	uint64_t skew = b->tick - a->tick;

	if (m->options.is_same_clock || (a->traits & b->traits & BC_TRAIT_TIME) == 0 ||
		(a->unit != b->unit && a->unit != BC_UNIT_TICK && b->unit != BC_UNIT_TICK))
		return false;
	if (!m->is_origin_open && a->has_delta && b->has_delta &&
		bc_time_has_no_delta(a) != bc_time_has_no_delta(b))
		return false;
	if (m->is_origin_open || bc_time_has_no_delta(a) || bc_time_has_no_delta(b) ||
		(before_a.has_time && before_a.epoch != a->epoch) ||
		(before_b.has_time && before_b.epoch != b->epoch)) {
		set_skew(m, skew, false);
		return true;
	}
	if (!(m->has_differed && is_next_step_same(m, x + 1, y + 1)) && !is_step_same(m, x, y))
		return false;
	set_skew(m, skew, true);
	return true;
}

/* ---- reporting */

static bool report_different(
	struct bc_match *m, bool is_a, const struct bc_entry *entries, size_t n)
{
	return m->sink.differ(m->sink.context, is_a ? entries : NULL, is_a ? n : 0,
		is_a ? NULL : entries, is_a ? 0 : n);
}

/* Reports the entries [first, first + n) of a trace that have a counterpart in a different order,
 * or, without is_taken, the unmatched ones. */
static bool report_each(struct bc_match *m, bool is_a, size_t first, size_t n, bool is_taken)
{
	const struct bc_window *w = is_a ? &m->a : &m->b;

	for (size_t i = w->begin + first; i < w->begin + first + n; i++) {
		const struct bc_entry *entry = &w->entries[i];
		if (w->is_taken[i] != is_taken)
			continue;
		if (is_taken)
			m->sink.reordered(m->sink.context, is_a, entry);
		else if (!report_different(m, is_a, entry, 1))
			return false;
	}
	return true;
}

static size_t count_taken(const struct bc_window *w, size_t first, size_t n)
{
	size_t taken = 0;

	for (size_t i = w->begin + first; i < w->begin + first + n; i++)
		taken += w->is_taken[i];
	return taken;
}

/* Reports entries [x, x + n) and [y, y + k), between blocks. */
static bool report_hunk(struct bc_match *m, size_t x, size_t n, size_t y, size_t k)
{
	size_t taken = count_taken(&m->a, x, n) + count_taken(&m->b, y, k);

	if (taken != 0) {
		m->has_differed |= taken != n + k;
		return report_each(m, true, x, n, true) && report_each(m, false, y, k, true) &&
		       report_each(m, true, x, n, false) && report_each(m, false, y, k, false);
	}
	m->has_differed = true;
	return m->sink.differ(m->sink.context, &m->a.entries[m->a.begin + x], n,
		&m->b.entries[m->b.begin + y], k);
}

/* Reports a block, in which keys are equal, but perhaps not times. */
static bool report_block(struct bc_match *m, const struct bc_block *block)
{
	const struct bc_entry *a = m->a.entries + m->a.begin + block->a;
	const struct bc_entry *b = m->b.entries + m->b.begin + block->b;
	size_t same = 0; /* pairs before i that have not been reported */

	for (size_t i = 0; i <= block->n; i++) {
		bool is_same = i < block->n &&
			       bc_compare_entries(&a[i], &b[i], m->options.fields) == 0 &&
			       (bc_time_is_same(&m->options, &a[i], &b[i], m->plan.skew) ||
				       accept_new_skew(m, block->a + i, block->b + i));
		if (is_same) {
			m->has_differed = m->is_origin_open = false;
			same++;
			continue;
		}
		if (same != 0 && !m->sink.same(m->sink.context, &a[i - same], &b[i - same], same))
			return false;
		same = 0;
		if (i == block->n)
			break;
		m->has_differed = true;
		if (!m->sink.differ(m->sink.context, &a[i], 1, &b[i], 1))
			return false;
	}
	return true;
}

/* Pairs entries outside blocks that match in a different order. */
static void pair_reordered(struct bc_match *m)
{
	size_t x = 0;
	size_t y = 0;

	m->a_left.count = m->b_left.count = 0;
	for (size_t i = 0; i <= m->plan.count; i++) {
		struct bc_block next = {.a = m->plan.a_stop, .b = m->plan.b_stop};
		if (i < m->plan.count)
			next = m->plan.blocks[i];
		for (; x < next.a; x++)
			if ((m->a.entries[m->a.begin + x].traits & BC_TRAIT_TIME) != 0)
				m->a_left.at[m->a_left.count++] = (uint32_t)x;
		for (; y < next.b; y++)
			if ((m->b.entries[m->b.begin + y].traits & BC_TRAIT_TIME) != 0)
				m->b_left.at[m->b_left.count++] = (uint32_t)y;
		x = next.a + next.n;
		y = next.b + next.n;
	}
	if (bc_time_is_compared(&m->options) && m->a_left.count != 0 && m->b_left.count != 0)
		reorder_pair(&m->options, &m->a, &m->a_left, &m->b, &m->b_left, m->plan.skew);
}

/* True if the alignment reaches the end of both traces. */
static bool is_end(const struct bc_match *m)
{
	return bc_window_is_last(&m->a) && bc_window_is_last(&m->b) &&
	       m->plan.a_stop == bc_window_count(&m->a) && m->plan.b_stop == bc_window_count(&m->b);
}

/* Reports the alignment up to its end. */
static bool report_alignment(struct bc_match *m)
{
	bool goes_on = true;
	size_t x = 0;
	size_t y = 0;

	pair_reordered(m);
	for (size_t i = 0; goes_on && i <= m->plan.count; i++) {
		struct bc_block next = {.a = m->plan.a_stop, .b = m->plan.b_stop};
		if (i < m->plan.count)
			next = m->plan.blocks[i];
		if (i == m->plan.count && m->options.ignores_rest && is_end(m)) {
			/* What follows the shorter trace's end is not reported. */
			size_t both = next.a - x < next.b - y ? next.a - x : next.b - y;
			next.a = x + both;
			next.b = y + both;
		}
		if (x != next.a || y != next.b)
			goes_on = report_hunk(m, x, next.a - x, y, next.b - y);
		if (goes_on && next.n != 0)
			goes_on = report_block(m, &next);
		x = next.a + next.n;
		y = next.b + next.n;
	}
	bc_window_pass(&m->a, m->plan.a_stop);
	bc_window_pass(&m->b, m->plan.b_stop);
	return goes_on;
}

/* Reports the entries of one trace before `position`, or all that remain, as different. Returns
 * false if the sink stopped. */
static bool report_rest(struct bc_match *m, bool is_a, uint64_t position)
{
	struct bc_window *w = is_a ? &m->a : &m->b;

	while (w->position < position) {
		bc_window_hold(w, FIRST_WINDOW);
		size_t n = bc_window_count(w);
		if (n == 0)
			return true;
		const struct bc_entry *entries = w->entries + w->begin;
		uint64_t left = position - w->position;
		size_t part = n < left ? n : (size_t)left;
		m->has_differed = true;
		if (!report_different(m, is_a, entries, part))
			return false;
		bc_window_pass(w, part);
	}
	return true;
}

/* ---- differences */

/* Heuristic 5. Returns true after reporting all entries before the place where the traces meet
 * again, with *goes_on false if the sink stopped; false if they do not meet. */
static bool search_far(struct bc_match *m, bool *goes_on)
{
	uint64_t a = m->a.position;
	uint64_t b = m->b.position;

	if (m->is_pipe || m->reread_entries > REREAD_ENTRIES + a + b)
		return false;
	int rc = bc_far_find(
		&m->a.source, &m->b.source, m->options.fields, &a, &b, &m->reread_entries);
	m->is_pipe = rc == -ENOTSUP;
	if (rc != 1)
		return false;
	/* One trace has more entries before that place than the other. Skip the excess, so that the
	 * windows show the rest side by side. */
	uint64_t a_ahead = a - m->a.position;
	uint64_t b_ahead = b - m->b.position;
	bool is_a = a_ahead > b_ahead;
	uint64_t skip = is_a ? a_ahead - b_ahead : b_ahead - a_ahead;
	if (skip < FIRST_WINDOW)
		return false;
	*goes_on = report_rest(m, is_a, is_a ? a - b_ahead : b - a_ahead);
	return true;
}

/* The next entries differ: aligns and reports them. Returns false if the sink stopped. */
static bool resolve(struct bc_match *m)
{
	bool goes_on = true;
	bool is_lost = false;
	bool is_settled = false;

	for (size_t size = FIRST_WINDOW; !is_settled; size *= WINDOW_GROWTH) {
		bool is_last_try = size >= m->options.lookahead;
		bc_window_hold(&m->a, size);
		bc_window_hold(&m->b, size);
		size_t n = bc_window_count(&m->a) < size ? bc_window_count(&m->a) : size;
		size_t k = bc_window_count(&m->b) < size ? bc_window_count(&m->b) : size;
		bool is_all = bc_window_is_last(&m->a) && bc_window_is_last(&m->b);
		if (is_last_try && !is_all && !bc_time_is_compared(&m->options) &&
			bc_edge_find(&m->edge, &m->a, &m->b, &n, &k)) {
			bc_plan_align_to_edge(&m->plan, n, k);
			break;
		}
		is_settled = m->options.is_same_clock ? bc_plan_align_by_time(&m->plan, n, k)
						      : bc_plan_align(&m->plan, n, k, is_last_try);
		if (!is_last_try)
			continue;
		if (!m->options.is_same_clock && !is_all &&
			FAR_MATCHED * m->plan.matched < (FAR_MATCHED - 1) * ((n + k) / 2) &&
			search_far(m, &goes_on))
			return goes_on;
		if (is_settled)
			break;
		is_lost = !m->options.is_same_clock && !is_all;
		m->plan.count = 0;
		m->plan.a_stop = n;
		m->plan.b_stop = k;
		break;
	}
	goes_on = report_alignment(m);
	if (is_lost && goes_on)
		m->sink.lost(m->sink.context, !m->is_pipe);
	return goes_on;
}

static size_t count_same(
	const struct bc_match *m, const struct bc_entry *a, const struct bc_entry *b, size_t n)
{
	size_t i = 0;

	for (; i < n; i++)
		if (bc_compare_entries(&a[i], &b[i], m->options.fields) != 0 ||
			!bc_time_is_same(&m->options, &a[i], &b[i], m->plan.skew))
			break;
	return i;
}

/* Skips the matches that follow the n and k entries, which match, too. Returns false if unable. */
static bool skip_same(
	struct bc_match *m, const struct bc_entry *a, size_t n, const struct bc_entry *b, size_t k)
{
	if (bc_window_count(&m->a) != 0 || bc_window_count(&m->b) != 0)
		return false;
	size_t skipped = m->sink.skip(m->sink.context, a, b, n > k ? n : k);
	if (skipped == 0)
		return false;
	bc_window_skip(&m->a, skipped);
	bc_window_skip(&m->b, skipped);
	m->has_differed = m->is_origin_open = false;
	return true;
}

bool bc_match_run(struct bc_match *m)
{
	for (;;) {
		const struct bc_entry *a;
		const struct bc_entry *b;
		size_t n = bc_window_span(&m->a, &a);
		size_t k = bc_window_span(&m->b, &b);
		if (n == 0 || k == 0)
			return m->options.ignores_rest || report_rest(m, n != 0, UINT64_MAX);
		size_t both = n < k ? n : k;
		size_t same = count_same(m, a, b, both);
		if (same == both && skip_same(m, a, n, b, k))
			continue;
		if (same != 0) {
			m->has_differed = m->is_origin_open = false;
			if (!m->sink.same(m->sink.context, a, b, same))
				return false;
			bc_window_pass(&m->a, same);
			bc_window_pass(&m->b, same);
			continue;
		}
		if (!resolve(m))
			return false;
	}
}
