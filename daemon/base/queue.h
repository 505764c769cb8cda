/* A bounded FIFO queue of pointers between threads. All work passes between the loop, the encoder's
 * workers and the writer through these queues. */
#ifndef BC_DAEMON_BASE_QUEUE_H
#define BC_DAEMON_BASE_QUEUE_H

#include "formats/base/must_check.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct bc_queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	void **items;
	unsigned capacity;
	unsigned first;
	unsigned count;
	bool is_closed;
	bool is_woken;
};

/* Returns 0 or -ENOMEM. Callers must never push more than `capacity` items. */
int bc_queue_init(struct bc_queue *queue, unsigned capacity) BC_MUST_CHECK;
void bc_queue_destroy(struct bc_queue *queue);

void bc_queue_push(struct bc_queue *queue, void *item);

/* Pops the newest item, which is most likely still in the cache; used for pools. Returns NULL if
 * the queue is empty. Never waits. */
void *bc_queue_pop_newest(struct bc_queue *queue);

/* Waits for an item and pops the oldest. Returns NULL if the queue is closed and empty. */
void *bc_queue_pop(struct bc_queue *queue);

/* The same, but also returns NULL after the timeout, and before any item after bc_queue_wake(). */
void *bc_queue_pop_within(struct bc_queue *queue, uint64_t timeout_ns);
void bc_queue_wake(struct bc_queue *queue);

/* Makes pops return NULL, instead of waiting, once the queue is empty. */
void bc_queue_close(struct bc_queue *queue);

/* Returns whether the queue is closed and empty. */
bool bc_queue_is_over(struct bc_queue *queue);

unsigned bc_queue_count(struct bc_queue *queue);

#endif
