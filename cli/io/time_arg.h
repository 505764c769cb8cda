/* Times on the command line, much as for journalctl:
 *
 *     2026-11-20 03:14:15.5   local time; the seconds, or the time of day, may be missing
 *     2026-11-20T03:14:15Z    with a time zone (Z or +01:00)
 *     03:14                   today
 *     now, today, yesterday   today and yesterday start at midnight
 *     -2h                     before now: d, h, min, s (the default), ms, us, ns
 *     +10s                    after the start of the trace
 *     @4178506193             a tick of the trace */
#ifndef BC_CLI_IO_TIME_ARG_H
#define BC_CLI_IO_TIME_ARG_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/term/console.h"

/* For help texts. */
#define BC_TIME_ARG_HELP                                                                     \
	"2026-11-20 03:14 (local), 2026-11-20T03:14:00Z, -2h (before now), +10s (after the " \
	"start) "                                                                            \
	"or @tick"

enum bc_time_arg_kind {
	BC_TIME_ARG_WALL,
	BC_TIME_ARG_FROM_START,
	BC_TIME_ARG_TICK,
};

struct bc_time_arg {
	enum bc_time_arg_kind kind;
	int64_t ns; /* since 1970, or since the start of the trace */
	uint64_t tick;
};

/* Reads a time from `optarg`. On an invalid value, prints an error that names the option and the
 * value, and returns false. */
bool bc_time_arg_read(
	const struct bc_console *console, const char *option, struct bc_time_arg *time);

#endif
