/* What a thread is at, and since when, so that another thread can see that it hangs: a call that
 * never returns can't say so itself.
 *
 *     bc_stint_init()
 *     bc_stint_begin() ...   at each piece of work; the one before has ended with it
 *     bc_stint_rest()        and whenever it waits for work
 *     bc_stint_destroy()
 *
 * One thread works, any may look; nobody holds the lock for longer than it takes to copy a name. */
#ifndef BC_DAEMON_BASE_THREAD_HEALTH_H
#define BC_DAEMON_BASE_THREAD_HEALTH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define BC_STINT_FILE_MAX 256

struct bc_stint {
	pthread_mutex_t lock;
	uint64_t since_ns; /* of bc_now_ns(); 0: it rests */
	const char *what;
	char file[BC_STINT_FILE_MAX];
};

/* What was seen of a thread. */
struct bc_stint_seen {
	uint64_t since_ns; /* when the piece of work began, of bc_now_ns(); 0: it rests */
	char who[32];      /* "the writer"; whoever offers it to others sets it */
	const char *what;  /* constant text, "syncing" */
	char file[BC_STINT_FILE_MAX]; /* which, in the output directory; empty: none */
};

void bc_stint_init(struct bc_stint *stint);
void bc_stint_destroy(struct bc_stint *stint);

/* `what` stays the caller's and must last; `file` may be empty. */
void bc_stint_begin(struct bc_stint *stint, const char *what, const char *file);
void bc_stint_rest(struct bc_stint *stint);

/* If the thread has been at its piece of work for longer than the one seen before, puts it in that
 * one's place, all but `who`. Returns whether it did. */
bool bc_stint_look(struct bc_stint *stint, struct bc_stint_seen *longest)
	__attribute__((warn_unused_result));

#endif
