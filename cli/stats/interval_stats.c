/* Interval statistics: one pass, constant memory and constant cost per reference.
 *
 * Each reference has a tick. The interval to it is known unless the clock was started, broken (a
 * gap, an unknown delta) or has gone back since the previous one; only known intervals count as
 * idle or extend a burst. `run` is the number of references since the last interval that was too
 * long for a burst. Windows divide the sum of all steps forward; when the last one is used up,
 * neighbours are joined (join_windows()).
 *
 * Nearly all records follow a known one within the current windows: add_plain_records() counts
 * those in registers, and leaves the others to bc_interval_stats_tick(). It counts short intervals
 * by their length; bc_interval_stats_start() adds these counts to the results. */
#include "cli/stats/interval_stats.h"

#include <math.h>

void bc_interval_stats_init(struct bc_interval_stats *c, uint64_t idle_ticks, uint64_t burst_ticks)
{
	*c = (struct bc_interval_stats){
		.idle_ticks = idle_ticks, .burst_ticks = burst_ticks, .interval_min = UINT64_MAX};
}

static void end_run(struct bc_interval_stats *c)
{
	if (c->run >= 2) {
		c->bursts++;
		c->burst_references += c->run;
		c->burst_longest = c->run > c->burst_longest ? c->run : c->burst_longest;
	}
	c->run = 0;
}

static void end_span(struct bc_interval_stats *c)
{
	if (!c->has_clock)
		return;
	if (c->epochs <= BC_INTERVAL_STATS_EPOCHS)
		c->spans[c->epochs - 1] = c->span;
	c->has_clock = false;
}

/* Adds n intervals of the same length, but not to a burst. */
static void add_intervals(struct bc_interval_stats *c, uint64_t ticks, uint64_t n)
{
	c->intervals += n;
	c->interval_ticks += ticks * n;
	c->interval_min = ticks < c->interval_min ? ticks : c->interval_min;
	c->interval_max = ticks > c->interval_max ? ticks : c->interval_max;
	c->interval_buckets[ticks != 0 ? 64 - __builtin_clzll(ticks) : 0] += n;
	if (ticks > c->idle_ticks) {
		c->idles += n;
		c->idle_sum_ticks += ticks * n;
	}
}

/* Adds the counts of short intervals, and clears them. */
static void settle_intervals(struct bc_interval_stats *c)
{
	for (uint32_t ticks = 0; ticks < BC_INTERVAL_STATS_SHORT; ticks++) {
		uint64_t n = c->short_intervals[0][ticks] + c->short_intervals[1][ticks];
		if (n == 0)
			continue;
		c->short_intervals[0][ticks] = c->short_intervals[1][ticks] = 0;
		add_intervals(c, ticks, n);
	}
}

void bc_interval_stats_start(struct bc_interval_stats *c)
{
	end_run(c);
	end_span(c);
	settle_intervals(c);
}

void bc_interval_stats_break(struct bc_interval_stats *c)
{
	c->is_broken = true;
}

static void start_span(struct bc_interval_stats *c, uint64_t tick)
{
	c->has_clock = true;
	c->epochs++;
	c->span = (struct bc_epoch_span){.first_tick = tick, .last_tick = tick};
	c->is_broken = true;
}

static void join_windows(struct bc_interval_stats *c)
{
	for (unsigned i = 0; i < BC_INTERVAL_STATS_WINDOWS / 2; i++)
		c->windows[i] = c->windows[2 * i] + c->windows[2 * i + 1];
	for (unsigned i = BC_INTERVAL_STATS_WINDOWS / 2; i < BC_INTERVAL_STATS_WINDOWS; i++)
		c->windows[i] = 0;
	c->window_shift++;
}

/* Advances the time to a reference, and counts it in its window. */
static inline void advance_time(struct bc_interval_stats *c, uint64_t ticks)
{
	c->ticks += ticks;
	/* Only a crafted trace has this many ticks. The last window then gets the rest. */
	if (__builtin_add_overflow(c->elapsed, ticks, &c->elapsed))
		c->elapsed = UINT64_MAX;
	while (__builtin_expect(c->elapsed >> c->window_shift >= BC_INTERVAL_STATS_WINDOWS, 0))
		join_windows(c);
	c->windows[c->elapsed >> c->window_shift]++;
}

void bc_interval_stats_tick(struct bc_interval_stats *c, uint64_t tick)
{
	if (!c->has_clock)
		start_span(c, tick);
	bool is_backward = tick < c->span.last_tick;
	uint64_t ticks = is_backward ? 0 : tick - c->span.last_tick;
	c->references++;
	c->span.references++;
	c->backward += is_backward;
	advance_time(c, ticks);
	if (is_backward || c->is_broken) {
		end_run(c);
		c->run = 1;
	} else {
		add_intervals(c, ticks, 1);
		if (ticks > c->burst_ticks)
			end_run(c);
		c->run++;
	}
	/* After a step back, continue from there: the clock has wrapped or was restarted. */
	c->span.last_tick = tick;
	c->is_broken = false;
}

/* Adds records that follow one at span.last_tick, as bc_interval_stats_tick() would, up to the
 * first that has no time, passes the last window, or overflows. Returns their number. Nearly all
 * records are added here, so what changes with each is in registers, and no branch depends on
 * whether an interval belongs to a burst, which is hard to predict. */
static size_t add_plain_records(struct bc_interval_stats *c, const uint8_t *records, size_t n)
{
	uint64_t elapsed = c->elapsed;
	uint64_t end = (uint64_t)BC_INTERVAL_STATS_WINDOWS << c->window_shift;
	uint64_t window_end = 0; /* of the current window */
	uint64_t *window = NULL; /* set by the first record */
	uint64_t burst_ticks = c->burst_ticks;
	uint64_t run = c->run;
	uint64_t longest = c->burst_longest > run ? c->burst_longest : run;
	uint64_t starts = 0; /* bursts that start here */
	uint64_t within = 0; /* intervals in bursts */
	size_t i = 0;
	size_t window_at = 0; /* first record of the current window */

	/* Only a crafted trace has a tick that overflows. */
	if (end - elapsed > UINT64_MAX - c->span.last_tick)
		end = elapsed + (UINT64_MAX - c->span.last_tick);
	for (; i < n; i++) {
		uint32_t time = bc_le32(records + i * BC_RECORD_BYTES + 8);
		if (__builtin_expect(elapsed + time >= window_end, 0)) {
			if (time == BC_TIME_NONE || elapsed + time >= end)
				break;
			if (window != NULL)
				*window += i - window_at;
			window = &c->windows[(elapsed + time) >> c->window_shift];
			window_at = i;
			window_end = (((elapsed + time) >> c->window_shift) + 1) << c->window_shift;
			window_end = window_end < end ? window_end : end;
		}
		if (__builtin_expect(time < BC_INTERVAL_STATS_SHORT, 1))
			c->short_intervals[i & 1][time]++;
		else if (time != BC_TIME_NONE)
			add_intervals(c, time, 1);
		else
			break;
		elapsed += time;
		uint64_t is_within = time <= burst_ticks;
		within += is_within;
		starts += is_within & (run == 1);
		run = (run & -is_within) + 1;
		if (__builtin_expect(run > longest, 0))
			longest = run;
	}
	if (window == NULL)
		return 0;
	*window += i - window_at;
	uint64_t ticks = elapsed - c->elapsed;
	c->elapsed = elapsed;
	/* The bursts that have ended are those that were open or have started, without the one that
	 * is open now. Each has one reference more than intervals. */
	c->bursts += starts + (c->run >= 2) - (run >= 2);
	c->burst_references += within + starts + (c->run >= 2 ? c->run : 0) - (run >= 2 ? run : 0);
	c->burst_longest = longest > 1 ? longest : 0;
	c->run = run;
	c->references += i;
	c->span.references += i;
	c->span.last_tick += ticks;
	c->ticks += ticks;
	return i;
}

/* Adds the records that follow one at `tick`. Returns the tick of the last. */
static uint64_t add_records_after(
	struct bc_interval_stats *c, const uint8_t *records, size_t n, uint64_t tick)
{
	for (size_t i = 0; i < n; i++) {
		if (!c->is_broken && tick == c->span.last_tick) {
			i += add_plain_records(c, records + i * BC_RECORD_BYTES, n - i);
			tick = c->span.last_tick;
			if (i == n)
				break;
		}
		uint32_t time = bc_le32(records + i * BC_RECORD_BYTES + 8);
		if (time != BC_TIME_NONE)
			tick += time;
		else
			c->is_broken = true;
		bc_interval_stats_tick(c, tick);
	}
	return tick;
}

void bc_interval_stats_records(
	struct bc_interval_stats *c, const uint8_t *records, size_t n, uint64_t tick)
{
	if (n == 0)
		return;
	c->is_broken |= bc_le32(records + 8) == BC_TIME_NONE;
	bc_interval_stats_tick(c, tick);
	add_records_after(c, records + BC_RECORD_BYTES, n - 1, tick);
}

bool bc_interval_stats_windows(const struct bc_interval_stats *c, struct bc_clock_windows *windows)
{
	/* The last window is usually incomplete, except if it ends right here. */
	uint64_t count = (c->elapsed + (c->elapsed != UINT64_MAX)) >> c->window_shift;

	*windows = (struct bc_clock_windows){
		.ticks = UINT64_C(1) << c->window_shift, .count = count, .fewest = UINT64_MAX};
	for (uint64_t i = 0; i < count; i++) {
		uint64_t n = c->windows[i];
		windows->most = n > windows->most ? n : windows->most;
		windows->fewest = n < windows->fewest ? n : windows->fewest;
	}
	return count >= 2;
}

/* ---- drift */

static double seconds_of(const struct bc_drift_clock *c)
{
	return c->pairs != 0 ? (double)(c->last_tick - c->first_tick) / (double)c->clock_hz : 0;
}

static void add_pair(struct bc_drift_clock *c, uint64_t tick, int64_t wall_ns)
{
	uint64_t ticks = tick - c->first_tick;
	double s = (double)ticks / (double)c->clock_hz;
	/* Subtract two large numbers without rounding. */
	__int128 passed_ns = (__int128)wall_ns - c->first_wall_ns;
	__int128 ticked_ns = (__int128)ticks * 1000000000 / c->clock_hz;
	double ns = (double)(passed_ns - ticked_ns);

	c->pairs++;
	c->last_tick = tick;
	double ds = s - c->mean_s;
	double dn = ns - c->mean_ns;
	c->mean_s += ds / (double)c->pairs;
	c->mean_ns += dn / (double)c->pairs;
	c->sum_ss += ds * (s - c->mean_s);
	c->sum_sn += ds * (ns - c->mean_ns);
	c->sum_nn += dn * (ns - c->mean_ns);
}

void bc_drift_add(struct bc_drift *drift, uint64_t recording_tag, uint32_t epoch, uint64_t clock_hz,
	uint64_t tick, int64_t wall_ns)
{
	struct bc_drift_clock *c = &drift->now;

	if (clock_hz == 0)
		return;
	if (c->pairs == 0 || c->recording_tag != recording_tag || c->epoch != epoch ||
		c->clock_hz != clock_hz || tick < c->last_tick) {
		if (seconds_of(c) > seconds_of(&drift->longest) || drift->longest.pairs == 0)
			drift->longest = *c;
		*c = (struct bc_drift_clock){.recording_tag = recording_tag,
			.epoch = epoch,
			.clock_hz = clock_hz,
			.first_tick = tick,
			.first_wall_ns = wall_ns};
	}
	add_pair(c, tick, wall_ns);
}

void bc_drift_result(const struct bc_drift *drift, struct bc_drift_result *result)
{
	const struct bc_drift_clock *c = &drift->now;

	if (seconds_of(&drift->longest) > seconds_of(c))
		c = &drift->longest;
	*result = (struct bc_drift_result){
		.state = BC_DRIFT_NO_PAIRS, .seconds = seconds_of(c), .pairs = c->pairs};
	if (c->pairs == 0)
		return;
	result->state = BC_DRIFT_SHORT;
	if (c->pairs < BC_DRIFT_PAIRS_MIN || result->seconds < BC_DRIFT_SECONDS_MIN)
		return;
	/* ns per second by which the host's clock gains on the board's. */
	double slope = c->sum_sn / c->sum_ss;
	double left = c->sum_nn - slope * c->sum_sn;
	double variance = (left > 0 ? left : 0) / (double)(c->pairs - 2) / c->sum_ss;
	result->ppm = (1 / (1 + slope * 1e-9) - 1) * 1e6;
	result->error_ppm = sqrt(variance) * 1e-3;
	/* Times of day that agree to the nanosecond were computed from the ticks. */
	bool is_replay = fabs(result->ppm) > BC_DRIFT_PPM_MAX || c->sum_nn < (double)c->pairs;
	result->state = is_replay ? BC_DRIFT_REPLAY : BC_DRIFT_KNOWN;
}
