/* Reads configuration files: INI, parsed by inih. */
#ifndef BC_DAEMON_CONFIG_CONFIG_FILE_H
#define BC_DAEMON_CONFIG_CONFIG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/config/config.h"
#include "formats/base/must_check.h"

/* Reads a file, then the files conf.d/(anything).conf next to it in the order of their names.
 * `is_optional`: the first file may be missing. On failure returns false with a message in `err`
 * that names file and line. */
bool bc_config_load(struct bc_config *config, const char *path, bool is_optional, char *err,
	size_t errlen) BC_MUST_CHECK;

#endif
