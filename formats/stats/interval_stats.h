/* Timing of references: the duration of a trace, the intervals between references, idle times and
 * bursts, the busiest and the quietest window.
 *
 * An interval is the number of ticks from one reference to the next of the same clock. It is
 * unknown across a gap and before a reference whose tick is only a lower bound. An idle time is an
 * interval above one threshold. A burst is a run of at least two references whose intervals do not
 * exceed another threshold.
 *
 * Windows divide the elapsed time into equal parts of 2^n ticks. When the last of
 * BC_INTERVAL_STATS_WINDOWS is used up, neighbours are joined and the length doubles. So a long
 * trace has between half and all of the windows, at constant cost per reference. */
#ifndef BC_FORMATS_STATS_INTERVAL_STATS_H
#define BC_FORMATS_STATS_INTERVAL_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/bus/chunk.h"

#define BC_INTERVAL_STATS_WINDOWS 1024u
#define BC_INTERVAL_STATS_EPOCHS  64u
#define BC_INTERVAL_STATS_BUCKETS 65u

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

/* The next reference is the first of another clock. */
void bc_interval_stats_start(struct bc_interval_stats *stats);

/* The interval before the next reference is unknown. */
void bc_interval_stats_break(struct bc_interval_stats *stats);

/* Adds a reference at this tick. */
void bc_interval_stats_tick(struct bc_interval_stats *stats, uint64_t tick);

/* Adds BYU records, the first of which is at `tick`. A record with BC_TIME_NONE has the tick of the
 * previous one, after a break. */
void bc_interval_stats_records(
	struct bc_interval_stats *stats, const uint8_t *records, size_t n, uint64_t tick);

/* Adds a whole chunk, with its gaps and anchors. */
void bc_interval_stats_chunk(struct bc_interval_stats *stats, const struct bc_chunk *chunk);

/* Adds n references of which only the first and last tick are used. Intervals and windows are not
 * counted. */
void bc_interval_stats_skip(
	struct bc_interval_stats *stats, uint64_t first_tick, uint64_t last_tick, uint64_t n);

/* Ends the current burst and epoch. Call before reading results. */
void bc_interval_stats_end(struct bc_interval_stats *stats);

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

#endif
