/* Threads that take turns in an order chosen by a seed, on a clock that only they advance.
 *
 * Included in one file of a program, this replaces pthreads, the clocks and nanosleep(): for the
 * program's own code and, because an executable's functions precede those of libraries, also for
 * libuv's threads. Threads are coroutines of the one real thread. Another may get its turn at each
 * operation on a mutex or condition variable, so the same seed repeats the same schedule exactly,
 * and a lock that is never released or a wake-up that is lost ends in a report, not in a hang.
 *
 *     fibers_start(seed)     the caller becomes fiber 0
 *     ... threads, locks, bc_now_ns(), fibers_point(), fibers_wait() ...
 *     fibers_end()           all threads must have been joined
 *
 * Half of the seeds choose at random. The others run the ready fiber with the highest priority and
 * change priorities a few times, which finds bugs that need one thread to be delayed for long
 * (Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs").
 * Clocks advance a little with each step, sometimes by much, as if the process had been suspended,
 * and to the next deadline when no fiber is ready. Wake-ups without a cause occur, as POSIX allows.
 *
 * Accesses to memory without a lock are not interleaved: that is what SAN=thread is for. */
#ifndef BC_TESTS_SUPPORT_FIBERS_H
#define BC_TESTS_SUPPORT_FIBERS_H

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/support/dice.h"

#define FIBERS_MAX         16u
#define FIBERS_STACK_BYTES (512u << 10)
#define FIBERS_TRACE       4096u
#define FIBERS_CHANGES     4u /* of priorities in a schedule */

enum fiber_state { FIBER_READY, FIBER_WAITING, FIBER_DONE };

struct fiber {
	ucontext_t context;
	uint8_t *stack;
	enum fiber_state state;
	const char *what; /* the latest operation, a constant text, */
	const void *on;   /* and its object */
	uint64_t wake_ns; /* UINT64_MAX: never */
	bool has_timed_out;
	bool is_joined;
	uint32_t priority;
	void *(*run)(void *);
	void *argument;
	void *result;
};

struct fibers {
	uint64_t seed;
	struct dice dice;
	struct fiber of[FIBERS_MAX];
	unsigned count; /* 0: not started; mutexes then only keep their state */
	unsigned current;
	unsigned threads_max; /* pthread_create() fails with EAGAIN beyond that */
	uint64_t now_ns;
	int64_t wall_offset_ns; /* wall clock minus monotonic clock */
	uint64_t steps;
	uint64_t steps_max; /* a schedule that takes longer makes no progress */
	bool by_priority;
	uint32_t stay; /* in 256: chance that the running fiber goes on */
	uint64_t change_at[FIBERS_CHANGES];
	struct {
		uint64_t step;
		uint64_t now_ns;
		unsigned fiber;
		const char *what;
		const void *on;
	} trace[FIBERS_TRACE];
	bool is_verbose; /* fibers_fail() prints the trace */
};

static struct fibers fibers;

/* Failure */

static void fibers_print(void)
{
	static const char *const states[] = {"ready", "waiting", "done"};

	for (unsigned i = 0; i < fibers.count; i++)
		fprintf(stderr, "  thread %u: %s, %s %p\n", i, states[fibers.of[i].state],
			fibers.of[i].what, fibers.of[i].on);
	uint64_t first = fibers.steps > FIBERS_TRACE ? fibers.steps - FIBERS_TRACE : 0;
	for (uint64_t i = first; fibers.is_verbose && i < fibers.steps; i++)
		fprintf(stderr, "  step %llu: %.6f s, thread %u: %s %p\n",
			(unsigned long long)fibers.trace[i % FIBERS_TRACE].step,
			(double)fibers.trace[i % FIBERS_TRACE].now_ns * 1e-9,
			fibers.trace[i % FIBERS_TRACE].fiber, fibers.trace[i % FIBERS_TRACE].what,
			fibers.trace[i % FIBERS_TRACE].on);
}

/* Reports the schedule and ends the program. */
__attribute__((noreturn, format(printf, 1, 2))) static void fibers_fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "schedule %llu: ", (unsigned long long)fibers.seed);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, " (step %llu)\n", (unsigned long long)fibers.steps);
	fibers_print();
	exit(1);
}

#define fibers_check(condition)                                                   \
	do {                                                                      \
		if (!(condition))                                                 \
			fibers_fail("%s:%d: %s", __FILE__, __LINE__, #condition); \
	} while (0)

/* Scheduling */

static bool fibers_chance(uint32_t one_in)
{
	return dice_below(&fibers.dice, one_in) == 0;
}

static void fibers_wake(unsigned i)
{
	fibers.of[i].state = FIBER_READY;
	fibers.of[i].wake_ns = UINT64_MAX;
}

static unsigned fibers_wake_due(void)
{
	unsigned ready = 0;

	for (unsigned i = 0; i < fibers.count; i++) {
		struct fiber *f = &fibers.of[i];
		if (f->state == FIBER_WAITING && f->wake_ns <= fibers.now_ns) {
			f->has_timed_out = true;
			fibers_wake(i);
		}
		ready += f->state == FIBER_READY;
	}
	return ready;
}

static unsigned fibers_most_urgent(void)
{
	unsigned best = fibers.count;

	for (unsigned i = 0; i < fibers.count; i++)
		if (fibers.of[i].state == FIBER_READY &&
			(best == fibers.count || fibers.of[i].priority > fibers.of[best].priority))
			best = i;
	return best;
}

static unsigned fibers_choose(void)
{
	unsigned ready;

	while ((ready = fibers_wake_due()) == 0) {
		uint64_t next = UINT64_MAX;
		for (unsigned i = 0; i < fibers.count; i++)
			if (fibers.of[i].state == FIBER_WAITING && fibers.of[i].wake_ns < next)
				next = fibers.of[i].wake_ns;
		if (next == UINT64_MAX)
			fibers_fail("deadlock");
		fibers.now_ns = next;
	}
	if (fibers.by_priority)
		return fibers_most_urgent();
	if (fibers.of[fibers.current].state == FIBER_READY &&
		dice_below(&fibers.dice, 256) < fibers.stay)
		return fibers.current;
	unsigned skip = dice_below(&fibers.dice, ready);
	for (unsigned i = 0;; i++)
		if (fibers.of[i].state == FIBER_READY && skip-- == 0)
			return i;
}

static void fibers_switch(void)
{
	unsigned from = fibers.current;
	unsigned to = fibers_choose();

	if (to == from)
		return;
	fibers.current = to;
	swapcontext(&fibers.of[from].context, &fibers.of[to].context);
}

static void fibers_advance_clock(void)
{
	fibers.now_ns += 20 + dice_below(&fibers.dice, 2000);
	if (fibers_chance(512))
		fibers.now_ns += dice_below(&fibers.dice, 60000000);
	if (fibers_chance(16384))
		fibers.now_ns += UINT64_C(3000000000);
}

static void fibers_note(const char *what, const void *on)
{
	struct fiber *self = &fibers.of[fibers.current];

	self->what = what;
	self->on = on;
	fibers.trace[fibers.steps % FIBERS_TRACE].step = fibers.steps;
	fibers.trace[fibers.steps % FIBERS_TRACE].now_ns = fibers.now_ns;
	fibers.trace[fibers.steps % FIBERS_TRACE].fiber = fibers.current;
	fibers.trace[fibers.steps % FIBERS_TRACE].what = what;
	fibers.trace[fibers.steps % FIBERS_TRACE].on = on;
	if (++fibers.steps > fibers.steps_max)
		fibers_fail("no end after %llu steps", (unsigned long long)fibers.steps_max);
	for (unsigned i = 0; i < FIBERS_CHANGES; i++)
		if (fibers.change_at[i] == fibers.steps)
			self->priority = i; /* below all others */
	fibers_advance_clock();
}

/* Another fiber may get its turn. */
static void fibers_point(const char *what, const void *on)
{
	if (fibers.count == 0)
		return;
	fibers_note(what, on);
	fibers_switch();
}

/* Waits until woken, or until the deadline. Returns whether that has passed. */
static bool fibers_wait(const char *what, const void *on, uint64_t until_ns)
{
	struct fiber *self = &fibers.of[fibers.current];

	fibers_note(what, on);
	self->state = FIBER_WAITING;
	self->wake_ns = until_ns;
	self->has_timed_out = false;
	fibers_switch();
	return self->has_timed_out;
}

/* Wakes all that wait for an object. */
static void fibers_wake_all(const void *on)
{
	for (unsigned i = 0; i < fibers.count; i++)
		if (fibers.of[i].state == FIBER_WAITING && fibers.of[i].on == on)
			fibers_wake(i);
}

static void fibers_start(uint64_t seed)
{
	static uint8_t *stacks[FIBERS_MAX];
	struct dice *dice = &fibers.dice;

	for (unsigned i = 1; i < FIBERS_MAX && stacks[i] == NULL; i++) {
		stacks[i] = mmap(NULL, FIBERS_STACK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
		if (stacks[i] == MAP_FAILED || mprotect(stacks[i], 4096, PROT_NONE) != 0)
			abort();
	}
	for (unsigned i = 0; i < FIBERS_MAX; i++)
		fibers.of[i].stack = stacks[i];
	fibers.seed = seed;
	dice->state = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
	dice_roll(dice);
	fibers.count = 1;
	fibers.current = 0;
	fibers.threads_max = FIBERS_MAX - 1;
	fibers.of[0].state = FIBER_READY;
	fibers.of[0].wake_ns = UINT64_MAX;
	fibers.of[0].priority = FIBERS_CHANGES + dice_below(dice, 1000);
	fibers.now_ns = UINT64_C(1000000000) + dice_below(dice, 1000000000);
	fibers.wall_offset_ns = INT64_C(1800000000000000000);
	fibers.steps = 0;
	fibers.steps_max = 1000000;
	fibers.by_priority = seed % 2 != 0;
	fibers.stay = seed % 8 == 0 ? 0 : dice_below(dice, 256);
	for (unsigned i = 0; i < FIBERS_CHANGES; i++)
		fibers.change_at[i] = 1 + dice_below(dice, 4000);
}

static void fibers_end(void)
{
	for (unsigned i = 1; i < fibers.count; i++)
		fibers_check(fibers.of[i].state == FIBER_DONE && fibers.of[i].is_joined);
	fibers.count = 0;
}

/* Threads */

static void fibers_enter(void)
{
	struct fiber *self = &fibers.of[fibers.current];

	self->result = self->run(self->argument);
	fibers_note("end of the thread", self);
	self->state = FIBER_DONE;
	fibers_wake_all(self);
	fibers_switch();
	abort();
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	unsigned i = fibers.count;

	(void)attr;
	if (i == 0 || i > fibers.threads_max)
		return EAGAIN;
	struct fiber *f = &fibers.of[i];
	f->state = FIBER_READY;
	f->what = "start of the thread";
	f->on = NULL;
	f->wake_ns = UINT64_MAX;
	f->is_joined = false;
	f->priority = FIBERS_CHANGES + dice_below(&fibers.dice, 1000);
	f->run = run;
	f->argument = arg;
	getcontext(&f->context);
	f->context.uc_stack.ss_sp = f->stack;
	f->context.uc_stack.ss_size = FIBERS_STACK_BYTES;
	f->context.uc_link = NULL;
	makecontext(&f->context, fibers_enter, 0);
	fibers.count++;
	*thread = (pthread_t)i;
	fibers_point("create", f);
	return 0;
}

int pthread_join(pthread_t thread, void **result)
{
	struct fiber *f = &fibers.of[(unsigned)thread];

	fibers_check(!f->is_joined);
	fibers_point("join", f);
	while (f->state != FIBER_DONE)
		fibers_wait("join", f, UINT64_MAX);
	f->is_joined = true;
	if (result != NULL)
		*result = f->result;
	return 0;
}

/* Mutexes: the first word is the owner plus 1, so zeros are an unlocked mutex. */

struct fibers_mutex {
	unsigned owner;
};

int pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	(void)attr;
	memset(mutex, 0, sizeof(*mutex));
	return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	fibers_check(((struct fibers_mutex *)mutex)->owner == 0);
	memset(mutex, 0xDD, sizeof(*mutex));
	return 0;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	struct fibers_mutex *m = (struct fibers_mutex *)mutex;

	fibers_point("lock", m);
	if (m->owner == fibers.current + 1 && fibers.count != 0)
		fibers_fail("a thread locks a mutex twice");
	while (m->owner != 0) {
		if (m->owner > FIBERS_MAX)
			fibers_fail("a destroyed mutex is locked");
		fibers_wait("lock", m, UINT64_MAX);
	}
	m->owner = fibers.current + 1;
	return 0;
}

static void fibers_unlock(struct fibers_mutex *m)
{
	if (m->owner != fibers.current + 1)
		fibers_fail("a thread unlocks a mutex that it has not locked");
	m->owner = 0;
	fibers_wake_all(m);
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	fibers_unlock((struct fibers_mutex *)mutex);
	fibers_point("unlock", mutex);
	return 0;
}

/* Condition variables: they need no memory. */

int pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	(void)attr;
	memset(cond, 0, sizeof(*cond));
	return 0;
}

int pthread_cond_destroy(pthread_cond_t *cond)
{
	for (unsigned i = 0; i < fibers.count; i++)
		fibers_check(fibers.of[i].state != FIBER_WAITING || fibers.of[i].on != cond);
	return 0;
}

static int fibers_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns)
{
	bool is_spurious = fibers_chance(64);

	fibers_unlock((struct fibers_mutex *)mutex);
	bool has_timed_out = fibers_wait("wait", cond, is_spurious ? 0 : until_ns);
	pthread_mutex_lock(mutex);
	return has_timed_out && until_ns <= fibers.now_ns ? ETIMEDOUT : 0;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	return fibers_cond_wait(cond, mutex, UINT64_MAX);
}

/* Deadlines are on the monotonic clock. */
int pthread_cond_timedwait(
	pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	return fibers_cond_wait(
		cond, mutex, (uint64_t)until->tv_sec * 1000000000 + (uint64_t)until->tv_nsec);
}

int pthread_cond_signal(pthread_cond_t *cond)
{
	unsigned waiting = 0;

	for (unsigned i = 0; i < fibers.count; i++)
		waiting += fibers.of[i].state == FIBER_WAITING && fibers.of[i].on == cond;
	unsigned skip = waiting > 1 ? dice_below(&fibers.dice, waiting) : 0;
	for (unsigned i = 0; waiting != 0 && i < fibers.count; i++)
		if (fibers.of[i].state == FIBER_WAITING && fibers.of[i].on == cond && skip-- == 0)
			fibers_wake(i);
	fibers_point("signal", cond);
	return 0;
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
	fibers_wake_all(cond);
	fibers_point("broadcast", cond);
	return 0;
}

/* Clocks */

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int64_t ns = (int64_t)fibers.now_ns;

	if (fibers.count == 0)
		return (int)syscall(SYS_clock_gettime, clock, now);
	if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
		ns += fibers.wall_offset_ns;
	now->tv_sec = ns / 1000000000;
	now->tv_nsec = ns % 1000000000;
	return 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)left;
	fibers_wait("sleep", NULL,
		fibers.now_ns + (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec);
	return 0;
}

#endif
