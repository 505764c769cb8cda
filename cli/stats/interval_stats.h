/* Timing of references: the duration of a trace, the intervals between references, idle times and
 * bursts, the busiest and the quietest window.
 *
 * An interval is the number of ticks from one reference to the next of the same clock. It is
 * unknown across a gap and before a reference whose tick is only a lower bound. An idle time is an
 * interval above one threshold. A burst is two or more references with intervals up to another.
 *
 * Windows divide the elapsed time into equal parts of 2^n ticks. When the last of
 * BC_INTERVAL_STATS_WINDOWS is used up, neighbours are joined and the length doubles. So a long
 * trace has between half and all of the windows, at constant cost per reference. */
#ifndef BC_CLI_STATS_INTERVAL_STATS_H
#define BC_CLI_STATS_INTERVAL_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/bus/chunk.h"

#define BC_INTERVAL_STATS_WINDOWS 1024u
#define BC_INTERVAL_STATS_EPOCHS  64u
#define BC_INTERVAL_STATS_BUCKETS 65u
#define BC_INTERVAL_STATS_SHORT   1024u

/* The time covered by one clock: an epoch, or a file that is not a segment. */
struct bc_epoch_span {
	uint64_t first_tick; /* of the first and last reference */
	uint64_t last_tick;  /* lower, if the clock went back */
	uint64_t references;
};

struct bc_interval_stats {
	uint64_t idle_ticks;
	uint64_t burst_ticks;

	uint64_t references; /* with a tick */
	uint64_t ticks;      /* sum over all epochs of the steps forward */
	uint64_t epochs;
	struct bc_epoch_span spans[BC_INTERVAL_STATS_EPOCHS]; /* of the first epochs */
	struct bc_epoch_span span;                            /* the current one */
	uint64_t backward; /* references with a lower tick than the previous one */

	uint64_t intervals; /* number of known intervals */
	uint64_t interval_ticks;
	uint64_t interval_min;
	uint64_t interval_max;
	/* Buckets: 0; 1; 2 to 3; 4 to 7; ... */
	uint64_t interval_buckets[BC_INTERVAL_STATS_BUCKETS];
	/* Short intervals that are not in the results yet: the number of each length. The records
	 * use the two arrays in turn, so that an increment needn't wait for the previous one. */
	uint64_t short_intervals[2][BC_INTERVAL_STATS_SHORT];
	uint64_t idles;
	uint64_t idle_sum_ticks;
	uint64_t bursts;
	uint64_t burst_references;
	uint64_t burst_longest; /* in references */
	uint64_t run;           /* references in the current run; 1: a burst may be starting */

	unsigned window_shift; /* the length of a window is 2^shift ticks */
	uint64_t windows[BC_INTERVAL_STATS_WINDOWS];
	uint64_t elapsed; /* ticks up to the last reference, over all epochs */

	bool has_clock;
	bool is_broken; /* the interval to the next reference is unknown */
};

void bc_interval_stats_init(
	struct bc_interval_stats *stats, uint64_t idle_ticks, uint64_t burst_ticks);

/* Ends the current burst and epoch: the next reference is the first of another clock. Call it also
 * before reading results. */
void bc_interval_stats_start(struct bc_interval_stats *stats);

/* The interval before the next reference is unknown. */
void bc_interval_stats_break(struct bc_interval_stats *stats);

/* Adds a reference at this tick. */
void bc_interval_stats_tick(struct bc_interval_stats *stats, uint64_t tick);

/* Adds BYU records, the first of which is at `tick`. A record with BC_TIME_NONE has the tick of the
 * previous one, after a break. */
void bc_interval_stats_records(
	struct bc_interval_stats *stats, const uint8_t *records, size_t n, uint64_t tick);

/* Complete windows: their number, and the number of references in the busiest and in the quietest.
 * bc_interval_stats_windows() returns false if there are fewer than two. */
struct bc_clock_windows {
	uint64_t ticks; /* length of each */
	uint64_t count;
	uint64_t most;
	uint64_t fewest;
};
bool bc_interval_stats_windows(
	const struct bc_interval_stats *stats, struct bc_clock_windows *windows);

/* Drift of a board's clock against its host's, estimated from pairs of a tick and the host's time
 * of day, which the chunks of a segment contain.
 *
 * Each pair gives the difference between the host's time and the time of the ticks at the nominal
 * rate. The slope of a straight line fitted to the differences (least squares) is the drift. The
 * host sees each record some milliseconds late, by a varying amount. Hence the standard error, and
 * the minimum duration. Each epoch of a recording is a separate clock; the one that covers the
 * longest time is reported. */

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

/* Adds a pair, in the order of the trace. Does nothing if clock_hz is 0 (unknown). */
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
};

void bc_drift_result(const struct bc_drift *drift, struct bc_drift_result *result);

#endif
