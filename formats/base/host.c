#include "formats/base/host.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "formats/base/text.h"

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

struct bc_free_space bc_free_space(int fd)
{
	struct bc_free_space space = {.files = UINT64_MAX};
	struct statvfs fs;

	if (fstatvfs(fd, &fs) != 0)
		return space;
	if (fs.f_files != 0)
		space.files = fs.f_favail;
	uint64_t unit = fs.f_frsize != 0 ? fs.f_frsize : fs.f_bsize;
	space.is_known = fs.f_blocks != 0 && unit != 0;
	if (space.is_known && __builtin_mul_overflow((uint64_t)fs.f_bavail, unit, &space.bytes))
		space.bytes = UINT64_MAX;
	return space;
}

const char *bc_path_error(char out[BC_PATH_ERROR_MAX], const char *path, int error)
{
	char parent[PATH_MAX];

	for (const char *slash = strchr(path + (path[0] == '/'), '/');
		error == ENOENT && slash != NULL; slash = strchr(slash + 1, '/')) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
		if (access(parent, F_OK) == 0)
			continue;
		bc_message(out, BC_PATH_ERROR_MAX, "the directory %s does not exist", parent);
		return out;
	}
	snprintf(out, BC_PATH_ERROR_MAX, "%s", strerror(error));
	return out;
}

void *bc_huge_alloc(size_t bytes)
{
	size_t whole = (bytes + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
	void *buffer = aligned_alloc(HUGE_PAGE_BYTES, whole);

	if (buffer != NULL)
		(void)madvise(buffer, whole, MADV_HUGEPAGE);
	return buffer;
}
