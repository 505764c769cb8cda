#include "daemon/base/queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

int bc_queue_init(struct bc_queue *q, unsigned capacity)
{
	pthread_condattr_t attr;

	*q = (struct bc_queue){.items = calloc(capacity, sizeof(*q->items)), .capacity = capacity};
	if (q->items == NULL)
		return -ENOMEM;
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->changed, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

void bc_queue_destroy(struct bc_queue *q)
{
	if (q->items == NULL)
		return;
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
	free(q->items);
	q->items = NULL;
}

void bc_queue_push(struct bc_queue *q, void *item)
{
	pthread_mutex_lock(&q->lock);
	assert(q->count < q->capacity);
	q->items[(q->first + q->count++) % q->capacity] = item;
	pthread_mutex_unlock(&q->lock);
	/* Now the thread that waits for an item does not also wait for the lock. */
	pthread_cond_signal(&q->changed);
}

void *bc_queue_pop_newest(struct bc_queue *q)
{
	void *item = NULL;

	pthread_mutex_lock(&q->lock);
	if (q->count != 0)
		item = q->items[(q->first + --q->count) % q->capacity];
	pthread_mutex_unlock(&q->lock);
	return item;
}

static void *pop_oldest(struct bc_queue *q)
{
	if (q->count == 0)
		return NULL;
	void *item = q->items[q->first];
	q->first = (q->first + 1) % q->capacity;
	q->count--;
	return item;
}

void *bc_queue_pop(struct bc_queue *q)
{
	pthread_mutex_lock(&q->lock);
	while (q->count == 0 && !q->is_closed)
		pthread_cond_wait(&q->changed, &q->lock);
	void *item = pop_oldest(q);
	pthread_mutex_unlock(&q->lock);
	return item;
}

void *bc_queue_pop_within(struct bc_queue *q, uint64_t timeout_ns)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(timeout_ns / 1000000000);
	until.tv_nsec += (long)(timeout_ns % 1000000000);
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&q->lock);
	int rc = 0;
	while (q->count == 0 && !q->is_closed && !q->is_woken && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&q->changed, &q->lock, &until);
	void *item = q->is_woken ? NULL : pop_oldest(q);
	q->is_woken = false;
	pthread_mutex_unlock(&q->lock);
	return item;
}

void bc_queue_wake(struct bc_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->is_woken = true;
	pthread_cond_signal(&q->changed); /* one thread waits */
	pthread_mutex_unlock(&q->lock);
}

void bc_queue_close(struct bc_queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->is_closed = true;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

bool bc_queue_is_over(struct bc_queue *q)
{
	pthread_mutex_lock(&q->lock);
	bool is_over = q->is_closed && q->count == 0;
	pthread_mutex_unlock(&q->lock);
	return is_over;
}

unsigned bc_queue_count(struct bc_queue *q)
{
	pthread_mutex_lock(&q->lock);
	unsigned count = q->count;
	pthread_mutex_unlock(&q->lock);
	return count;
}
