/* The memory accesses of a program that a simulated processor runs. */
#ifndef BC_CAPTURE_SIM_SIM_ACCESS_H
#define BC_CAPTURE_SIM_SIM_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

enum bc_sim_access_kind {
	BC_SIM_FETCH,
	BC_SIM_READ,
	BC_SIM_WRITE,
};

struct bc_sim_access {
	enum bc_sim_access_kind kind;
	uint32_t address; /* physical */
	uint32_t bytes;   /* at least 1; does not pass the end of the address space */
};

/* Programs to run instead of the simulated ones. */
struct bc_sim_workload {
	/* Sets the next access of a processor's program, or returns false if the program is over;
	 * it is not called again then. NULL: run the simulated programs. */
	bool (*next_access)(void *context, unsigned agent, struct bc_sim_access *access);
	void *context;
};

#endif
