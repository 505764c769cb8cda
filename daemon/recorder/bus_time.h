/* The time of a replay, which is its bus's: ticks since the recording's first, over all epochs; and
 * the places in it where a segment is cut, the recording ends, or the pace wants it to wait. */
#ifndef BC_DAEMON_RECORDER_BUS_TIME_H
#define BC_DAEMON_RECORDER_BUS_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/rules.h"

/* Taken for the clock of a bus that doesn't tell; docs/configuration.md. */
#define BC_DEFAULT_CLOCK_HZ 66000000u

struct bc_bus_time {
	uint64_t clock_hz;
	bool has_epoch;
	uint64_t epoch_first; /* tick with which the present epoch begins */
	uint64_t epoch_base;  /* bus time at that tick */
	/* Bus times; UINT64_MAX: none. */
	uint64_t cut_at;
	uint64_t stop_at;
	uint64_t paced_until;
};

void bc_bus_time_init(struct bc_bus_time *time);

/* What so many nanoseconds are in ticks, at least one; UINT64_MAX: more than there can be. */
uint64_t bc_bus_time_ticks(const struct bc_bus_time *time, uint64_t ns);

/* The bus time of a tick of the present epoch. */
uint64_t bc_bus_time(const struct bc_bus_time *time, uint64_t tick);

/* An epoch begins with this tick; the one before it ended with `last`. */
void bc_bus_time_start_epoch(struct bc_bus_time *time, uint64_t tick, uint64_t last);

/* Sets the next cut, seen from a tick. */
void bc_bus_time_set_cut(
	struct bc_bus_time *time, const struct bc_rotation *rotation, uint64_t tick);

/* The tick of the present epoch with which the nearest of all these places is reached;
 * BC_NO_TICK_LIMIT (formats/bus/stamp.h): none. */
uint64_t bc_bus_time_limit(const struct bc_bus_time *time);

#endif
