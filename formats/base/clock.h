/* The host's clocks, in nanoseconds. Any thread may call these. */
#ifndef BC_FORMATS_BASE_CLOCK_H
#define BC_FORMATS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Monotonic time, since an arbitrary start. */
static inline uint64_t bc_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Like bc_now_ns(), including the time that the machine was suspended. */
static inline uint64_t bc_boot_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* CPU time of the calling thread. */
static inline uint64_t bc_thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Time since the Unix epoch. It may jump in both directions when the clock is set. */
static inline int64_t bc_wall_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif
