/* How references stand in time: how long a trace lasts, the intervals between its references, idles
 * and bursts, the busiest and the quietest time.
 *
 * An interval is the ticks from a reference to the next one of the same clock, where that is known:
 * not across a gap, and not before a reference whose tick is only a lower bound. An idle is an
 * interval longer than a threshold; a burst a run of references, two at least, each of which
 * follows the one before within another. Time that passed is cut into windows of equal length, a
 * power of two of ticks, between BC_INTERVAL_STATS_WINDOWS / 2 and BC_INTERVAL_STATS_WINDOWS of
 * them where there are enough ticks: it is doubled, and windows joined, as a trace goes on. */
#ifndef BC_FORMATS_STATS_INTERVAL_STATS_H
#define BC_FORMATS_STATS_INTERVAL_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/bus/chunk.h"

#define BC_INTERVAL_STATS_WINDOWS 1024u
#define BC_INTERVAL_STATS_EPOCHS  64u
#define BC_INTERVAL_STATS_BUCKETS 65u

/* A time with a clock of its own: an epoch, or a file that is no segment. */
struct bc_epoch_span {
	uint64_t first_tick; /* of its first and last reference */
	uint64_t last_tick;
	uint64_t references;
};

struct bc_interval_stats {
	uint64_t idle_ticks;
	uint64_t burst_ticks;

	uint64_t references; /* with a tick */
	uint64_t ticks;      /* from the first to the last of each epoch, in all */
	uint64_t epochs;
	struct bc_epoch_span spans[BC_INTERVAL_STATS_EPOCHS]; /* of the first ones */
	struct bc_epoch_span span;                            /* the one at hand */
	uint64_t backward; /* references whose tick is lower than that of the one before */

	uint64_t intervals; /* known ones */
	uint64_t interval_ticks;
	uint64_t interval_min;
	uint64_t interval_max;
	/* 0; 1; 2 to 3; 4 to 7; ... */
	uint64_t interval_buckets[BC_INTERVAL_STATS_BUCKETS];
	uint64_t idles;
	uint64_t idle_sum_ticks;
	uint64_t bursts;
	uint64_t burst_references;
	uint64_t burst_longest; /* in references */
	uint64_t run;           /* references in the burst at hand; 1: perhaps one begins */

	unsigned window_shift; /* a window has 2^shift ticks */
	uint64_t windows[BC_INTERVAL_STATS_WINDOWS];
	uint64_t elapsed; /* ticks passed up to the last reference, over all epochs */

	bool has_clock;
	bool is_broken; /* the interval to the next reference isn't known */
};

void bc_interval_stats_init(
	struct bc_interval_stats *clockline, uint64_t idle_ticks, uint64_t burst_ticks);

/* The next reference is the first of another clock. */
void bc_interval_stats_start(struct bc_interval_stats *clockline);

/* Something is missing before the next reference. */
void bc_interval_stats_break(struct bc_interval_stats *clockline);

/* A reference at this tick. */
void bc_interval_stats_tick(struct bc_interval_stats *clockline, uint64_t tick);

/* BYU records, the first of which is at `tick`. One whose time is BC_TIME_NONE is at the tick of
 * the record before, and behind a break. */
void bc_interval_stats_records(
	struct bc_interval_stats *clockline, const uint8_t *records, size_t n, uint64_t tick);

/* All of a chunk, its gaps and anchors as they stand. */
void bc_interval_stats_chunk(struct bc_interval_stats *clockline, const struct bc_chunk *chunk);

/* n references of which only the first and last tick are of interest: nothing is learned of
 * intervals and windows. */
void bc_interval_stats_skip(
	struct bc_interval_stats *clockline, uint64_t first_tick, uint64_t last_tick, uint64_t n);

/* Ends the burst and the epoch at hand: before anything is read off. */
void bc_interval_stats_end(struct bc_interval_stats *clockline);

/* The windows that have passed in full: how many, and the references in the busiest and the
 * quietest. False when there are fewer than two. */
struct bc_clock_windows {
	uint64_t ticks; /* of each */
	uint64_t count;
	uint64_t most;
	uint64_t fewest;
};
bool bc_interval_stats_windows(
	const struct bc_interval_stats *clockline, struct bc_clock_windows *windows);

#endif
