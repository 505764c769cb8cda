/* The time by which waits and limits are measured. */
#ifndef BC_CLI_TERM_CLOCK_H
#define BC_CLI_TERM_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Returns the time on the monotonic clock, in ns. */
static inline uint64_t bc_monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

#endif
