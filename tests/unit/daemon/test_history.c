#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "daemon/api/history.h"
#include "tests/support/test.h"

#define SECOND_NS UINT64_C(1000000000)
#define START_NS  UINT64_C(123456789)
#define WALL_NS   INT64_C(1795166100000000000) /* 2026-11-20T09:15:00Z */

struct fixture {
	struct bc_history *history;
	uint64_t totals[BC_HISTORY_FIGURES];
	json_t *json;
};

static void set_up(struct fixture *f)
{
	assert_int_equal(bc_history_open(&f->history, START_NS), 0);
}

static void tear_down(struct fixture *f)
{
	json_decref(f->json);
	bc_history_close(f->history);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* Polls at a time since the start, after n, 10 n, 100 n and 1000 n were added to the totals, with
 * n % 61 chunks in use. */
static void poll_at(struct fixture *f, uint64_t ns, uint64_t n)
{
	f->totals[BC_HISTORY_USED_CHUNKS] = n % 61;
	for (unsigned i = 0; i < BC_HISTORY_USED_CHUNKS; i++, n *= 10)
		f->totals[i] += n;
	bc_history_poll(f->history, f->totals, START_NS + ns);
}

static void read_at(struct fixture *f, uint64_t ns)
{
	char *text = bc_history_write(f->history, START_NS + ns, WALL_NS + (int64_t)ns);

	assert_non_null(text);
	assert_int_equal(text[strlen(text) - 1], '\n');
	json_decref(f->json);
	f->json = json_loads(text, 0, NULL);
	assert_non_null(f->json);
	free(text);
}

static const char *end_of(struct fixture *f, const char *ring)
{
	return json_string_value(json_object_get(json_object_get(f->json, ring), "end"));
}

static size_t count(struct fixture *f, const char *ring)
{
	return json_array_size(json_object_get(json_object_get(f->json, ring), "lost_samples"));
}

/* Returns interval i if all four lists agree on it, -1 for null. */
static long long interval(struct fixture *f, const char *ring, size_t i)
{
	static const char *const names[] = {
		"received_samples", "lost_samples", "record_bytes", "written_bytes"};
	json_t *intervals = json_object_get(f->json, ring);
	long long n = 0, factor = 1;

	for (unsigned k = 0; k < COUNT_OF(names); k++, factor *= 10) {
		json_t *list = json_object_get(intervals, names[k]);
		json_t *value = json_array_get(list, i);
		assert_non_null(value);
		assert_int_equal(json_array_size(list), count(f, ring));
		if (k == 0)
			n = json_is_null(value) ? -1 : json_integer_value(value);
		else if (n == -1)
			assert_true(json_is_null(value));
		else
			assert_int_equal(json_integer_value(value), n * factor);
	}
	return n;
}

TEST_F(it_is_empty_until_the_first_second_ends)
{
	poll_at(f, 0, 7);
	poll_at(f, SECOND_NS - 1, 5);
	read_at(f, SECOND_NS - 1);
	assert_int_equal(count(f, "seconds"), 0);
	assert_int_equal(count(f, "minutes"), 0);
	assert_string_equal(end_of(f, "seconds"), "2026-11-20T09:15:00.000000000Z");
	poll_at(f, SECOND_NS, 100);
	read_at(f, SECOND_NS);
	assert_int_equal(count(f, "seconds"), 1);
	assert_int_equal(interval(f, "seconds", 0), 12);
	assert_string_equal(end_of(f, "seconds"), "2026-11-20T09:15:01.000000000Z");
	assert_string_equal(end_of(f, "minutes"), "2026-11-20T09:15:00.000000000Z");
}

TEST_F(late_polls_do_not_shift_the_seconds)
{
	/* Ten polls a second, each 0.9 ms later than it should be. */
	for (uint64_t n = 0; n < 10000; n++)
		poll_at(f, n * (SECOND_NS / 10 + 900000), 1);
	read_at(f, 10000 * (SECOND_NS / 10 + 900000));
	assert_int_equal(count(f, "seconds"), 1008);
	for (size_t i = 0; i < 1008; i++)
		assert_in_range(interval(f, "seconds", i), 9, 10);
	assert_string_equal(end_of(f, "seconds"), "2026-11-20T09:31:48.000000000Z");
}

TEST_F(both_rings_keep_the_newest_intervals)
{
	const uint64_t seconds = BC_HISTORY_MINUTES * 60 + 3 * 60 + 1;

	for (uint64_t s = 0; s < seconds; s++) {
		poll_at(f, s * SECOND_NS, s);
		if (s == BC_HISTORY_SECONDS - 1 || s == BC_HISTORY_SECONDS ||
			s == BC_HISTORY_SECONDS + 1 || s == seconds - 1) {
			read_at(f, s * SECOND_NS);
			size_t n = s < BC_HISTORY_SECONDS ? s : BC_HISTORY_SECONDS;
			assert_int_equal(count(f, "seconds"), n);
			for (size_t i = 0; i < n; i++)
				assert_int_equal(interval(f, "seconds", i), s - n + i);
		}
	}
	assert_int_equal(count(f, "minutes"), BC_HISTORY_MINUTES);
	for (size_t i = 0; i < BC_HISTORY_MINUTES; i++)
		assert_int_equal(interval(f, "minutes", i), 60 * (i + 3) * 60 + 59 * 30);
	assert_string_equal(end_of(f, "minutes"), "2026-11-21T09:18:00.000000000Z");
}

/* A gap of every length up to beyond the ring, at every kind of place in it. */
TEST_F(missed_intervals_are_null)
{
	static const uint64_t gaps[] = {1, 2, 59, 60, 61, 119, 120, 121, BC_HISTORY_SECONDS - 1,
		BC_HISTORY_SECONDS, BC_HISTORY_SECONDS + 1, 2 * BC_HISTORY_SECONDS,
		60 * BC_HISTORY_MINUTES, 60 * (BC_HISTORY_MINUTES + 2), UINT64_C(1) << 32};

	for (unsigned g = 0; g < COUNT_OF(gaps); g++) {
		bc_history_close(f->history);
		set_up(f);
		memset(f->totals, 0, sizeof(f->totals));
		poll_at(f, 0, 3);
		poll_at(f, (1 + gaps[g]) * SECOND_NS, 4);
		poll_at(f, (2 + gaps[g]) * SECOND_NS, 0);
		read_at(f, (2 + gaps[g]) * SECOND_NS);
		uint64_t all = gaps[g] + 2;
		size_t n = all < BC_HISTORY_SECONDS ? all : BC_HISTORY_SECONDS;
		assert_int_equal(count(f, "seconds"), n);
		for (size_t i = 0; i < n; i++) {
			uint64_t second = all - n + i;
			assert_int_equal(interval(f, "seconds", i), second == 0         ? 3
								    : second == all - 1 ? 4
											: -1);
		}
		all /= 60;
		n = all < BC_HISTORY_MINUTES ? all : BC_HISTORY_MINUTES;
		assert_int_equal(count(f, "minutes"), n);
		for (size_t i = 0; i < n; i++) {
			uint64_t minute = all - n + i;
			bool has_start = minute == 0;
			bool has_end = minute == (1 + gaps[g]) / 60;
			assert_int_equal(interval(f, "minutes", i), has_start && has_end ? 7
								    : has_start          ? 3
								    : has_end            ? 4
											 : -1);
		}
	}
}

TEST_F(a_first_interval_without_a_poll_is_null)
{
	poll_at(f, 61 * SECOND_NS, 5);
	poll_at(f, 120 * SECOND_NS, 0);
	read_at(f, 120 * SECOND_NS);
	for (size_t i = 0; i < 120; i++)
		assert_int_equal(interval(f, "seconds", i), i == 61 ? 5 : -1);
	assert_int_equal(interval(f, "minutes", 0), -1);
	assert_int_equal(interval(f, "minutes", 1), 5);
}

TEST_F(an_interval_has_the_fullest_buffer_in_it)
{
	static const unsigned used[] = {3, 7, 5};
	static const int by_second[] = {7, 0, 2};
	json_t *list;

	for (unsigned i = 0; i < 3; i++)
		poll_at(f, i * SECOND_NS / 10, used[i]);
	poll_at(f, SECOND_NS, 0);
	poll_at(f, 2 * SECOND_NS, 2);
	poll_at(f, 2 * SECOND_NS + 1, 1);
	poll_at(f, 60 * SECOND_NS, 9);
	read_at(f, 60 * SECOND_NS);
	list = json_object_get(json_object_get(f->json, "seconds"), "used_chunks");
	assert_int_equal(json_array_size(list), count(f, "seconds"));
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(json_integer_value(json_array_get(list, i)), by_second[i]);
	assert_true(json_is_null(json_array_get(list, 3)));
	list = json_object_get(json_object_get(f->json, "minutes"), "used_chunks");
	assert_int_equal(json_array_size(list), 1);
	assert_int_equal(json_integer_value(json_array_get(list, 0)), 7);
}

TEST_F(the_largest_history_has_less_than_512_kib)
{
	for (uint64_t s = 0; s <= BC_HISTORY_MINUTES * 60; s += 60) {
		for (unsigned i = 0; i < BC_HISTORY_FIGURES; i++)
			f->totals[i] += UINT64_MAX / 2;
		for (uint64_t n = s; n < s + 60; n++) {
			for (unsigned i = 0; i < BC_HISTORY_FIGURES; i++)
				f->totals[i] += UINT64_MAX / 2;
			bc_history_poll(f->history, f->totals, START_NS + n * SECOND_NS);
		}
	}
	char *text = bc_history_write(f->history, START_NS, WALL_NS);
	assert_non_null(text);
	assert_true(strlen(text) < 512 << 10);
	assert_non_null(strstr(text, "9223372036854775807"));
	assert_int_equal(text[strlen(text) - 2], '}');
	free(text);
}
