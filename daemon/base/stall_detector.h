/* Detects a thread that hangs: one that has spent too long (pipeline.stuck) on one operation. Logs
 * it once, with the operation, and once more when the thread continues. */
#ifndef BC_DAEMON_BASE_STALL_DETECTOR_H
#define BC_DAEMON_BASE_STALL_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/thread_health.h"

/* All zeros at the start. */
struct bc_stall_detector {
	/* The thread that was logged. since_ns 0: none, or it has continued. */
	struct bc_thread_health_seen reported;
};

/* Call about ten times a second, with the thread that has spent the longest time on one operation.
 * Returns whether that is `limit_ns` or longer (0: no limit). For the log, `dir` is the directory
 * of its file, and `is_watched` says that the watchdog is not notified until it continues. */
bool bc_stall_detector_poll(struct bc_stall_detector *detector,
	const struct bc_thread_health_seen *longest, uint64_t limit_ns, const char *dir,
	bool is_watched);

#endif
