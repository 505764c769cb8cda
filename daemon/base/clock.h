/* The host's clocks, in nanoseconds, for whatever thread asks. */
#ifndef BC_DAEMON_BASE_CLOCK_H
#define BC_DAEMON_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Since some moment before; it never goes back. */
static inline uint64_t bc_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* What the calling thread has had of the processor: time in which it wasn't run is none. */
static inline uint64_t bc_thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The time of day, since the Unix epoch. It may be set, also back. */
static inline int64_t bc_wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
