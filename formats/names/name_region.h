/* Ranges of addresses of memory or I/O ports, and a region: the ranges that a name selects. */
#ifndef BC_FORMATS_NAMES_NAME_REGION_H
#define BC_FORMATS_NAMES_NAME_REGION_H

#include <stdbool.h>
#include <stdint.h>

struct bc_name_range {
	bool is_port;
	uint64_t first;
	uint64_t last; /* inclusive */
};

#define BC_NAME_REGION_RANGES 16u

/* Disjoint ranges in order, memory before ports. */
struct bc_name_region {
	unsigned count;
	struct bc_name_range ranges[BC_NAME_REGION_RANGES];
};

#endif
