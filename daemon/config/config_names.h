/* The names of [names], for the regions in filters and triggers. */
#ifndef BC_DAEMON_CONFIG_CONFIG_NAMES_H
#define BC_DAEMON_CONFIG_CONFIG_NAMES_H

#include <stdbool.h>

#include "daemon/config/config.h"
#include "formats/base/must_check.h"

/* Reads the files of [names] into config->names, and looks up the regions in [filter] and of the
 * triggers. Reports all errors, and returns whether there are none. config->names belongs to the
 * caller in either case; close it with bc_name_map_close(). */
bool bc_config_open_names(struct bc_config *config, struct bc_config_errors *errors) BC_MUST_CHECK;

#endif
