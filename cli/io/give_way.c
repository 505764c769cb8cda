#include "cli/io/give_way.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/io/file.h"

#define NICE 19

void bc_give_way(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		fd = bc_open_parent(path);

	/* A daemon that starts in this moment waits for our lock (daemon/base/lock). */
	bool is_recording = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	if (fd >= 0)
		close(fd);
	if (!is_recording)
		return;
	(void)!setpriority(PRIO_PROCESS, 0, NICE);
	(void)!syscall(
		SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
}
