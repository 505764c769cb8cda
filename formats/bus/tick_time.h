/* When a tick was, and which tick was at a time: nothing else converts bus clocks and times of day.
 *
 * The recorder stores the time of day of each chunk's first tick; docs/segment-format.md says how
 * accurate it is. From there, time advances with the bus clock, so the records of a chunk are in
 * order of time, and every reader gives a record the same time, rounded down to nanoseconds. */
#ifndef BC_FORMATS_BUS_TICK_TIME_H
#define BC_FORMATS_BUS_TICK_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/bus/chunk.h"

/* Returns a time in ticks, rounded down; BC_TICK_END if it is longer. */
static inline uint64_t bc_ticks_of_ns(uint64_t ns, uint64_t clock_hz)
{
	unsigned __int128 ticks = (unsigned __int128)ns * clock_hz / 1000000000;

	return ticks < BC_TICK_END ? (uint64_t)ticks : BC_TICK_END;
}

/* The clock was at `tick` at wall_ns, in ns since 1970 UTC. */
struct bc_clock_point {
	int64_t wall_ns;
	uint64_t tick;
	uint64_t clock_hz; /* ticks per second; 0: unknown */
};

static inline struct bc_clock_point bc_chunk_clock(
	const struct bc_chunk_info *info, uint64_t clock_hz)
{
	return (struct bc_clock_point){info->wall_ns, info->first_tick, clock_hz};
}

/* Sets *ns to the time of a tick; the nearest time there is if it is out of range. Returns false,
 * and sets *ns to the point's time, if the clock rate is unknown. */
bool bc_tick_time(int64_t *ns, struct bc_clock_point point, uint64_t tick);

/* Sets *ns to the time of a chunk's last record, or of what it is after if it has none. Returns
 * false as bc_tick_time() does. */
static inline bool bc_chunk_end(int64_t *ns, const struct bc_chunk_info *info, uint64_t clock_hz)
{
	return bc_tick_time(ns, bc_chunk_clock(info, clock_hz), info->last_tick);
}

/* Returns the first tick, not before the point's, whose time is `ns` or later. It may be above
 * UINT64_MAX: none is. The clock rate must be known. */
__int128 bc_time_tick(struct bc_clock_point point, int64_t ns);

#endif
