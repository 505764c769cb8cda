#include <stdlib.h>
#include <string.h>

#include "cli/stats/interval_stats.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define IDLE  100
#define BURST 4

static void run(struct bc_interval_stats *c, const uint64_t *ticks, size_t n)
{
	bc_interval_stats_init(c, IDLE, BURST);
	for (size_t i = 0; i < n; i++)
		bc_interval_stats_tick(c, ticks[i]);
	bc_interval_stats_start(c);
}

TEST(intervals_idles_and_bursts_are_counted_as_documented)
{
	static const uint64_t ticks[] = {1000, 1004, 1008, 1013, 1113, 1214, 1218, 1218, 1219};
	struct bc_interval_stats c;

	run(&c, ticks, 9);
	assert_int_equal(c.references, 9);
	assert_int_equal(c.epochs, 1);
	assert_int_equal(c.ticks, 219);
	assert_int_equal(c.intervals, 8);
	assert_int_equal(c.interval_ticks, 219);
	assert_int_equal(c.interval_min, 0);
	assert_int_equal(c.interval_max, 101);
	assert_int_equal(c.idles, 1); /* 100 does not exceed the threshold of 100 */
	assert_int_equal(c.idle_sum_ticks, 101);
	assert_int_equal(c.bursts, 2); /* 1000 to 1008, 1214 to 1219 */
	assert_int_equal(c.burst_references, 7);
	assert_int_equal(c.burst_longest, 4);
	assert_int_equal(c.interval_buckets[0], 1);
	assert_int_equal(c.interval_buckets[1], 1);
	assert_int_equal(c.interval_buckets[3], 4); /* 4 to 7 */
	assert_int_equal(c.interval_buckets[7], 2); /* 64 to 127 */
	assert_int_equal(c.spans[0].first_tick, 1000);
	assert_int_equal(c.spans[0].last_tick, 1219);
}

TEST(an_empty_trace_has_no_intervals)
{
	struct bc_clock_windows w;
	struct bc_interval_stats c;

	run(&c, NULL, 0);
	assert_int_equal(c.epochs, 0);
	assert_false(bc_interval_stats_windows(&c, &w));
	run(&c, (const uint64_t[]){UINT64_MAX}, 1);
	assert_int_equal(c.epochs, 1);
	assert_int_equal(c.ticks, 0);
	assert_int_equal(c.intervals, 0);
	assert_int_equal(c.bursts, 0);
	assert_false(bc_interval_stats_windows(&c, &w));
}

TEST(an_interval_across_a_break_or_clocks_is_unknown)
{
	struct bc_interval_stats c;

	bc_interval_stats_init(&c, IDLE, BURST);
	bc_interval_stats_tick(&c, 10);
	bc_interval_stats_tick(&c, 12);
	bc_interval_stats_break(&c);
	bc_interval_stats_tick(&c, 900); /* not an idle time: references are missing */
	bc_interval_stats_tick(&c, 901);
	bc_interval_stats_start(&c);
	bc_interval_stats_tick(&c, 5);
	bc_interval_stats_tick(&c, 6);
	bc_interval_stats_start(&c);
	assert_int_equal(c.idles, 0);
	assert_int_equal(c.intervals, 3);
	assert_int_equal(c.bursts, 3);
	assert_int_equal(c.ticks, 891 + 1);
	assert_int_equal(c.epochs, 2);
	assert_int_equal(c.spans[0].references, 4);
	assert_int_equal(c.spans[1].last_tick, 6);
}

TEST(a_clock_that_goes_back_goes_on_from_there)
{
	static const struct {
		uint64_t ticks[6];
		uint64_t backward;
		uint64_t sum;
		uint64_t intervals;
	} rows[] = {
		{{50, 60, 40, 58, 70, 70}, 1, 10 + 18 + 12, 4},
		{{4294967290, 4294967295, 3, 9, 10, 11}, 1, 5 + 6 + 1 + 1, 4}, /* 32 bits wrap */
		{{UINT64_MAX - 1, UINT64_MAX, 0, 1, 0, 5}, 2, 1 + 1 + 5, 3},
		{{1000, 2000, 5, 500, 1500, 2500}, 1, 3495, 4}, /* two runs */
		{{9, 8, 7, 6, 5, 4}, 5, 0, 0},
	};
	struct bc_interval_stats c;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		run(&c, rows[i].ticks, 6);
		assert_int_equal(c.backward, rows[i].backward);
		assert_int_equal(c.ticks, rows[i].sum);
		assert_int_equal(c.intervals, rows[i].intervals);
		assert_int_equal(c.interval_ticks, rows[i].sum);
		assert_int_equal(c.references, 6);
		assert_int_equal(c.epochs, 1);
		assert_int_equal(c.spans[0].last_tick, rows[i].ticks[5]);
	}
}

/* Compares with windows that are calculated after the end. */
TEST(windows_double_until_all_time_fits)
{
	static uint64_t ticks[20000];
	struct dice dice = {5};

	for (unsigned shift = 0; shift < 40; shift++) {
		struct bc_interval_stats c;
		struct bc_clock_windows w;
		uint64_t counts[BC_INTERVAL_STATS_WINDOWS] = {0};
		uint64_t most = 0;
		uint64_t fewest = UINT64_MAX;
		ticks[0] = 12345;
		for (size_t i = 1; i < 20000; i++)
			ticks[i] = ticks[i - 1] + (dice_roll(&dice) >> (64 - 1 - shift));
		run(&c, ticks, 20000);
		if (c.ticks < 2)
			continue;
		assert_true(bc_interval_stats_windows(&c, &w));
		assert_true(w.count <= BC_INTERVAL_STATS_WINDOWS);
		assert_true(w.count >= BC_INTERVAL_STATS_WINDOWS / 2 || w.ticks == 1);
		for (size_t i = 0; i < 20000; i++)
			counts[(ticks[i] - ticks[0]) / w.ticks]++;
		assert_int_equal(w.count, (ticks[19999] - ticks[0] + 1) / w.ticks);
		for (uint64_t i = 0; i < w.count; i++) {
			most = counts[i] > most ? counts[i] : most;
			fewest = counts[i] < fewest ? counts[i] : fewest;
		}
		assert_int_equal(w.most, most);
		assert_int_equal(w.fewest, fewest);
	}
}

static void write_times(uint8_t *records, const uint32_t *times, size_t n)
{
	memset(records, 0, n * BC_RECORD_BYTES);
	for (size_t i = 0; i < n; i++)
		bc_write_le32(records + i * BC_RECORD_BYTES + 8, times[i]);
}

TEST(a_record_without_a_delta_has_no_interval)
{
	static const uint32_t times[] = {BC_TIME_NONE, 3, BC_TIME_NONE, 200};
	uint8_t records[4 * BC_RECORD_BYTES];
	struct bc_interval_stats c;

	write_times(records, times, 4);
	bc_interval_stats_init(&c, IDLE, BURST);
	bc_interval_stats_records(&c, records, 4, 0);
	bc_interval_stats_start(&c);
	assert_int_equal(c.references, 4);
	assert_int_equal(c.ticks, 203);
	assert_int_equal(c.intervals, 2);
	assert_int_equal(c.idles, 1);
}

TEST(a_burst_that_the_next_records_do_not_continue_is_the_longest)
{
	static const uint32_t times[] = {BURST, BURST + 1, BURST + 1};
	uint8_t records[3 * BC_RECORD_BYTES];
	struct bc_interval_stats c;

	write_times(records, times, 3);
	bc_interval_stats_init(&c, IDLE, BURST);
	bc_interval_stats_tick(&c, 10);
	bc_interval_stats_records(&c, records, 3, 10 + BURST);
	bc_interval_stats_start(&c);
	assert_int_equal(c.bursts, 1);
	assert_int_equal(c.burst_references, 2);
	assert_int_equal(c.burst_longest, 2);
}

TEST(records_and_ticks_count_the_same)
{
	static uint8_t records[5000 * BC_RECORD_BYTES];
	static struct bc_interval_stats a, b;
	struct dice dice = {9};

	for (unsigned round = 0; round < 40; round++) {
		/* Bits of the longest interval; in half of the rounds, idle times and bursts have
		 * more ticks than the intervals that are counted by length. */
		unsigned bits = 1 + round % 20;
		uint64_t scale = round < 20 ? 1 : BC_INTERVAL_STATS_SHORT;
		uint64_t tick = 7;
		bc_interval_stats_init(&a, IDLE * scale, BURST * scale);
		bc_interval_stats_init(&b, IDLE * scale, BURST * scale);
		for (size_t i = 0; i < 5000; i++) {
			uint32_t time = dice_below(&dice, 1u << (1 + dice_below(&dice, bits)));
			bool is_none = i != 0 && dice_below(&dice, 50) == 0;
			bc_write_le32(
				records + i * BC_RECORD_BYTES + 8, is_none ? BC_TIME_NONE : time);
			if (is_none)
				bc_interval_stats_break(&b);
			else if (i != 0)
				tick += time;
			bc_interval_stats_tick(&b, tick);
		}
		bc_interval_stats_records(&a, records, 5000, 7);
		bc_interval_stats_start(&a);
		bc_interval_stats_start(&b);
		assert_memory_equal(&a, &b, sizeof(a));
	}
}

#define HZ 66000000u

/* Generates pairs every tenth of a second for a clock that is fast by `ppm`, seen up to `late_ns`
 * late. */
static struct bc_drift_result estimate_drift(double ppm, uint32_t late_ns, unsigned pairs)
{
	struct bc_drift drift = {.now = {.pairs = 0}};
	struct bc_drift_result result;
	struct dice dice = {9};

	for (unsigned i = 0; i < pairs; i++) {
		double s = i / 10.0;
		uint64_t tick = 777 + (uint64_t)(s * HZ * (1 + ppm * 1e-6));
		int64_t wall = INT64_C(1795166100000000000) + (int64_t)(s * 1e9);
		if (late_ns != 0)
			wall += dice_below(&dice, late_ns);
		bc_drift_add(&drift, 1, 0, HZ, tick, wall);
	}
	bc_drift_result(&drift, &result);
	return result;
}

static void assert_near(double got, double expected, double most)
{
	assert_true(got - expected <= most && expected - got <= most);
}

TEST(drift_is_found)
{
	static const double ppm[] = {0.1, 1, -1, 50, -200, 9000};

	for (size_t i = 0; i < COUNT_OF(ppm); i++) {
		struct bc_drift_result r = estimate_drift(ppm[i], 0, 600);
		assert_int_equal(r.state, BC_DRIFT_KNOWN);
		assert_near(r.ppm, ppm[i], 0.01);
		assert_int_equal(r.pairs, 600);
		r = estimate_drift(ppm[i], 2000000, 600);
		assert_near(r.ppm, ppm[i], 5 * r.error_ppm);
		assert_true(r.error_ppm > 0.5 && r.error_ppm < 5);
	}
}

TEST(a_stopped_clock_or_a_host_that_goes_back_has_no_drift)
{
	struct bc_drift drift = {.now = {.pairs = 0}};
	struct bc_drift_result r;

	for (unsigned i = 0; i < 50; i++)
		bc_drift_add(&drift, 1, 0, HZ, 5, (int64_t)i * 1000000000);
	bc_drift_result(&drift, &r);
	assert_int_equal(r.state, BC_DRIFT_SHORT);
	for (unsigned i = 0; i < 50; i++)
		bc_drift_add(&drift, 1, 1, HZ, (uint64_t)i * HZ, (int64_t)i * -1000000000);
	bc_drift_result(&drift, &r);
	assert_int_equal(r.state, BC_DRIFT_REPLAY);
	bc_drift_add(&drift, 2, 0, 0, 5, 5); /* unknown rate */
	assert_int_equal(drift.now.recording_tag, 1);
	bc_drift_add(&drift, 2, 0, 1, UINT64_MAX, INT64_MIN);
	bc_drift_add(&drift, 2, 0, 1, 0, INT64_MAX);
	bc_drift_add(&drift, 2, 0, 1, UINT64_MAX, INT64_MIN);
}

TEST(the_clock_with_the_longest_time_is_reported)
{
	struct bc_drift drift = {.now = {.pairs = 0}};
	struct bc_drift_result r;

	for (uint32_t epoch = 0; epoch < 3; epoch++)
		for (unsigned i = 0; i < (epoch == 1 ? 100u : 20u); i++)
			bc_drift_add(&drift, 1, epoch, HZ, (uint64_t)i * HZ,
				(int64_t)i * (1000000000 + 1000 * (int64_t)epoch));
	bc_drift_result(&drift, &r);
	assert_int_equal(r.pairs, 100);
	assert_near(r.ppm, -1, 0.001);
}
