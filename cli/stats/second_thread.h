/* A second thread, for part of the work on each batch of a trace.
 *
 *     bc_second_thread_open()
 *     bc_second_thread_start(), bc_second_thread_wait() ...   for each batch
 *     bc_second_thread_close()
 *
 * Without a core or a thread for it, bc_second_thread_start() does the work itself. */
#ifndef BC_CLI_STATS_SECOND_THREAD_H
#define BC_CLI_STATS_SECOND_THREAD_H

#include <pthread.h>
#include <stdbool.h>

struct bc_second_thread {
	bool is_started;
	bool is_over;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	void (*work)(void *context); /* NULL: none */
	void *context;
};

void bc_second_thread_open(struct bc_second_thread *second);
void bc_second_thread_close(struct bc_second_thread *second);

/* Runs work() in the thread. Wait for its end before starting the next. */
void bc_second_thread_start(
	struct bc_second_thread *second, void (*work)(void *context), void *context);
void bc_second_thread_wait(struct bc_second_thread *second);

#endif
