/* The daemon: claims its directory and socket, recovers what an earlier run left, records from its
 * source, answers for it, and ends cleanly. */
#ifndef BC_DAEMON_MAIN_DAEMON_H
#define BC_DAEMON_MAIN_DAEMON_H

#include "daemon/config/options.h"
#include "daemon/recorder/exit_status.h"

/* Runs until the source is over (--once) or a signal comes. Returns the exit code; what went wrong
 * has been logged. */
enum bc_exit bc_daemon_run(const struct bc_options *options, const struct bc_config *config);

#endif
