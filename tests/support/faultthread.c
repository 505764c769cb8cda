/* A library for LD_PRELOAD with which a program can create only FAULTTHREAD threads, those of
 * libraries included. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static atomic_long created;

EXPORT int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr,
	void *(*run)(void *), void *restrict argument)
{
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	void *symbol = dlsym(RTLD_NEXT, "pthread_create");
	const char *most = getenv("FAULTTHREAD");

	if (most != NULL && atomic_fetch_add(&created, 1) >= strtol(most, NULL, 10))
		return EAGAIN;
	memcpy(&real, &symbol, sizeof(real));
	return real(thread, attr, run, argument);
}
