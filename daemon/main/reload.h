/* The configuration read again, for SIGHUP: what may change while the daemon runs is taken over,
 * and what of the rest differs is named. */
#ifndef BC_DAEMON_MAIN_RELOAD_H
#define BC_DAEMON_MAIN_RELOAD_H

#include <stdbool.h>

#include "daemon/config/options.h"
#include "formats/base/must_check.h"

/* Reads the configuration that the options name, and takes over what may change. Returns false when
 * it is refused, which the log then says; *config stays as it was. */
bool bc_reload(struct bc_config *config, const struct bc_options *options) BC_MUST_CHECK;

/* Says in the log that it is done; the new level holds from there on. */
void bc_reload_done(const struct bc_config *config);

#endif
