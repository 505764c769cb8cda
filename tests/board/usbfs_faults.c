#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/board/usbfs_kernel.h"

#define CALLERS 256

struct rule {
	int error;
	unsigned skip;
	unsigned count;
	unsigned slow_ms;
};

struct caller {
	pthread_t thread;
	unsigned calls[USBFS_CALLS];
	unsigned waits;
};

static struct {
	pthread_mutex_t lock;
	struct rule rules[USBFS_CALLS];
	struct caller callers[CALLERS];
	unsigned callers_n;
	unsigned hook_in; /* calls until the hook's turn; 0: no hook */
	void (*hook)(void *context);
	void *context;
} f = {.lock = PTHREAD_MUTEX_INITIALIZER};

void usbfs_faults_reset(void)
{
	pthread_mutex_lock(&f.lock);
	memset(f.rules, 0, sizeof(f.rules));
	f.hook_in = 0;
	pthread_mutex_unlock(&f.lock);
	usbfs_forget_calls();
}

static struct caller *find_caller(pthread_t thread)
{
	for (unsigned i = 0; i < f.callers_n; i++)
		if (pthread_equal(f.callers[i].thread, thread))
			return &f.callers[i];
	return NULL;
}

/* Entries of finished threads are not reused: a test has only a few threads. */
static struct caller *this_caller(void)
{
	struct caller *caller = find_caller(pthread_self());

	if (caller == NULL) {
		if (f.callers_n == CALLERS)
			abort();
		caller = &f.callers[f.callers_n++];
		memset(caller, 0, sizeof(*caller));
		caller->thread = pthread_self();
	}
	return caller;
}

int usbfs_enter(enum usbfs_call call)
{
	struct rule *rule = &f.rules[call];
	int error = 0;

	pthread_mutex_lock(&f.lock);
	this_caller()->calls[call]++;
	if (f.hook_in != 0 && --f.hook_in == 0) {
		void (*hook)(void *) = f.hook;
		void *context = f.context;
		pthread_mutex_unlock(&f.lock);
		hook(context);
		pthread_mutex_lock(&f.lock);
	}
	if (rule->skip != 0) {
		rule->skip--;
	} else if (rule->count != 0) {
		rule->count--;
		error = rule->error;
	}
	pthread_mutex_unlock(&f.lock);
	return error;
}

void usbfs_nap(enum usbfs_call call)
{
	pthread_mutex_lock(&f.lock);
	unsigned ms = f.rules[call].slow_ms;
	pthread_mutex_unlock(&f.lock);
	if (ms != 0)
		nanosleep(&(struct timespec){.tv_sec = ms / 1000,
				  .tv_nsec = (long)(ms % 1000) * 1000000},
			NULL);
}

void usbfs_waited(void)
{
	pthread_mutex_lock(&f.lock);
	this_caller()->waits++;
	pthread_mutex_unlock(&f.lock);
}

void usbfs_fail(enum usbfs_call call, int error, unsigned skip, unsigned count)
{
	pthread_mutex_lock(&f.lock);
	f.rules[call].error = error;
	f.rules[call].skip = skip;
	f.rules[call].count = count;
	pthread_mutex_unlock(&f.lock);
}

void usbfs_slow(enum usbfs_call call, unsigned ms)
{
	pthread_mutex_lock(&f.lock);
	f.rules[call].slow_ms = ms;
	pthread_mutex_unlock(&f.lock);
}

void usbfs_hook(unsigned n, void (*hook)(void *context), void *context)
{
	pthread_mutex_lock(&f.lock);
	f.hook_in = hook != NULL ? n : 0;
	f.hook = hook;
	f.context = context;
	pthread_mutex_unlock(&f.lock);
}

void usbfs_forget_calls(void)
{
	pthread_mutex_lock(&f.lock);
	f.callers_n = 0;
	pthread_mutex_unlock(&f.lock);
}

unsigned usbfs_calls_of(enum usbfs_call call)
{
	unsigned n = 0;

	pthread_mutex_lock(&f.lock);
	for (unsigned i = 0; i < f.callers_n; i++)
		n += f.callers[i].calls[call];
	pthread_mutex_unlock(&f.lock);
	return n;
}

unsigned usbfs_blocking_calls(pthread_t thread)
{
	unsigned n = 0;

	pthread_mutex_lock(&f.lock);
	const struct caller *caller = find_caller(thread);
	for (enum usbfs_call call = 0; caller != NULL && call < USBFS_CALLS; call++)
		if (call != USBFS_SUBMIT && call != USBFS_REAP && call != USBFS_DISCARD &&
			call != USBFS_ASK)
			n += caller->calls[call];
	pthread_mutex_unlock(&f.lock);
	return n;
}

unsigned usbfs_waits(pthread_t thread)
{
	pthread_mutex_lock(&f.lock);
	const struct caller *caller = find_caller(thread);
	unsigned n = caller != NULL ? caller->waits : 0;
	pthread_mutex_unlock(&f.lock);
	return n;
}
