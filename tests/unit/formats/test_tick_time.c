/* Times of ticks and ticks of times, against exact arithmetic. */
#include "formats/bus/tick_time.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

struct example {
	struct bc_clock_point point;
	uint64_t tick;
	__int128 ns; /* exact, rounded down */
};

static struct example example(struct dice *dice)
{
	struct example e = {.point = {.wall_ns = (int64_t)dice_roll(dice) >> dice_below(dice, 64),
				    .tick = dice_roll(dice) >> dice_below(dice, 64),
				    .clock_hz = 1 + (dice_roll(dice) >> dice_below(dice, 64)) / 2},
		.tick = dice_roll(dice) >> dice_below(dice, 64)};
	__int128 hz = (__int128)e.point.clock_hz;
	__int128 product = ((__int128)e.tick - e.point.tick) * 1000000000;

	e.ns = (product - ((product % hz + hz) % hz)) / hz + e.point.wall_ns;
	return e;
}

TEST(the_time_of_a_tick_is_exact_or_the_nearest_possible)
{
	struct dice dice = {8};

	for (int round = 0; round < 20000; round++) {
		struct example e = example(&dice);
		__int128 ns = e.ns > INT64_MAX ? INT64_MAX : e.ns < INT64_MIN ? INT64_MIN : e.ns;
		int64_t got;
		assert_true(bc_tick_time(&got, e.point, e.tick));
		assert_true(got == (int64_t)ns);
	}
}

TEST(without_a_clock_rate_the_time_is_that_of_the_point)
{
	struct dice dice = {9};

	for (int round = 0; round < 100; round++) {
		struct example e = example(&dice);
		int64_t got;
		e.point.clock_hz = 0;
		assert_false(bc_tick_time(&got, e.point, e.tick));
		assert_true(got == e.point.wall_ns);
	}
}

TEST(the_tick_of_a_time_is_the_first_that_is_not_earlier)
{
	struct dice dice = {10};
	int checked = 0;

	for (int round = 0; round < 20000; round++) {
		struct example e = example(&dice);
		if (e.tick < e.point.tick || e.ns < INT64_MIN || e.ns > INT64_MAX)
			continue;
		__int128 tick = bc_time_tick(e.point, (int64_t)e.ns);
		int64_t ns;
		assert_true(tick >= e.point.tick && tick <= e.tick);
		assert_true(bc_tick_time(&ns, e.point, (uint64_t)tick) && ns >= (int64_t)e.ns);
		if (tick > e.point.tick) {
			assert_true(bc_tick_time(&ns, e.point, (uint64_t)tick - 1));
			assert_true(ns < (int64_t)e.ns);
		}
		checked++;
	}
	assert_true(checked > 1000);
	assert_true(bc_time_tick((struct bc_clock_point){INT64_MIN, 0, UINT64_MAX}, INT64_MAX) >
		    UINT64_MAX);
	assert_true(bc_time_tick((struct bc_clock_point){5, 7, 9}, 4) == 7);
}
