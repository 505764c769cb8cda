#include "formats/stats/drift.h"

#include <math.h>

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
	*result = (struct bc_drift_result){.state = BC_DRIFT_NO_PAIRS,
		.seconds = seconds_of(c),
		.pairs = c->pairs,
		.epoch = c->epoch};
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
