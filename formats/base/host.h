/* What the host has: cores, free space, directories and huge pages. */
#ifndef BC_FORMATS_BASE_HOST_H
#define BC_FORMATS_BASE_HOST_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number of cores that this process may use. */
static inline unsigned bc_cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

/* Free space of a file system. Many network and FUSE mounts report 0 of 0: unknown, not full. */
struct bc_free_space {
	bool is_known;
	uint64_t bytes; /* for an unprivileged user; 0 if it is not known */
	uint64_t files; /* that can be created; UINT64_MAX: no limit is known */
};

/* Asks the file system of an open file or directory. */
struct bc_free_space bc_free_space(int fd);

/* Says why the file or directory `path` could not be made: strerror(error), or for ENOENT "the
 * directory PATH does not exist" with the first one that is missing. Returns `out`. */
#define BC_PATH_ERROR_MAX 512u
const char *bc_path_error(char out[BC_PATH_ERROR_MAX], const char *path, int error);

/* Allocates a buffer of many MiB, in huge pages if the host has them: the first touch of each small
 * page may take longer than filling it. Returns NULL if out of memory; release it with free(). */
void *bc_huge_alloc(size_t bytes);

#endif
