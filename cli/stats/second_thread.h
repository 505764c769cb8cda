/* A second thread, for part of the work on each batch of a trace. */
#ifndef BC_CLI_STATS_SECOND_THREAD_H
#define BC_CLI_STATS_SECOND_THREAD_H

#include <pthread.h>
#include <stdbool.h>

struct bc_second_thread {
	bool is_started; /* otherwise the caller's thread does the work */
	bool is_over;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	void (*work)(void *context); /* NULL: none */
	void *context;
};

/* Starts the thread, if there is a core for it. */
void bc_second_thread_open(struct bc_second_thread *second);
void bc_second_thread_close(struct bc_second_thread *second);

/* Has work done in the thread. Wait for it before the next, and before using its results. */
void bc_second_thread_start(
	struct bc_second_thread *second, void (*work)(void *context), void *context);
void bc_second_thread_wait(struct bc_second_thread *second);

#endif
