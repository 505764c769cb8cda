/* The time of a replay: bus time, in ticks since the recording's first, continuous over its epochs.
 * Also the bus times at which to cut the segment, to end the recording, or to wait for the pace. */
#ifndef BC_DAEMON_RECORDER_BUS_TIME_H
#define BC_DAEMON_RECORDER_BUS_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/rules.h"

struct bc_bus_time {
	uint64_t clock_hz;
	bool has_epoch;
	uint64_t epoch_first; /* first tick of the current epoch */
	uint64_t epoch_base;  /* bus time at that tick */
	/* Bus times; UINT64_MAX: none. */
	uint64_t cut_at;
	uint64_t stop_at;
	uint64_t paced_until;
};

void bc_bus_time_init(struct bc_bus_time *time);

/* Converts nanoseconds to ticks, at least one; UINT64_MAX: out of range. */
uint64_t bc_bus_time_ticks(const struct bc_bus_time *time, uint64_t ns);

/* Returns the bus time of a tick of the current epoch. */
uint64_t bc_bus_time(const struct bc_bus_time *time, uint64_t tick);

/* Starts an epoch with this tick; the previous one ended with `last`. */
void bc_bus_time_start_epoch(struct bc_bus_time *time, uint64_t tick, uint64_t last);

/* Sets the next cut, counted from a tick of the current epoch. */
void bc_bus_time_set_cut(
	struct bc_bus_time *time, const struct bc_rotation *rotation, uint64_t tick);

/* Returns the tick of the current epoch at which the earliest of the three times is reached;
 * BC_NO_TICK_LIMIT (formats/bus/stamp.h): none. */
uint64_t bc_bus_time_limit(const struct bc_bus_time *time);

#endif
