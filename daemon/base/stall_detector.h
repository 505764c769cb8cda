/* Who hangs: a thread that has been at one piece of work for too long, as pipeline.stuck says. It
 * is told in the log, once, with what it is at, and once more when it goes on. */
#ifndef BC_DAEMON_BASE_STALL_DETECTOR_H
#define BC_DAEMON_BASE_STALL_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/thread_health.h"

/* Zero at the start. */
struct bc_stall_detector {
	struct bc_thread_health_seen
		reported; /* of whom; since_ns 0: of nobody, or it has gone on */
};

/* To be called ten times a second or so, with the thread that is longest at one piece of work.
 * Returns whether it has been at it for `limit_ns` or longer (0: that is never too long). `dir` is
 * where its file is; `is_watched`: a watchdog is not fed until it goes on, which the log then says.
 */
bool bc_stall_detector_poll(struct bc_stall_detector *hang,
	const struct bc_thread_health_seen *longest, uint64_t limit_ns, const char *dir,
	bool is_watched);

#endif
