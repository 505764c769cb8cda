/* Opens the source that the configuration names. */
#ifndef BC_DAEMON_MAIN_SOURCE_OPEN_H
#define BC_DAEMON_MAIN_SOURCE_OPEN_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "capture/source/source.h"
#include "daemon/config/config.h"
#include "formats/base/must_check.h"

/* Returns 0 with the source, closed by bc_source_close(); or a negative errno with a sentence in
 * `err`, which wants room for the source's text. With `is_once` a board must come within the
 * configuration's time; else it is waited for, for ever. */
int bc_source_open(struct bc_source **source, uv_loop_t *loop, const struct bc_config *config,
	bool is_once, char *err, size_t errlen) BC_MUST_CHECK;

#endif
