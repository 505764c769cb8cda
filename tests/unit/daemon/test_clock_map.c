/* The clock map, against arrivals that are late by random times. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/ingest/clock_map.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define SECOND UINT64_C(1000000000)
#define REAL   INT64_C(1795000000000000000)
#define HZ     UINT64_C(66000000)

/* A bus whose clock is `ppm` fast, and a host that gets its records in pieces. */
struct bus {
	struct bc_clock_map map;
	struct dice dice;
	double ppm;
	uint64_t ns;       /* true time, monotonic */
	uint64_t piece_ns; /* mean */
	uint64_t late_ns;  /* pieces are late by up to this much, and some by ten times as much */
	int64_t real_ns;
	int64_t worst_ns; /* error of a chunk's time */
	int64_t back_ns;  /* worst step back from one chunk to the next */
	int64_t last_ns;  /* error of the last chunk */
	unsigned chunks;
	bool is_news_allowed;
	enum bc_clock_map_news news;
};

static uint64_t tick_at(const struct bus *b, uint64_t ns)
{
	return 1000 + (uint64_t)((double)ns * (1 + b->ppm * 1e-6) * (double)HZ * 1e-9);
}

static void begin(struct bus *b)
{
	b->ns = 5 * SECOND;
	bc_clock_map_begin(&b->map, HZ, b->real_ns);
}

/* A chunk of some pieces. */
static void add_chunk(struct bus *b, unsigned pieces)
{
	uint64_t first_ns = b->ns;

	for (unsigned i = 0; i < pieces; i++) {
		b->ns += b->piece_ns / 2 + dice_below(&b->dice, (unsigned)b->piece_ns);
		/* One in three is on time, one in ten very late. */
		unsigned delay = dice_below(&b->dice, (unsigned)b->late_ns);
		unsigned kind = dice_below(&b->dice, 30);
		uint64_t late_ns = 20000 + (kind < 10          ? delay / 40
						   : kind < 27 ? delay
							       : 10ull * delay);
		bc_clock_map_arrive(&b->map, tick_at(b, b->ns), b->ns + late_ns);
		bool is_last = i + 1 == pieces && !b->map.has_offset;
		if (i != 0 && !is_last)
			continue;
		enum bc_clock_map_news news = bc_clock_map_settle(
			&b->map, tick_at(b, first_ns), b->real_ns, is_last);
		b->news = news != BC_CLOCK_AS_BEFORE ? news : b->news;
	}
	int64_t error_ns = bc_clock_map_time(&b->map, tick_at(b, first_ns)) -
			   ((int64_t)first_ns + b->real_ns);
	int64_t size_ns = error_ns < 0 ? -error_ns : error_ns;
	if (b->chunks++ > 5) {
		b->worst_ns = size_ns > b->worst_ns ? size_ns : b->worst_ns;
		b->back_ns = b->last_ns - error_ns > b->back_ns ? b->last_ns - error_ns
								: b->back_ns;
	}
	b->last_ns = error_ns;
}

static struct bus bus_of(uint64_t seed, double ppm)
{
	struct bus b = {.dice = {seed},
		.ppm = ppm,
		.piece_ns = 7000000,
		.late_ns = 4000000,
		.real_ns = REAL};

	begin(&b);
	return b;
}

TEST(times_are_exact_to_a_quarter_of_a_millisecond_and_do_not_step_back)
{
	static const double drifts[] = {0, 20, -20, 100, -150};
	static const struct {
		uint64_t piece_ns;
		uint64_t late_ns;
		unsigned pieces;
	} loads[] = {{7000000, 4000000, 13}, {7000000, 30000000, 13}, {25000000, 10000000, 8},
		{100000000, 1000000, 4}};

	for (size_t d = 0; d < COUNT_OF(drifts); d++) {
		for (size_t l = 0; l < COUNT_OF(loads); l++) {
			struct bus b = bus_of(d * 10 + l, drifts[d]);
			b.piece_ns = loads[l].piece_ns;
			b.late_ns = loads[l].late_ns;
			while (b.ns < 120 * SECOND)
				add_chunk(&b, loads[l].pieces);
			printf("drift %4.0f ppm, late %2" PRIu64
			       " ms: worst %.3f ms, back %.3f ms\n",
				b.ppm, b.late_ns / 1000000, (double)b.worst_ns * 1e-6,
				(double)b.back_ns * 1e-6);
			assert_int_equal(b.news, BC_CLOCK_AS_BEFORE);
			/* A large drift shows after ten seconds. */
			assert_true(b.worst_ns < (b.ppm < -100 ? 1600000 : 250000));
			assert_true(b.back_ns < 400000);
		}
	}
}

TEST(the_first_chunk_takes_its_least_delayed_piece)
{
	struct bus b = bus_of(1, 0);

	bc_clock_map_arrive(&b.map, tick_at(&b, b.ns), b.ns + SECOND);
	assert_int_equal(
		bc_clock_map_time(&b.map, tick_at(&b, b.ns)), (int64_t)(b.ns + SECOND) + REAL);
	add_chunk(&b, 13);
	assert_true(llabs(b.last_ns) < 500000);
}

TEST(a_clock_that_is_set_moves_all_later_times_at_once)
{
	static const int64_t steps[] = {3600000000000, -200000000, 50000000};

	for (size_t i = 0; i < COUNT_OF(steps); i++) {
		struct bus b = bus_of(i, 10);
		while (b.ns < 20 * SECOND)
			add_chunk(&b, 13);
		b.real_ns += steps[i];
		add_chunk(&b, 13);
		assert_true(llabs(b.last_ns) < 250000);
		/* What NTP slews is not worth a word. */
		assert_int_equal(b.news, i < 2 ? BC_CLOCK_WAS_SET : BC_CLOCK_AS_BEFORE);
		assert_true(i == 2 || b.map.news_ns == steps[i]);
	}
}

TEST(a_wrong_clock_rate_is_noticed_and_the_map_starts_again)
{
	static const double rates[] = {2000, -2000, 100000, -100000};

	for (size_t i = 0; i < COUNT_OF(rates); i++) {
		struct bus b = bus_of(i, rates[i]);
		while (b.ns < 17 * SECOND)
			add_chunk(&b, 13);
		assert_int_equal(b.news, BC_CLOCK_RATE_WRONG);
		/* In ten seconds, times were off by this, less what was slewed. */
		double off_ns = -rates[i] * 10000;
		assert_true((double)b.map.news_ns / off_ns > 0.7);
		assert_true((double)b.map.news_ns / off_ns < 1.2);
		int64_t most_ns = (int64_t)((rates[i] < 0 ? -rates[i] : rates[i]) * 13000);
		while (b.ns < 60 * SECOND) {
			add_chunk(&b, 13);
			assert_true(llabs(b.last_ns) < most_ns);
		}
	}
}

TEST(few_pieces_show_no_drift)
{
	struct bus b = bus_of(4, 0);

	b.piece_ns = 15 * SECOND;
	b.late_ns = 100000000;
	while (b.ns < 600 * SECOND)
		add_chunk(&b, 1);
	assert_int_equal(b.news, BC_CLOCK_AS_BEFORE);
	assert_true(b.worst_ns < 100000000);
}

/* Adds pieces for `seconds`: uniform random times between them, or bursts of two; late by a random
 * part of late_ns, or by all of it. */
static void add_pieces(
	struct bus *b, unsigned seconds, uint64_t piece_ns, uint64_t late_ns, unsigned kind)
{
	uint64_t end_ns = b->ns + seconds * SECOND;

	for (unsigned i = 0; b->ns < end_ns; i++) {
		uint64_t first_ns = b->ns;
		bool is_second = (kind & 2) != 0 && i % 2 != 0;
		b->ns += is_second ? 20000000
				   : piece_ns / 2 + dice_below(&b->dice, (unsigned)piece_ns);
		uint64_t delay_ns = (kind & 1) != 0 ? late_ns
						    : dice_below(&b->dice, (unsigned)late_ns);
		bc_clock_map_arrive(&b->map, tick_at(b, b->ns), b->ns + 20000 + delay_ns);
		enum bc_clock_map_news news = bc_clock_map_settle(
			&b->map, tick_at(b, first_ns), REAL, true);
		b->news = news != BC_CLOCK_AS_BEFORE ? news : b->news;
		int64_t error_ns = llabs(bc_clock_map_time(&b->map, tick_at(b, first_ns)) -
					 ((int64_t)first_ns + REAL));
		b->worst_ns = error_ns > b->worst_ns ? error_ns : b->worst_ns;
	}
}

TEST(few_pieces_show_no_drift_whatever_came_before_and_after_them)
{
	for (unsigned seed = 0; seed < 24; seed++) {
		struct bus b = bus_of(seed, 0);
		uint64_t piece_ns = SECOND / 2 + dice_below(&b.dice, SECOND * 2);
		unsigned busy = seed % 4 == 0 ? 600 : dice_below(&b.dice, 100);
		unsigned kind = dice_below(&b.dice, 4);
		for (unsigned round = 0; round < 3; round++) {
			add_pieces(&b, busy, 7000000, 4000000, 0);
			add_pieces(&b, 20 + dice_below(&b.dice, 1200), piece_ns, 45000000, kind);
		}
		if (b.news != BC_CLOCK_AS_BEFORE || b.worst_ns > 60000000)
			fail_msg("seed %u, kind %u, a piece in %" PRIu64
				 " ms after %u s: news %d, worst %.1f ms",
				seed, kind, piece_ns / 1000000, busy, b.news,
				(double)b.worst_ns * 1e-6);
	}
}

TEST(the_tick_of_a_time_is_the_first_that_is_not_earlier)
{
	struct bus b = bus_of(5, 20);
	uint64_t tick;

	assert_false(bc_clock_map_tick(&b.map, &tick, b.ns));
	while (b.ns < 20 * SECOND)
		add_chunk(&b, 13);
	for (uint64_t ns = 4 * SECOND; ns < 20 * SECOND; ns += SECOND / 7) {
		assert_true(bc_clock_map_tick(&b.map, &tick, ns));
		int64_t at_ns = bc_clock_map_time(&b.map, tick) - b.real_ns;
		assert_true(at_ns >= (int64_t)ns && at_ns <= (int64_t)ns + 100);
	}
	/* Before the first arrival, too. */
	assert_true(bc_clock_map_tick(&b.map, &tick, SECOND));
	assert_true(tick > HZ && tick < HZ + HZ / 100);
}

TEST(any_tick_has_a_time)
{
	static const uint64_t ticks[] = {0, UINT64_MAX, UINT64_MAX / 2, 1};

	for (size_t i = 0; i < COUNT_OF(ticks) * COUNT_OF(ticks); i++) {
		struct bus b = bus_of(6, 0);
		add_chunk(&b, 13);
		for (size_t n = 0; n < 2; n++) {
			uint64_t tick = ticks[n == 0 ? i / COUNT_OF(ticks) : i % COUNT_OF(ticks)];
			bc_clock_map_arrive(&b.map, tick, b.ns);
			bc_clock_map_settle(&b.map, tick, REAL, n != 0);
			(void)bc_clock_map_time(&b.map, tick);
			assert_true(bc_clock_map_tick(&b.map, &tick, b.ns));
		}
	}
}

/* A simulator on a machine that is too slow. */
TEST(a_bus_that_stood_still_has_right_times_again_after_a_minute)
{
	struct bus b = bus_of(3, 0);
	uint64_t stood_ns = 700000000;

	while (b.ns < 30 * SECOND)
		add_chunk(&b, 13);
	while (b.ns < 100 * SECOND) {
		uint64_t first_ns = b.ns;
		b.ns += 90000000;
		bc_clock_map_arrive(&b.map, tick_at(&b, b.ns), b.ns + stood_ns);
		bc_clock_map_settle(&b.map, tick_at(&b, first_ns), REAL, true);
		b.last_ns = bc_clock_map_time(&b.map, tick_at(&b, first_ns)) -
			    ((int64_t)(first_ns + stood_ns) + REAL);
	}
	assert_true(llabs(b.last_ns) < 1000000);
}
