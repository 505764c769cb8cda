#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/diff/compare.h"
#include "cli/diff/match_internal.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define ITEMS_MAX 60000u

/* Two rows, and a record of what is reported about them. */

struct feed {
	const struct bc_entry *entries;
	size_t count;
	size_t at;
	size_t piece;           /* entries per call */
	struct bc_entry *given; /* last result, freed at the next call */
};

static size_t next(void *context, const struct bc_entry **run)
{
	struct feed *f = context;
	size_t n = f->count - f->at < f->piece ? f->count - f->at : f->piece;

	free(f->given);
	f->given = NULL;
	if (n == 0)
		return 0;
	f->given = malloc(n * sizeof(*f->given));
	memcpy(f->given, f->entries + f->at, n * sizeof(*f->given));
	f->at += n;
	*run = f->given;
	return n;
}

/* It can be read only once. */
static void *open_never(void *context)
{
	(void)context;
	return NULL;
}

static size_t skip_none(void *context, const struct bc_entry *a, const struct bc_entry *b, size_t n)
{
	(void)context, (void)a, (void)b, (void)n;
	return 0;
}

struct reported {
	struct bc_match *match;
	struct feed a;
	struct feed b;
	size_t lookahead;
	uint64_t next_a; /* expected numbers of the next entries */
	uint64_t next_b;
	uint64_t same;
	uint64_t reordered_a;
	uint64_t reordered_b;
	uint64_t differences;
	uint64_t only_a; /* total over all differences */
	uint64_t only_b;
	uint64_t fields; /* fields that differ in any pair */
	uint64_t last_a; /* position of the last difference */
	uint64_t last_b;
	int64_t shifted;
	unsigned shifts;
	unsigned lost;
	bool is_open;     /* inside a difference */
	uint64_t stop_at; /* number of differences after which to stop; 0: never */
};

/* Everything must be reported once and in order, and at most the permitted number of entries may be
 * read ahead. */
static void check_order(struct reported *t, const struct bc_entry *a, size_t a_count,
	const struct bc_entry *b, size_t b_count, bool is_strict)
{
	for (size_t i = 0; i < a_count; i++)
		assert_true(!is_strict || a[i].number == t->next_a + i);
	for (size_t i = 0; i < b_count; i++)
		assert_true(!is_strict || b[i].number == t->next_b + i);
	t->next_a += a_count;
	t->next_b += b_count;
	assert_true(t->a.at <= t->next_a + t->lookahead + 2 * t->a.piece);
	assert_true(t->b.at <= t->next_b + t->lookahead + 2 * t->b.piece);
}

static bool on_same(void *context, const struct bc_entry *a, const struct bc_entry *b, size_t n)
{
	struct reported *t = context;

	check_order(t, a, n, b, n, t->reordered_a + t->reordered_b == 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(bc_match_fields(t->match, &a[i], &b[i]), 0);
	t->same += n;
	t->is_open = false;
	return true;
}

static void on_reordered(void *context, bool is_a, const struct bc_entry *entry)
{
	struct reported *t = context;

	t->reordered_a += is_a;
	t->reordered_b += !is_a;
	check_order(t, is_a ? entry : NULL, is_a, is_a ? NULL : entry, !is_a, false);
}

static bool on_differ(void *context, const struct bc_entry *a, size_t a_count,
	const struct bc_entry *b, size_t b_count)
{
	struct reported *t = context;

	assert_true(a_count + b_count != 0);
	if (!t->is_open) {
		t->differences++;
		t->last_a = t->next_a;
		t->last_b = t->next_b;
	}
	t->is_open = true;
	t->only_a += a_count;
	t->only_b += b_count;
	if (a_count == b_count)
		for (size_t i = 0; i < a_count; i++)
			t->fields |= bc_match_fields(t->match, &a[i], &b[i]);
	check_order(t, a, a_count, b, b_count, t->reordered_a + t->reordered_b == 0);
	return t->stop_at == 0 || t->differences < t->stop_at;
}

static void on_shifted(void *context, int64_t ticks)
{
	struct reported *t = context;

	t->shifted += ticks;
	t->shifts++;
}

static void on_lost(void *context, bool can_retry)
{
	struct reported *t = context;

	(void)can_retry;
	t->lost++;
}

static const struct bc_match_options plain = {
	.fields = (UINT64_C(1) << BC_FIELD_COUNT) - 1 - BC_FIELD_TIME,
	.window = 1,
	.lookahead = 16384};
static const struct bc_match_options timed = {
	.fields = (UINT64_C(1) << BC_FIELD_COUNT) - 1, .window = 1, .lookahead = 16384};

/* Returns false if the comparison was stopped. */
static bool run(struct reported *t, const struct bc_match_options *options,
	const struct bc_entry *a, size_t a_count, const struct bc_entry *b, size_t b_count)
{
	struct bc_match_sink sink = {.context = t,
		.same = on_same,
		.skip = skip_none,
		.reordered = on_reordered,
		.differ = on_differ,
		.shifted = on_shifted,
		.lost = on_lost};
	uint64_t stop_at = t->stop_at;

	*t = (struct reported){.a = {.entries = a, .count = a_count, .piece = 100},
		.b = {.entries = b, .count = b_count, .piece = 77},
		.lookahead = options->lookahead,
		.stop_at = stop_at};
	struct bc_match_source from_a = {.next = next, .again = open_never, .context = &t->a};
	struct bc_match_source from_b = {.next = next, .again = open_never, .context = &t->b};
	assert_int_equal(bc_match_open(&t->match, options, &from_a, &from_b, &sink), 0);
	bool is_over = bc_match_run(t->match);
	bc_match_close(t->match);
	free(t->a.given);
	free(t->b.given);
	if (is_over) {
		assert_int_equal(t->next_a, a_count);
		assert_int_equal(t->next_b, b_count);
		assert_int_equal(t->reordered_a, t->reordered_b);
		assert_int_equal(t->same + t->reordered_a + t->only_a, a_count);
	}
	return is_over;
}

struct rows {
	struct bc_entry *a;
	struct bc_entry *b;
	size_t a_count;
	size_t b_count;
	struct reported reported;
};

static void set_up(struct rows *r)
{
	r->a = calloc(ITEMS_MAX, sizeof(*r->a));
	r->b = calloc(ITEMS_MAX, sizeof(*r->b));
}

static void tear_down(struct rows *r)
{
	free(r->a);
	free(r->b);
}

TEST_FIXTURE(rows, set_up, tear_down)

/* Addresses like those of a program: loops of many rounds over a few addresses, and now and then
 * another address. */
static void make_a(struct rows *r, size_t count, bool has_time)
{
	struct dice dice = {.state = 77};
	uint64_t tick = 1000;

	r->a_count = count;
	for (size_t i = 0; i < count; i++) {
		uint64_t addr = i % 50 < 40 ? i % 10 * 4 : dice_below(&dice, 100000);
		bc_entry_reference(&r->a[i], dice_below(&dice, 2), addr, i);
		r->a[i].traits = BC_TRAIT_SIZE | (has_time ? BC_TRAIT_TIME : 0);
		r->a[i].size = 4;
		tick += 5 + dice_below(&dice, 10);
		r->a[i].tick = has_time ? tick : 0;
	}
}

static void number(struct rows *r)
{
	for (size_t i = 0; i < r->b_count; i++)
		r->b[i].number = i;
}

/* Makes B from A: `in` new entries at `at` replace `out` entries, and all later ticks are increased
 * by `later`. */
static void make_b(struct rows *r, size_t at, size_t out, size_t in, uint64_t later)
{
	struct dice dice = {.state = 123};

	memcpy(r->b, r->a, at * sizeof(*r->a));
	for (size_t i = 0; i < in; i++) {
		r->b[at + i] = r->a[0];
		r->b[at + i].addr = 0x40000000 + dice_below(&dice, 1 << 30);
		r->b[at + i].tick = at + i < r->a_count ? r->a[at + i].tick
							: r->a[r->a_count - 1].tick;
	}
	memcpy(r->b + at + in, r->a + at + out, (r->a_count - at - out) * sizeof(*r->a));
	r->b_count = r->a_count - out + in;
	for (size_t i = at + in; i < r->b_count; i++)
		r->b[i].tick += later;
	number(r);
}

static bool compare(struct rows *r, const struct bc_match_options *options)
{
	return run(&r->reported, options, r->a, r->a_count, r->b, r->b_count);
}

TEST_WITH(rows, r, equal_rows_have_no_differences_however_they_are_read)
{
	make_a(r, 1000, true);
	make_b(r, 0, 0, 0, 0);
	assert_true(compare(r, &timed));
	assert_int_equal(r->reported.same, 1000);
	assert_int_equal(r->reported.differences, 0);
	r->a_count = r->b_count = 0;
	assert_true(compare(r, &timed));
	assert_int_equal(r->reported.differences, 0);
}

/* Edges, and every position in the loop of the row. */
static const size_t places[] = {0, 1, 7, 8, 9, 31, 32, 33, 39, 40, 45, 49, 50, 99, 100, 101, 255,
	256, 257, 1024, 2490, 2900, 2960, 2968, 2990, 2992, 2995, 2999, 3000};

#define PLACES (COUNT_OF(places))

static const size_t counts[] = {1, 2, 10, 200, 300, 1000, 10000};

#define COUNTS (COUNT_OF(counts))

static void one_difference(struct rows *r, size_t at, size_t out, size_t in)
{
	for (unsigned has_time = 0; has_time < 2; has_time++) {
		/* Absolute times are unchanged after the edit; times that are sums of deltas are
		 * later. */
		for (unsigned later = 0; later <= has_time * 5000; later += 5000) {
			make_a(r, 3000 + out, has_time);
			make_b(r, at, out, in, later);
			assert_true(compare(r, has_time ? &timed : &plain));
			if (r->reported.differences != 1 || r->reported.only_a != out ||
				r->reported.only_b != in)
				print_error("at %zu, %zu out, %zu in, later %u: %llu differences\n",
					at, out, in, later,
					(unsigned long long)r->reported.differences);
			assert_int_equal(r->reported.differences, 1);
			assert_int_equal(r->reported.only_a, out);
			assert_int_equal(r->reported.only_b, in);
			assert_int_equal(r->reported.last_a, at);
			assert_int_equal(r->reported.last_b, at);
			assert_int_equal(r->reported.lost, 0);
			assert_int_equal(
				r->reported.shifted, at + out < r->a_count ? (int64_t)later : 0);
		}
	}
}

TEST_WITH(rows, r, an_insertion_is_one_difference_at_any_position)
{

	for (size_t i = 0; i < PLACES; i++)
		for (size_t c = i % test_stride(35); c < COUNTS; c += test_stride(35))
			one_difference(r, places[i], 0, counts[c]);
}

enum edit {
	LEFT_OUT,
	OTHERS, /* replaced by the same number of others */
	TWICE,  /* repeated once */
	EDITS
};

TEST_WITH(rows, r, many_changes_are_each_a_difference)
{
	for (size_t apart = 4; apart <= 700; apart += test_stride(5) * (apart / 3 + 1)) {
		size_t changes = 0;
		make_a(r, 30000 / test_stride(3), true);
		make_b(r, 0, 0, 0, 0);
		for (size_t i = apart; i < r->b_count; i += apart, changes++)
			r->b[i].addr = 0x50000000 + i;
		assert_true(compare(r, &timed));
		assert_int_equal(r->reported.differences, changes);
		assert_int_equal(r->reported.fields, BC_FIELD_ADDR);
	}
}

/* The entries reported must add up (run() checks it) if many have equal times and are alike. */
TEST_WITH(rows, r, changes_in_a_coarse_clock_add_up)
{
	struct dice dice = {.state = 31337};

	for (unsigned round = 0; round < 40; round += test_stride(19)) {
		make_a(r, 5000 / test_stride(3), true);
		for (size_t i = 0; i < r->a_count; i++) {
			r->a[i].addr = dice_below(&dice, 6);
			r->a[i].tick = i / 16;
		}
		make_b(r, 0, 0, 0, 0);
		for (size_t i = round; i < r->b_count; i += 3 + round % 9)
			r->b[i].addr = dice_below(&dice, 6);
		for (size_t i = round; i + 1 < r->b_count; i += 11) {
			uint64_t addr = r->b[i].addr;
			r->b[i].addr = r->b[i + 1].addr;
			r->b[i + 1].addr = addr;
		}
		assert_true(compare(r, &timed));
		assert_int_equal(r->reported.same + r->reported.reordered_b + r->reported.only_b,
			r->b_count);
	}
}

TEST_WITH(rows, r, a_delta_that_differs_is_one_difference)
{
	/* The last one shows nothing about the clock. */
	for (size_t at = 0; at < 99; at += test_stride(5)) {
		make_a(r, 100, true);
		make_b(r, at, 0, 0, 1000);
		assert_true(compare(r, &timed));
		assert_int_equal(r->reported.differences, 1);
		assert_int_equal(r->reported.fields, BC_FIELD_TIME);
		assert_int_equal(r->reported.last_a, at);
		assert_int_equal(r->reported.shifted, 1000);
	}
}

TEST_WITH(rows, r, a_clock_offset_is_a_difference_only_if_absolute_times_are_compared)
{
	struct bc_match_options relative = timed;

	make_a(r, 100, true);
	make_b(r, 0, 0, 0, UINT64_C(0xFFFFFFFFFFFFFF00));
	assert_true(compare(r, &timed));
	assert_int_equal(r->reported.differences, 1);
	assert_int_equal(r->reported.shifted, -256);
	relative.is_relative = true;
	assert_true(compare(r, &relative));
	assert_int_equal(r->reported.differences, 0);
	/* The clock of a new epoch starts anywhere. */
	make_b(r, 0, 0, 0, 0);
	for (size_t i = 50; i < 100; i++) {
		r->a[i].epoch = r->b[i].epoch = 1;
		r->b[i].tick += 777;
	}
	assert_true(compare(r, &timed));
	assert_int_equal(r->reported.differences, 0);
}

/* Entries at ticks 100, 100, 101, 101, ...; two of them are exchanged. */
static void swap(struct rows *r, size_t i, size_t k, uint64_t apart)
{
	make_a(r, 200, true);
	for (size_t n = 0; n < r->a_count; n++) {
		r->a[n].addr = n * 16;
		r->a[n].tick = 100 + n * apart / 2;
	}
	make_b(r, 0, 0, 0, 0);
	struct bc_entry held = r->b[i];
	r->b[i] = r->b[k];
	r->b[k] = held;
	uint64_t tick = r->b[i].tick;
	r->b[i].tick = r->b[k].tick;
	r->b[k].tick = tick;
	number(r);
}

TEST_WITH(rows, r, order_within_the_window_is_not_a_difference)
{
	struct bc_match_options options = timed;

	options.lookahead = 256;
	for (uint64_t window = 0; window < 12; window++) {
		options.window = window;
		for (size_t i = 60; i < 70; i += test_stride(5)) {
			for (size_t k = i + 1 + window % test_stride(3); k < i + 30;
				k += test_stride(3)) {
				swap(r, i, k, 2);
				bool is_within = k - i <= window;
				assert_true(compare(r, &options));
				if (is_within)
					assert_int_equal(r->reported.differences, 0);
				else
					assert_true(r->reported.differences >= 1);
				assert_int_equal(r->reported.reordered_a != 0, is_within);
			}
		}
	}
}

TEST_WITH(rows, r, order_without_times_is_a_difference)
{
	swap(r, 60, 61, 0);
	assert_true(compare(r, &plain));
	assert_int_equal(r->reported.differences, 2);
	assert_true(compare(r, &timed));
	assert_int_equal(r->reported.differences, 0);
}

TEST_WITH(rows, r, a_change_among_reordered_entries_is_one_change)
{
	for (size_t at = 55; at < 70; at++) {
		swap(r, 60, 61, 0);
		for (size_t i = 0; i < r->a_count; i++) {
			r->a[i].tick = 100 + i / 4 * 10;
			r->b[i].tick = 100 + i / 4 * 10;
		}
		r->b[at].addr = 0x60000000;
		assert_true(compare(r, &timed));
		assert_int_equal(r->reported.only_a, 1);
		assert_int_equal(r->reported.only_b, 1);
	}
}

TEST_WITH(rows, r, memory_stays_within_the_look_ahead)
{
	struct bc_match_options options = plain;
	static const size_t lookaheads[] = {1, 2, 16, 100, 1000, 5000};

	/* The callbacks check what was read. The insertion is found if the look-ahead covers it. */
	for (size_t i = 0; i < COUNT_OF(lookaheads); i++) {
		options.lookahead = lookaheads[i];
		make_a(r, 40000 / test_stride(2), false);
		for (size_t k = 0; k < r->a_count; k++)
			r->a[k].addr = k * 64;
		make_b(r, 10000, 0, 900, 0);
		assert_true(compare(r, &options));
		assert_int_equal(r->reported.lost != 0, lookaheads[i] <= 900);
		if (lookaheads[i] > 900 + 8)
			assert_int_equal(r->reported.only_b, 900);
		assert_int_equal(r->reported.differences, 1);
	}
}

TEST_WITH(rows, r, it_ends_when_the_sink_says_so)
{
	make_a(r, 1000, false);
	make_b(r, 0, 0, 0, 0);
	r->b[100].size = r->b[500].size = 1;
	r->reported.stop_at = 1;
	assert_false(compare(r, &plain));
	assert_int_equal(r->reported.differences, 1);
}

/* Texts belong to the source, which frees them at its next call. */
TEST_WITH(rows, r, texts_outlive_their_source)
{
	char name[16] = "x0";

	for (size_t i = 0; i < 2000; i++) {
		bc_entry_reference(&r->a[i], 0, 0, i);
		r->a[i].kind = BC_ENTRY_REGISTER;
		r->a[i].reg.name = (struct bc_text){.at = name, .bytes = 2};
		r->a[i].reg.value = (struct bc_text){.at = "0000_00FF", .bytes = 9};
		if (i % 2 != 0)
			r->a[i].reg.value.at = i % 3 != 0 ? "0:000_0FF" : "0000__0Fd";
		r->b[i] = r->a[i];
		r->b[i].reg.name.at = "X0";
		r->b[i].reg.value.at = i % 2 != 0 && i % 3 == 0 ? "fd" : "ff";
		r->b[i].reg.value.bytes = 2;
	}
	r->a_count = r->b_count = 2000;
	assert_true(compare(r, &plain));
	assert_int_equal(r->reported.differences, 0);
	r->b[700].reg.value.at = "fe";
	assert_true(compare(r, &plain));
	assert_int_equal(r->reported.differences, 1);
	assert_int_equal(r->reported.fields, BC_FIELD_VALUE);
	r->b[700].reg.value.at = "ff";
	r->b[700].reg.name.at = "X1";
	assert_true(compare(r, &plain));
	assert_int_equal(r->reported.fields, BC_FIELD_NAME);
}

/* One entry, without end. */
static size_t next_same(void *context, const struct bc_entry **run)
{
	*run = context;
	return 1;
}

static void *open_same(void *context)
{
	return context;
}

static void close_same(void *again)
{
	(void)again;
}

/* Runs of this entry are no samples. */
TEST(the_search_far_ahead_ends_at_its_limit)
{
	struct bc_entry entry;
	struct bc_match_source source = {
		.next = next_same, .again = open_same, .close = close_same, .context = &entry};
	uint64_t a = 0;
	uint64_t b = 0;
	uint64_t entries_read = 0;

#ifdef __SANITIZE_ADDRESS__
	skip(); /* the same entry 30 million times, without memory to check */
#endif
	bc_entry_reference(&entry, 0, 0, 0);
	assert_int_equal(bc_far_find(&source, &source, BC_FIELD_ADDR, &a, &b, &entries_read), 0);
	assert_true(entries_read <= 2 * (BC_FAR_MAX + 1));
}
