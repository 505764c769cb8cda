#include "daemon/base/thread_health.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"

void bc_thread_health_init(struct bc_thread_health *s)
{
	memset(s, 0, sizeof(*s));
	s->what = "";
	pthread_mutex_init(&s->lock, NULL);
}

void bc_thread_health_destroy(struct bc_thread_health *s)
{
	pthread_mutex_destroy(&s->lock);
}

void bc_thread_health_start(struct bc_thread_health *s, const char *what, const char *file)
{
	pthread_mutex_lock(&s->lock);
	s->since_ns = bc_now_ns();
	s->what = what;
	snprintf(s->file, sizeof(s->file), "%s", file);
	pthread_mutex_unlock(&s->lock);
}

void bc_thread_health_rest(struct bc_thread_health *s)
{
	pthread_mutex_lock(&s->lock);
	s->since_ns = 0;
	pthread_mutex_unlock(&s->lock);
}

static void copy(struct bc_thread_health_seen *seen, const struct bc_thread_health *s)
{
	seen->since_ns = s->since_ns;
	seen->what = s->what;
	memcpy(seen->file, s->file, sizeof(seen->file));
}

bool bc_thread_health_poll(struct bc_thread_health *s, struct bc_thread_health_seen *longest)
{
	pthread_mutex_lock(&s->lock);
	bool is_longer = s->since_ns != 0 &&
			 (longest->since_ns == 0 || s->since_ns < longest->since_ns);
	if (is_longer)
		copy(longest, s);
	pthread_mutex_unlock(&s->lock);
	return is_longer;
}
