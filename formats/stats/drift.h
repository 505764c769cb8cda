/* Drift of a board's clock against its host's, estimated from pairs of a tick and the host's time
 * of day, which the chunks of a segment contain.
 *
 * Each pair gives the difference between the host's time and the time of the ticks at the nominal
 * rate. The slope of a straight line fitted to the differences (least squares) is the drift. The
 * host sees each record some milliseconds late, by a varying amount. Hence the standard error, and
 * the minimum duration. Each epoch of a recording is a separate clock; the one that covers the
 * longest time is reported. */
#ifndef BC_FORMATS_STATS_DRIFT_H
#define BC_FORMATS_STATS_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

/* Minimum for a result. */
#define BC_DRIFT_SECONDS_MIN 10
#define BC_DRIFT_PAIRS_MIN   4

/* A larger value means that the ticks did not advance at the clock rate: a replay. */
#define BC_DRIFT_PPM_MAX 10000

/* Running sums for one clock. */
struct bc_drift_clock {
	uint64_t recording_tag;
	uint32_t epoch;
	uint64_t clock_hz;
	uint64_t first_tick;
	uint64_t last_tick;
	int64_t first_wall_ns;
	uint64_t pairs;
	/* Running means and sums of squares about them, of seconds by the ticks (s) and of the ns
	 * by which the host's time is ahead of them (n). */
	double mean_s;
	double mean_ns;
	double sum_ss;
	double sum_sn;
	double sum_nn;
};

/* An empty one is all zero. */
struct bc_drift {
	struct bc_drift_clock now;
	struct bc_drift_clock longest; /* of the previous clocks */
};

/* Adds a pair. Pairs must be added in the order of the trace. Does nothing if clock_hz is 0
 * (unknown). */
void bc_drift_add(struct bc_drift *drift, uint64_t recording_tag, uint32_t epoch, uint64_t clock_hz,
	uint64_t tick, int64_t wall_ns);

enum bc_drift_state {
	BC_DRIFT_KNOWN,
	BC_DRIFT_NO_PAIRS, /* no pairs: no segments, or an unknown clock rate */
	BC_DRIFT_SHORT,    /* too few pairs, or too short a time */
	BC_DRIFT_REPLAY,   /* see BC_DRIFT_PPM_MAX; or the times were computed from the ticks */
};

struct bc_drift_result {
	enum bc_drift_state state;
	double ppm;       /* if known: positive if the board's clock is fast */
	double error_ppm; /* its standard error */
	double seconds;   /* by the ticks, from the first pair to the last */
	uint64_t pairs;
	uint32_t epoch;
};

void bc_drift_result(const struct bc_drift *drift, struct bc_drift_result *result);

#endif
