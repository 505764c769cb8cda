/* What a thread is doing, and since when, so that another thread can detect that it hangs.
 *
 *     bc_thread_health_init()
 *     bc_thread_health_start() ...   at the start of each operation; ends the one before
 *     bc_thread_health_idle()        when it waits for work
 *     bc_thread_health_destroy()
 *
 * One thread publishes; any thread may poll. The lock is held only to copy a name. */
#ifndef BC_DAEMON_BASE_THREAD_HEALTH_H
#define BC_DAEMON_BASE_THREAD_HEALTH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define BC_THREAD_HEALTH_FILE_MAX 256

/* A copy of the state of a thread. */
struct bc_thread_health_seen {
	uint64_t since_ns; /* bc_now_ns() at the start of the operation; 0: the thread rests */
	int64_t wall_ns;   /* time of day then */
	char who[32];      /* "the writer" */
	const char *what;  /* a string constant: "syncing" */
	char file[BC_THREAD_HEALTH_FILE_MAX]; /* in the output directory; empty: none */
};

struct bc_thread_health {
	pthread_mutex_t lock;
	struct bc_thread_health_seen now;
};

#define BC_THREAD_HEALTH_TEXT_MAX (BC_THREAD_HEALTH_FILE_MAX + 96)

/* Writes what the thread has been doing for at least `least_ns`, or "": "the sealer: syncing FILE
 * since 2026-01-31T12:00:00.000Z". Returns `out`. */
const char *bc_thread_health_text(char out[BC_THREAD_HEALTH_TEXT_MAX],
	const struct bc_thread_health_seen *seen, uint64_t least_ns);

/* `who` is up to 31 bytes. */
void bc_thread_health_init(struct bc_thread_health *health, const char *who);
void bc_thread_health_destroy(struct bc_thread_health *health);

/* `what` is not copied and must be constant; `file` may be empty. */
void bc_thread_health_start(struct bc_thread_health *health, const char *what, const char *file);
void bc_thread_health_idle(struct bc_thread_health *health);

/* Sets *longest if the thread's operation started before that. */
void bc_thread_health_poll(struct bc_thread_health *health, struct bc_thread_health_seen *longest);

/* Logs a thread that hangs (one that has spent pipeline.stuck or longer on one operation) once, and
 * once more when it continues. All zeros at the start. */
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
