/* What a thread is at, and since when, so that another thread can see that it hangs: a call that
 * never returns can't say so itself.
 *
 *     bc_thread_health_init()
 *     bc_thread_health_start() ...   at each piece of work; the one before has ended with it
 *     bc_thread_health_rest()        and whenever it waits for work
 *     bc_thread_health_destroy()
 *
 * One thread works, any may look; nobody holds the lock for longer than it takes to copy a name. */
#ifndef BC_DAEMON_BASE_THREAD_HEALTH_H
#define BC_DAEMON_BASE_THREAD_HEALTH_H

#include "formats/base/must_check.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define BC_THREAD_HEALTH_FILE_MAX 256

struct bc_thread_health {
	pthread_mutex_t lock;
	uint64_t since_ns; /* of bc_now_ns(); 0: it rests */
	const char *what;
	char file[BC_THREAD_HEALTH_FILE_MAX];
};

/* What was seen of a thread. */
struct bc_thread_health_seen {
	uint64_t since_ns; /* when the piece of work began, of bc_now_ns(); 0: it rests */
	char who[32];      /* "the writer"; whoever offers it to others sets it */
	const char *what;  /* constant text, "syncing" */
	char file[BC_THREAD_HEALTH_FILE_MAX]; /* which, in the output directory; empty: none */
};

void bc_thread_health_init(struct bc_thread_health *stint);
void bc_thread_health_destroy(struct bc_thread_health *stint);

/* `what` stays the caller's and must last; `file` may be empty. */
void bc_thread_health_start(struct bc_thread_health *stint, const char *what, const char *file);
void bc_thread_health_rest(struct bc_thread_health *stint);

/* If the thread has been at its piece of work for longer than the one seen before, puts it in that
 * one's place, all but `who`. Returns whether it did. */
bool bc_thread_health_poll(
	struct bc_thread_health *stint, struct bc_thread_health_seen *longest) BC_MUST_CHECK;

#endif
