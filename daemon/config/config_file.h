/* Reads configuration files: INI, parsed by inih. */
#ifndef BC_DAEMON_CONFIG_CONFIG_FILE_H
#define BC_DAEMON_CONFIG_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/config.h"

/* Reads a file, then the files conf.d/(anything).conf next to it in the order of their names.
 * `is_optional`: the first file may be missing. Reports all errors, with file and line. */
void bc_config_load(struct bc_config *config, const char *path, bool is_optional,
	struct bc_config_errors *errors);

#endif
