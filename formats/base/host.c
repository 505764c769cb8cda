#include "formats/base/host.h"

#include <sys/statvfs.h>

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
