/* The host's clocks, in nanoseconds. Any thread may call these. */
#ifndef BC_FORMATS_BASE_CLOCK_H
#define BC_FORMATS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define BC_NS_PER_S UINT64_C(1000000000)

static inline uint64_t bc_read_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Monotonic time, since an arbitrary start. */
static inline uint64_t bc_now_ns(void)
{
	return bc_read_clock_ns(CLOCK_MONOTONIC);
}

/* Like bc_now_ns(), including the time that the machine was suspended. */
static inline uint64_t bc_boot_ns(void)
{
	return bc_read_clock_ns(CLOCK_BOOTTIME);
}

/* CPU time of the calling thread. */
static inline uint64_t bc_thread_ns(void)
{
	return bc_read_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Time since the Unix epoch. It may jump in both directions when the clock is set. */
static inline int64_t bc_wall_ns(void)
{
	return (int64_t)bc_read_clock_ns(CLOCK_REALTIME);
}

#endif
