/* The number of cores that this process may use. */
#ifndef BC_FORMATS_BASE_CORES_H
#define BC_FORMATS_BASE_CORES_H

#include <sched.h>

static inline unsigned bc_cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

#endif
