#include "formats/stats/drift.h"

#include <math.h>

static double seconds_of(const struct bc_drift_watch *w)
{
	return w->pairs != 0 ? (double)(w->last_tick - w->first_tick) / (double)w->clock_hz : 0;
}

static void add_pair(struct bc_drift_watch *w, uint64_t tick, int64_t wall_ns)
{
	uint64_t ticks = tick - w->first_tick;
	double s = (double)ticks / (double)w->clock_hz;
	/* The difference of two large numbers: without rounding. */
	__int128 passed_ns = (__int128)wall_ns - w->first_wall_ns;
	__int128 ticked_ns = (__int128)ticks * 1000000000 / w->clock_hz;
	double ns = (double)(passed_ns - ticked_ns);

	w->pairs++;
	w->last_tick = tick;
	double ds = s - w->mean_s;
	double dn = ns - w->mean_ns;
	w->mean_s += ds / (double)w->pairs;
	w->mean_ns += dn / (double)w->pairs;
	w->sum_ss += ds * (s - w->mean_s);
	w->sum_sn += ds * (ns - w->mean_ns);
	w->sum_nn += dn * (ns - w->mean_ns);
}

void bc_drift_add(struct bc_drift *drift, uint64_t recording_tag, uint32_t epoch, uint64_t clock_hz,
	uint64_t tick, int64_t wall_ns)
{
	struct bc_drift_watch *w = &drift->now;

	if (clock_hz == 0)
		return;
	if (w->pairs == 0 || w->recording_tag != recording_tag || w->epoch != epoch ||
		w->clock_hz != clock_hz || tick < w->last_tick) {
		if (seconds_of(w) > seconds_of(&drift->longest) || drift->longest.pairs == 0)
			drift->longest = *w;
		*w = (struct bc_drift_watch){.recording_tag = recording_tag,
			.epoch = epoch,
			.clock_hz = clock_hz,
			.first_tick = tick,
			.first_wall_ns = wall_ns};
	}
	add_pair(w, tick, wall_ns);
}

void bc_drift_result(const struct bc_drift *drift, struct bc_drift_result *result)
{
	const struct bc_drift_watch *w = &drift->now;

	if (seconds_of(&drift->longest) > seconds_of(w))
		w = &drift->longest;
	*result = (struct bc_drift_result){.state = BC_DRIFT_NO_PAIRS,
		.seconds = seconds_of(w),
		.pairs = w->pairs,
		.epoch = w->epoch};
	if (w->pairs == 0)
		return;
	result->state = BC_DRIFT_SHORT;
	if (w->pairs < BC_DRIFT_PAIRS_MIN || result->seconds < BC_DRIFT_SECONDS_MIN)
		return;
	/* ns a second by which the host's clock gains on the board's. */
	double slope = w->sum_sn / w->sum_ss;
	double left = w->sum_nn - slope * w->sum_sn;
	double variance = (left > 0 ? left : 0) / (double)(w->pairs - 2) / w->sum_ss;
	result->ppm = (1 / (1 + slope * 1e-9) - 1) * 1e6;
	result->error_ppm = sqrt(variance) * 1e-3;
	result->state = fabs(result->ppm) <= BC_DRIFT_PPM_MAX ? BC_DRIFT_KNOWN : BC_DRIFT_REPLAY;
}
