/* The daemon: claims its directory and socket, recovers what an earlier run left, records from its
 * source, answers for it, and ends cleanly. */
#ifndef BC_DAEMON_DAEMON_H
#define BC_DAEMON_DAEMON_H

#include "daemon/options.h"

enum bc_exit {
	BC_EXIT_OK = 0,
	BC_EXIT_FAILED = 1,
	BC_EXIT_USAGE = 2,
	BC_EXIT_DAMAGED = 3, /* the input was damaged or torn; what was good is recorded */
	BC_EXIT_LOST = 4,    /* finished, but samples were lost */
};

/* Runs until the source is over (--once) or a signal comes. Returns the exit code; what went wrong
 * has been logged. */
enum bc_exit bc_daemon_run(const struct bc_options *options, const struct bc_config *config);

#endif
