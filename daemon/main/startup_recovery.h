/* Startup recovery of files that an earlier run left open (.partial). A segment is copied to a
 * sealed one under its final name and then deleted. A raw capture is truncated after its last whole
 * block and renamed. Each gets its line in the manifest. */
#ifndef BC_DAEMON_MAIN_STARTUP_RECOVERY_H
#define BC_DAEMON_MAIN_STARTUP_RECOVERY_H

#include "formats/base/must_check.h"
#include "formats/segment/segment_name.h"

/* Recovers every .partial file in the directory and logs the results; `dir` is for the messages. A
 * file that can't be recovered now (full disk) is left as it is. Stops early if SIGTERM or SIGINT
 * is pending. Calls on_progress() repeatedly with the current file. Sets `newest` to the id of the
 * newest recording found, or the empty string. Returns the number of segments recovered, or a
 * negative errno if the directory can't be read. */
int bc_startup_recover(const char *dir, int dir_fd, char newest[BC_RECORDING_ID_MAX],
	void (*on_progress)(void *context, const char *file), void *context) BC_MUST_CHECK;

#endif
