#include "formats/diff/match.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/bus/record.h"
#include "formats/diff/align.h"
#include "formats/diff/compare.h"
#include "formats/diff/match_row.h"
#include "formats/diff/match_stretch.h"
#include "formats/diff/match_time.h"
#include "formats/diff/match_way.h"
#include "formats/diff/tick_order.h"

/* Number of pairs that must agree on a new skew. */
#define CLOCK_PAIRS 4u

struct bc_match {
	struct bc_match_options options;
	struct bc_match_sink sink;
	struct bc_match_row a;
	struct bc_match_row b;
	uint64_t skew;
	bool is_origin_open; /* the next pair may set the skew */
	bool has_differed;   /* since the last match */
	/* The current alignment: hunks way.align.hunks[hunk] and later, relative to these
	 * positions. */
	struct bc_match_way way;
	size_t hunk;
	uint64_t a_base;
	uint64_t b_base;
	struct bc_tick_order b_order; /* entries of B that are in hunks */
	struct bc_match_stretch stretch;
};

int bc_match_open(struct bc_match **match, const struct bc_match_options *options,
	const struct bc_match_source *a, const struct bc_match_source *b,
	const struct bc_match_sink *sink)
{
	struct bc_match *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return -ENOMEM;
	m->options = *options;
	m->sink = *sink;
	m->is_origin_open = options->is_relative;
	if (bc_match_row_init(&m->a, a, options) != 0)
		goto no_a;
	if (bc_match_row_init(&m->b, b, options) != 0)
		goto no_b;
	if (bc_match_way_init(&m->way, options->lookahead) != 0)
		goto no_way;
	if (bc_tick_order_init(&m->b_order, options->lookahead) != 0)
		goto no_order;
	*match = m;
	return 0;
no_order:
	bc_match_way_free(&m->way);
no_way:
	bc_match_row_free(&m->b);
no_b:
	bc_match_row_free(&m->a);
no_a:
	free(m);
	return -ENOMEM;
}

void bc_match_close(struct bc_match *m)
{
	if (m == NULL)
		return;
	bc_tick_order_free(&m->b_order);
	bc_match_way_free(&m->way);
	bc_match_row_free(&m->b);
	bc_match_row_free(&m->a);
	free(m);
}

static bool is_time_compared(const struct bc_match *m)
{
	return bc_match_time_is_compared(&m->options);
}

static bool is_time_same(
	const struct bc_match *m, const struct bc_entry *a, const struct bc_entry *b, uint64_t skew)
{
	return bc_match_time_is_same(&m->options, a, b, skew);
}

uint64_t bc_match_fields(
	const struct bc_match *m, const struct bc_entry *a, const struct bc_entry *b)
{
	return bc_compare_entries(a, b, m->options.fields) |
	       (is_time_same(m, a, b, m->skew) ? 0 : BC_FIELD_TIME);
}

/* Whether a clock restarts here, so that the times of this pair cannot be compared. */
static bool is_new_origin(
	const struct bc_match *m, const struct bc_entry *a, const struct bc_entry *b)
{
	bool is_new = m->is_origin_open || (m->a.has_epoch && a->epoch != m->a.epoch) ||
		      (m->b.has_epoch && b->epoch != m->b.epoch);
	bool a_none = a->has_delta && a->delta == BC_TIME_NONE;
	bool b_none = b->has_delta && b->delta == BC_TIME_NONE;

	if (a->has_delta && b->has_delta && a_none != b_none)
		return false;
	return (a->has & b->has & BC_HAS_TIME) != 0 && (is_new || a_none || b_none);
}

/* Whether the pairs after the heads have equal times with this skew. At the end there are no pairs
 * to contradict it. */
static bool fits_skew(const struct bc_match *m, uint64_t skew)
{
	const struct bc_backlog *a = &m->a.held;
	const struct bc_backlog *b = &m->b.held;

	for (size_t i = 1; i <= CLOCK_PAIRS; i++) {
		if (i >= bc_backlog_count(a) || i >= bc_backlog_count(b))
			return true;
		if (a->hashes[a->begin + i] != b->hashes[b->begin + i])
			return i > 1;
		if (!is_time_same(m, &a->entries[a->begin + i], &b->entries[b->begin + i], skew))
			return false;
	}
	return true;
}

static void shift(struct bc_match *m, uint64_t skew, bool is_reported)
{
	int64_t ticks = (int64_t)(skew - m->skew);

	m->skew = skew;
	if (is_reported && ticks != 0 && m->sink.shifted != NULL)
		m->sink.shifted(m->sink.context, ticks);
}

static void use_hunks(struct bc_match *m)
{
	m->hunk = 0;
	m->a_base = m->a.position;
	m->b_base = m->b.position;
}

/* Pairs an entry of A in a hunk with an entry of B in a hunk. */
static void pair_reordered(struct bc_match *m, size_t x)
{
	const struct bc_backlog *a = &m->a.held;
	const struct bc_backlog *b = &m->b.held;
	const struct bc_tick_order *order = &m->b_order;
	uint64_t tick = a->ticks[x] + m->skew;
	uint64_t window = m->options.window;
	/* By B's clock, the time may be before tick 0. */
	uint64_t from = tick > window && tick >> 63 == 0 ? tick - window : 0;

	for (size_t i = bc_tick_order_find(order, b, a->hashes[x], from); i < order->count; i++) {
		size_t y = order->at[i];
		if (b->hashes[y] != a->hashes[x] ||
			(b->ticks[y] > tick && b->ticks[y] - tick > window))
			return;
		if (b->is_taken[y] || !is_time_same(m, &a->entries[x], &b->entries[y], m->skew))
			continue;
		a->is_taken[x] = b->is_taken[y] = true;
		return;
	}
}

/* Finds entries in the hunks that match within the window in a different order, and marks them. */
static void find_reordered(struct bc_match *m)
{
	const struct bc_backlog *a = &m->a.held;
	const struct bc_hunk *hunks = m->way.align.hunks;
	size_t count = is_time_compared(m) ? m->way.align.count : 0;

	m->b_order.count = 0;
	for (size_t i = 0; i < count; i++)
		bc_tick_order_add(
			&m->b_order, &m->b.held, m->b.held.begin + hunks[i].b, hunks[i].b_count);
	bc_tick_order_sort(&m->b_order, &m->b.held);
	for (size_t i = 0; i < count; i++)
		for (size_t x = a->begin + hunks[i].a; x < a->begin + hunks[i].a + hunks[i].a_count;
			x++)
			if ((a->entries[x].has & BC_HAS_TIME) != 0)
				pair_reordered(m, x);
}

/* Fills both backlogs. Returns 0 or a negative errno. */
static int hold_all(struct bc_match *m)
{
	int rc = bc_match_row_hold(&m->a, m->options.lookahead);

	return rc == 0 ? bc_match_row_hold(&m->b, m->options.lookahead) : rc;
}

/* Parameters for comparing times, or NULL if they are not compared. */
static const struct bc_align_time *set_time(const struct bc_match *m, struct bc_align_time *time)
{
	*time = (struct bc_align_time){.skew = m->skew, .window = m->options.window};
	return is_time_compared(m) ? time : NULL;
}

/* Aligns the rows after the heads differ. Returns 0 or a negative errno. */
static int find_way(struct bc_match *m)
{
	struct bc_align *align = &m->way.align;
	int rc = hold_all(m);

	if (rc != 0)
		return rc;
	struct bc_align_time time;
	bool is_found = bc_match_way_find(&m->way, &m->a, &m->b, set_time(m, &time));
	if (is_found && align->count != 0) {
		find_reordered(m);
	} else if (is_found) {
		/* Different entries with the same hash: report this pair as different. */
		align->hunks[0] = (struct bc_hunk){.a_count = 1, .b_count = 1};
		align->count = 1;
	} else {
		struct bc_align_row a = bc_match_row_align(&m->a, m->options.lookahead);
		struct bc_align_row b = bc_match_row_align(&m->b, m->options.lookahead);
		align->hunks[0] = (struct bc_hunk){.a_count = a.count, .b_count = b.count};
		align->count = 1;
		if (!a.is_whole && !b.is_whole && m->sink.lost != NULL)
			m->sink.lost(m->sink.context);
	}
	use_hunks(m);
	return 0;
}

/* The heads differ only in time. Returns 1 if a jump explains that better than a single different
 * time, 0 if not, or a negative errno. */
static int jump_times(struct bc_match *m)
{
	int rc = hold_all(m);

	if (rc != 0)
		return rc;
	struct bc_align_time time;
	if (!bc_match_way_jump(&m->way, &m->a, &m->b, set_time(m, &time)))
		return 0;
	find_reordered(m);
	use_hunks(m);
	return 1;
}

/* Aligns by times as well, because equal entries may follow each other: a port that is polled once
 * more. Returns 1 if an alignment was found, 0 if not, or a negative errno. */
static int align_times(struct bc_match *m)
{
	size_t near = BC_WAY_NEAR_ENTRIES;
	size_t most = m->options.lookahead < near ? m->options.lookahead : near;
	struct bc_align_time time = {.skew = m->skew, .window = m->options.window};
	int rc = bc_match_row_hold(&m->a, most + 1);

	rc = rc == 0 ? bc_match_row_hold(&m->b, most + 1) : rc;
	if (rc != 0)
		return rc;
	struct bc_align_row a = bc_match_row_align(&m->a, most);
	struct bc_align_row b = bc_match_row_align(&m->b, most);
	if (!bc_align_near(&m->way.align, &a, &b, BC_WAY_TIME_EDITS, &time) ||
		m->way.align.count == 0)
		return 0;
	find_reordered(m);
	use_hunks(m);
	return 1;
}

/* Removes the reordered entries from a hunk of one row and reports them. The hunk is at the head of
 * the backlog; the remaining entries move together. Returns their number. */
static size_t sort_out(
	struct bc_match *m, struct bc_match_row *row, size_t count, bool is_a, bool *goes_on)
{
	struct bc_entry *entries = row->held.entries + row->held.begin;
	const bool *is_taken = row->held.is_taken + row->held.begin;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (!is_taken[i])
			entries[kept++] = entries[i];
		else if (*goes_on)
			*goes_on = m->sink.reordered(m->sink.context, is_a ? &entries[i] : NULL,
				is_a, is_a ? NULL : &entries[i], !is_a);
	}
	return kept;
}

/* Reports a hunk at the heads. */
static bool tell_hunk(struct bc_match *m, const struct bc_hunk *hunk)
{
	const struct bc_entry *a = m->a.held.entries + m->a.held.begin;
	const struct bc_entry *b = m->b.held.entries + m->b.held.begin;
	bool goes_on = true;
	/* Save the epochs of the last entries before entries are moved. */
	uint32_t a_epoch = hunk->a_count != 0 ? a[hunk->a_count - 1].epoch : m->a.epoch;
	uint32_t b_epoch = hunk->b_count != 0 ? b[hunk->b_count - 1].epoch : m->b.epoch;
	size_t a_kept = sort_out(m, &m->a, hunk->a_count, true, &goes_on);
	size_t b_kept = sort_out(m, &m->b, hunk->b_count, false, &goes_on);

	if (goes_on && a_kept + b_kept != 0) {
		goes_on = m->sink.differ(m->sink.context, a, a_kept, b, b_kept);
		m->has_differed = true;
	}
	bc_match_row_pass(&m->a, a, hunk->a_count);
	bc_match_row_pass(&m->b, b, hunk->b_count);
	m->a.epoch = a_epoch;
	m->b.epoch = b_epoch;
	return goes_on;
}

/* The heads differ only in time. Returns 1 if they match after all, 0 if the difference was
 * handled, or a negative errno. Sets *goes_on to the result of the sink. */
static int weigh_times(struct bc_match *m, bool *goes_on)
{
	int rc = bc_match_row_hold(&m->a, CLOCK_PAIRS + 1);

	rc = rc == 0 ? bc_match_row_hold(&m->b, CLOCK_PAIRS + 1) : rc;
	if (rc != 0)
		return rc;
	const struct bc_entry *a = m->a.held.entries + m->a.held.begin;
	const struct bc_entry *b = m->b.held.entries + m->b.held.begin;
	uint64_t skew = b->tick - a->tick;
	bool have_times = (a->has & b->has & BC_HAS_TIME) != 0;
	bool fits_new = have_times && fits_skew(m, skew);
	if (have_times && is_new_origin(m, a, b)) {
		shift(m, skew, false);
		return 1;
	}
	if (m->has_differed && fits_new && is_time_same(m, a, b, skew)) {
		shift(m, skew, true);
		return 1;
	}
	rc = have_times ? jump_times(m) : 0;
	if (rc != 0)
		return rc < 0 ? rc : 0;
	a = m->a.held.entries + m->a.held.begin;
	b = m->b.held.entries + m->b.held.begin;
	fits_new = have_times && fits_skew(m, skew);
	bool fits_old = fits_skew(m, m->skew);
	if (have_times && !fits_new && !fits_old && m->hunk >= m->way.align.count) {
		rc = align_times(m);
		if (rc != 0)
			return rc < 0 ? rc : 0;
		a = m->a.held.entries + m->a.held.begin;
		b = m->b.held.entries + m->b.held.begin;
	}
	*goes_on = m->sink.differ(m->sink.context, a, 1, b, 1);
	m->has_differed = true;
	if (have_times && (fits_new || !fits_old))
		shift(m, skew, true);
	bc_match_row_pass(&m->a, a, 1);
	bc_match_row_pass(&m->b, b, 1);
	return 0;
}

/* The heads differ. Returns the same as weigh_times(). */
static int weigh_heads(
	struct bc_match *m, const struct bc_entry *a, const struct bc_entry *b, bool *goes_on)
{
	if (bc_compare_entries(a, b, m->options.fields) == 0)
		return weigh_times(m, goes_on);
	m->way.align.count = m->hunk = 0;
	int64_t stretch = 0;
	if (is_time_compared(m))
		stretch = bc_match_stretch_find(&m->stretch, &m->a, &m->b, &m->options, m->skew);
	if (stretch < 0)
		return (int)stretch;
	if (stretch == 0)
		return find_way(m);
	a = m->a.held.entries + m->a.held.begin;
	b = m->b.held.entries + m->b.held.begin;
	*goes_on = m->sink.reordered(m->sink.context, a, (size_t)stretch, b, (size_t)stretch);
	bc_match_row_pass(&m->a, a, (size_t)stretch);
	bc_match_row_pass(&m->b, b, (size_t)stretch);
	return 0;
}

static size_t count_same(
	const struct bc_match *m, const struct bc_entry *a, const struct bc_entry *b, size_t n)
{
	size_t i = 0;

	for (; i < n; i++)
		if (bc_compare_entries(&a[i], &b[i], m->options.fields) != 0 ||
			!is_time_same(m, &a[i], &b[i], m->skew))
			break;
	return i;
}

/* One row has ended: reports the rest of the other. */
static int tell_rest(struct bc_match *m)
{
	for (;;) {
		const struct bc_entry *a;
		const struct bc_entry *b;
		int64_t n = bc_match_row_span(&m->a, &a);
		int64_t k = n == 0 ? bc_match_row_span(&m->b, &b) : 0;
		if (n < 0 || k < 0)
			return (int)(n < 0 ? n : k);
		if (n == 0 && k == 0)
			return 0;
		if (!m->sink.differ(m->sink.context, n != 0 ? a : NULL, (size_t)n,
			    n != 0 ? NULL : b, (size_t)k))
			return 1;
		bc_match_row_pass(n != 0 ? &m->a : &m->b, n != 0 ? a : b, (size_t)(n + k));
	}
}

int bc_match_run(struct bc_match *m)
{
	bool goes_on = true;

	while (goes_on) {
		const struct bc_entry *a;
		const struct bc_entry *b;
		int64_t n = bc_match_row_span(&m->a, &a);
		int64_t k = bc_match_row_span(&m->b, &b);
		if (n < 0 || k < 0)
			return (int)(n < 0 ? n : k);
		size_t span = (size_t)(n < k ? n : k);
		if (m->hunk < m->way.align.count) {
			const struct bc_hunk *hunk = &m->way.align.hunks[m->hunk];
			size_t ahead = (size_t)(hunk->a + m->a_base - m->a.position);
			if (ahead == 0) {
				m->hunk++;
				goes_on = tell_hunk(m, hunk);
				continue;
			}
			span = span < ahead ? span : ahead;
		} else if (span == 0) {
			return tell_rest(m);
		}
		size_t same = count_same(m, a, b, span);
		if (same == 0) {
			int rc = weigh_heads(m, a, b, &goes_on);
			if (rc < 0)
				return rc;
			if (rc == 0)
				continue;
			same = 1;
			a = m->a.held.entries + m->a.held.begin;
			b = m->b.held.entries + m->b.held.begin;
		}
		m->has_differed = m->is_origin_open = false;
		goes_on = m->sink.same(m->sink.context, a, b, same);
		bc_match_row_pass(&m->a, a, same);
		bc_match_row_pass(&m->b, b, same);
	}
	return 1;
}
