/* What the space rules leave: how full the ring is, if the rules make recordings one, and how long
 * the disk will last otherwise. */
#ifndef BC_DAEMON_RECORDER_SPACE_FORECAST_H
#define BC_DAEMON_RECORDER_SPACE_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/rules.h"

struct bc_writer_stats;

struct bc_space_forecast {
	bool has_ring;           /* a rule deletes old segments for space */
	uint64_t limit_bytes;    /* all segments together; 0: not known */
	uint64_t limit_segments; /* 0: no such rule */
	bool will_fill;        /* the disk, before the rules delete anything; not if its free space
				* is unknown */
	uint64_t seconds_left; /* until then */
};

/* `bytes_per_s` is the rate at which files grow; 0: they don't. */
struct bc_space_forecast bc_space_forecast(const struct bc_rotation *rotation,
	const struct bc_retention_rules *rules, const struct bc_writer_stats *stats,
	double bytes_per_s);

#endif
