/* The free space of a file system. Some, as many network and FUSE mounts, don't tell: their figures
 * are 0 of 0. That is unknown, not full. */
#ifndef BC_FORMATS_BASE_FREE_SPACE_H
#define BC_FORMATS_BASE_FREE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

struct bc_free_space {
	bool is_known;
	uint64_t bytes; /* for an unprivileged user; 0 if it is not known */
	uint64_t files; /* that can be created; UINT64_MAX: no limit is known */
};

/* Asks the file system of an open file or directory. */
struct bc_free_space bc_free_space(int fd);

#endif
