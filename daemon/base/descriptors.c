#include "daemon/base/descriptors.h"

#include <dirent.h>
#include <stddef.h>
#include <sys/resource.h>

/* Counts the open descriptors. */
static unsigned count_open(void)
{
	unsigned count = 0;
	DIR *dir = opendir("/proc/self/fd");

	if (dir == NULL)
		return 0;
	for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
		count += entry->d_name[0] != '.';
	closedir(dir);
	return count - 1; /* without the directory's own */
}

unsigned bc_descriptors_left(unsigned wanted)
{
	struct rlimit limit;
	rlim_t used = count_open();
	rlim_t all = used + wanted;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return wanted;
	if (limit.rlim_cur < all && limit.rlim_cur < limit.rlim_max) {
		rlim_t before = limit.rlim_cur;
		limit.rlim_cur = all < limit.rlim_max ? all : limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
			limit.rlim_cur = before;
	}
	if (limit.rlim_cur >= all)
		return wanted;
	return limit.rlim_cur > used ? (unsigned)(limit.rlim_cur - used) : 0;
}
