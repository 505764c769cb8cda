/* CPU time of the process, for benchmarks. */
#ifndef BC_TESTS_SUPPORT_CPU_TIME_H
#define BC_TESTS_SUPPORT_CPU_TIME_H

#include <time.h>

/* Returns the CPU time used so far, in seconds. */
static inline double cpu_time_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#endif
