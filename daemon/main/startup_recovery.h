/* What an earlier run left behind: at start, before anything is recorded, each torn segment in the
 * output directory is recovered into a sealed one under its final name, and removed; each torn raw
 * capture is cut to its last whole block and gets its final name. Each gets its line in the
 * manifest. */
#ifndef BC_DAEMON_MAIN_STARTUP_RECOVERY_H
#define BC_DAEMON_MAIN_STARTUP_RECOVERY_H

#include "formats/base/must_check.h"
#include "formats/segment/segment_name.h"

/* Somebody who is told, again and again, that the recovery gets on, and with what file. */
struct bc_startup_recovery_listener {
	void (*on_progress)(void *context, const char *file);
	void *context;
};

/* Recovers every .partial in the directory; what can't be recovered (a full disk) is left and said.
 * Sets `newest` to the id of the newest recording found, or the empty string. Logs what it does;
 * `dir` is for the messages. Returns how many segments were recovered, or a negative errno if the
 * directory can't be read. */
int bc_startup_recover(const char *dir, int dir_fd, char newest[BC_RECORDING_ID_MAX],
	const struct bc_startup_recovery_listener *listener) BC_MUST_CHECK;

#endif
