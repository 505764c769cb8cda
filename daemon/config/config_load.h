/* Makes a configuration: reads INI files, opens the files with names, checks the settings.
 *
 *     bc_config_default(), bc_config_load(), bc_config_set() for the command line,
 *     bc_config_open_names(), bc_config_check() */
#ifndef BC_DAEMON_CONFIG_CONFIG_LOAD_H
#define BC_DAEMON_CONFIG_CONFIG_LOAD_H

#include <stdbool.h>

#include "daemon/config/config.h"
#include "formats/base/must_check.h"

/* Reads a file, then the files conf.d/(anything).conf next to it in the order of their names.
 * `is_optional`: the first file may be missing. Reports all errors, with file and line. */
void bc_config_load(struct bc_config *config, const char *path, bool is_optional,
	struct bc_config_errors *errors);

/* Reports settings that are missing, conflict with each other or can't work. If there are errors
 * already, settings may be missing because of those. Returns true if there is no error. */
bool bc_config_check(const struct bc_config *config, struct bc_config_errors *errors) BC_MUST_CHECK;

/* Reads the files of [names] into config->names, and looks up the regions in [filter] and of the
 * triggers. Reports all errors; returns true if there were none. config->names belongs to the
 * caller in either case; close it with bc_name_map_close(). */
bool bc_config_open_names(struct bc_config *config, struct bc_config_errors *errors) BC_MUST_CHECK;

#endif
