#include "cli/stats/second_thread.h"

#include <stddef.h>

#include "formats/base/cores.h"

static void *run_thread(void *context)
{
	struct bc_second_thread *s = context;

	pthread_mutex_lock(&s->mutex);
	for (;;) {
		while (s->work == NULL && !s->is_over)
			pthread_cond_wait(&s->changed, &s->mutex);
		if (s->work == NULL)
			break;
		pthread_mutex_unlock(&s->mutex);
		s->work(s->context);
		pthread_mutex_lock(&s->mutex);
		s->work = NULL;
		pthread_cond_signal(&s->changed);
	}
	pthread_mutex_unlock(&s->mutex);
	return NULL;
}

void bc_second_thread_open(struct bc_second_thread *s)
{
	*s = (struct bc_second_thread){.is_started = false};
	pthread_mutex_init(&s->mutex, NULL);
	pthread_cond_init(&s->changed, NULL);
	if (bc_cores() > 1)
		s->is_started = pthread_create(&s->thread, NULL, run_thread, s) == 0;
}

void bc_second_thread_close(struct bc_second_thread *s)
{
	if (s->is_started) {
		pthread_mutex_lock(&s->mutex);
		s->is_over = true;
		pthread_cond_signal(&s->changed);
		pthread_mutex_unlock(&s->mutex);
		pthread_join(s->thread, NULL);
	}
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->mutex);
}

void bc_second_thread_start(struct bc_second_thread *s, void (*work)(void *context), void *context)
{
	if (!s->is_started) {
		work(context);
		return;
	}
	pthread_mutex_lock(&s->mutex);
	s->work = work;
	s->context = context;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->mutex);
}

void bc_second_thread_wait(struct bc_second_thread *s)
{
	pthread_mutex_lock(&s->mutex);
	while (s->work != NULL)
		pthread_cond_wait(&s->changed, &s->mutex);
	pthread_mutex_unlock(&s->mutex);
}
