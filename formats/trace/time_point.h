/* Times as users write them, much as for journalctl:
 *
 *     2026-11-20 03:14:15.5   local time; the seconds, or the time of day, may be missing
 *     2026-11-20T03:14:15Z    with a time zone (Z or +01:00)
 *     03:14                   today
 *     now, today, yesterday   today and yesterday start at midnight
 *     -2h                     before now: d, h, min, s (the default), ms, us, ns
 *     +10s                    after the start of the trace
 *     @4178506193             a tick of the trace */
#ifndef BC_FORMATS_TRACE_TIME_POINT_H
#define BC_FORMATS_TRACE_TIME_POINT_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"

/* For help texts. */
#define BC_TIME_POINT_HELP                                                                   \
	"2026-11-20 03:14 (local), 2026-11-20T03:14:00Z, -2h (before now), +10s (after the " \
	"start) "                                                                            \
	"or @tick"

enum bc_time_point_kind {
	BC_TIME_POINT_WALL,
	BC_TIME_POINT_FROM_START,
	BC_TIME_POINT_TICK,
};

struct bc_time_point {
	enum bc_time_point_kind kind;
	int64_t ns; /* since 1970, or since the start of the trace */
	uint64_t tick;
};

/* Returns NULL, or what is wrong with the text. */
const char *bc_time_point_read(struct bc_time_point *point, const char *text) BC_MUST_CHECK;

#endif
