/* The daemon: claims the output directory and the socket, recovers the files of an earlier run,
 * records from the source and serves clients. */
#ifndef BC_DAEMON_MAIN_DAEMON_H
#define BC_DAEMON_MAIN_DAEMON_H

#include "daemon/config/config.h"
#include "daemon/config/options.h"
#include "formats/base/usage.h"

/* Runs until the source ends (--once) or a signal stops it. SIGHUP changes *config, which the
 * caller owns. Returns the exit code; errors have been logged. */
enum bc_exit bc_daemon_run(const struct bc_daemon_options *options, struct bc_config *config);

#endif
