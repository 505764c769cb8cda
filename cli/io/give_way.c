#include "cli/io/give_way.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NICE 19

static int open_directory(const char *path)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	char directory[4096] = ".";
	size_t n = (size_t)(basename(path) - path);
	int fd = open(path, flags);

	if (fd >= 0 || n >= sizeof(directory))
		return fd;
	memcpy(directory, path, n);
	directory[n != 0 ? n : 1] = '\0';
	return open(directory, flags);
}

void bc_give_way(const char *path)
{
	int fd = open_directory(path);

	/* The daemon's own lock excludes any other. A daemon that starts in this moment waits for
	 * ours (daemon/base/lock). */
	bool is_recording = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	if (fd >= 0)
		close(fd);
	if (!is_recording)
		return;
	(void)!setpriority(PRIO_PROCESS, 0, NICE);
	(void)!syscall(
		SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
}
