#include "daemon/base/thread_health.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/clock.h"

void bc_thread_health_init(struct bc_thread_health *h)
{
	memset(h, 0, sizeof(*h));
	h->what = "";
	pthread_mutex_init(&h->lock, NULL);
}

void bc_thread_health_destroy(struct bc_thread_health *h)
{
	pthread_mutex_destroy(&h->lock);
}

void bc_thread_health_start(struct bc_thread_health *h, const char *what, const char *file)
{
	pthread_mutex_lock(&h->lock);
	h->since_ns = bc_now_ns();
	h->what = what;
	snprintf(h->file, sizeof(h->file), "%s", file);
	pthread_mutex_unlock(&h->lock);
}

void bc_thread_health_rest(struct bc_thread_health *h)
{
	pthread_mutex_lock(&h->lock);
	h->since_ns = 0;
	pthread_mutex_unlock(&h->lock);
}

bool bc_thread_health_poll(struct bc_thread_health *h, struct bc_thread_health_seen *longest)
{
	pthread_mutex_lock(&h->lock);
	bool is_longer = h->since_ns != 0 &&
			 (longest->since_ns == 0 || h->since_ns < longest->since_ns);
	if (is_longer) {
		longest->since_ns = h->since_ns;
		longest->what = h->what;
		memcpy(longest->file, h->file, sizeof(longest->file));
	}
	pthread_mutex_unlock(&h->lock);
	return is_longer;
}
