/* SIGHUP: reads the configuration again and applies the settings that may change while the daemon
 * runs. Other changes are logged. */
#ifndef BC_DAEMON_MAIN_RELOAD_H
#define BC_DAEMON_MAIN_RELOAD_H

#include <stdbool.h>

#include "daemon/config/options.h"
#include "formats/base/must_check.h"

/* Updates *config. Returns false, with an error logged and *config unchanged, if the new
 * configuration is invalid. */
bool bc_reload(struct bc_config *config, const struct bc_daemon_options *options) BC_MUST_CHECK;

/* Logs the success and sets the new log level. */
void bc_reload_done(const struct bc_config *config);

#endif
