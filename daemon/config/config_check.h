/* Checks the settings of a configuration against each other. */
#ifndef BC_DAEMON_CONFIG_CONFIG_CHECK_H
#define BC_DAEMON_CONFIG_CONFIG_CHECK_H

#include <stdbool.h>

#include "daemon/config/config.h"
#include "formats/base/must_check.h"

/* Reports settings that are missing, conflict with each other or can't work. If there are errors
 * already, settings may be missing because of those. Returns whether there is no error. */
bool bc_config_check(const struct bc_config *config, struct bc_config_errors *errors) BC_MUST_CHECK;

#endif
