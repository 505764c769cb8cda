/* Opens the configured source. */
#ifndef BC_DAEMON_MAIN_SOURCE_OPEN_H
#define BC_DAEMON_MAIN_SOURCE_OPEN_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "capture/source/source.h"
#include "daemon/config/config.h"
#include "formats/base/must_check.h"

/* Returns 0, or a negative errno with a message in `err`. Close the source with bc_source_close().
 * With `is_once`, a board must appear within usb.wait; otherwise the source waits for it without
 * limit. */
int bc_source_open(struct bc_source **source, uv_loop_t *loop, const struct bc_config *config,
	bool is_once, char *err, size_t errlen) BC_MUST_CHECK;

#endif
