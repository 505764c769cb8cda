/* A queue between threads: pointers go in at one end and come out at the other, in order. The only
 * way that work passes between the loop, the encoder's workers and the writer. */
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
	unsigned room;
	unsigned first;
	unsigned count;
	bool is_closed;
};

/* A queue that holds at most `room` items; its users see to it that no more are about. Returns 0 or
 * -ENOMEM. */
int bc_queue_init(struct bc_queue *queue, unsigned room) BC_MUST_CHECK;
void bc_queue_destroy(struct bc_queue *queue);

void bc_queue_push(struct bc_queue *queue, void *item);

/* Takes the item that was pushed last instead of first: for pools, where it is the warm one. NULL
 * if there is none. Never waits. */
void *bc_queue_pop_newest(struct bc_queue *queue);

/* Takes the oldest item; waits for one. NULL when the queue is closed and empty. */
void *bc_queue_pop(struct bc_queue *queue);

/* The same, and NULL too when none came within the time. */
void *bc_queue_pop_within(struct bc_queue *queue, uint64_t timeout_ns);

/* Lets everybody who waits go, once the queue is empty. */
void bc_queue_close(struct bc_queue *queue);

bool bc_queue_is_closed(struct bc_queue *queue);

unsigned bc_queue_count(struct bc_queue *queue);

#endif
