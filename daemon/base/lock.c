#include "daemon/base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "formats/base/fail.h"

#define DIR_PID ".buscapd.lock" /* contains the pid; the lock is on the directory */

/* Writes our pid, for the error message of another daemon. Errors are ignored: the lock works
 * without it, and a full disk must not prevent the start. */
static void write_pid(int fd)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

	if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n)
		return;
}

static long read_pid(int fd)
{
	char text[24] = "";

	return pread(fd, text, sizeof(text) - 1, 0) > 0 ? strtol(text, NULL, 10) : 0;
}

static int open_pid_file(int dir_fd, const char *path)
{
	int fd = openat(dir_fd, path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);

	return fd < 0 ? -errno : fd;
}

static int lock_fd(int fd)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

/* Opens the pid file read-only: the user may be unable to write to the directory. */
static void format_busy(char *err, size_t errlen, int dir_fd)
{
	int fd = openat(dir_fd, DIR_PID, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	long pid = fd >= 0 ? read_pid(fd) : 0;

	if (fd >= 0)
		close(fd);
	if (pid > 0)
		bc_message(err, errlen,
			"in use by buscapd with pid %ld; stop that one, or use another directory "
			"(-o)",
			pid);
	else
		bc_message(err, errlen,
			"in use by another buscapd; stop that one, or use another directory (-o)");
}

int bc_dir_open(const char *dir, char *err, size_t errlen)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		int rc = -errno;
		bc_message(err, errlen, "can't open the directory: %s", strerror(-rc));
		return rc;
	}
	/* Lock the directory, because a lock file could be deleted. */
	int rc = lock_fd(fd);
	int pid_fd = open_pid_file(fd, DIR_PID);
	/* A pid file of another user, usually root, is stale: we have the lock. */
	if (rc == 0 && pid_fd == -EACCES && unlinkat(fd, DIR_PID, 0) == 0)
		pid_fd = open_pid_file(fd, DIR_PID);
	if (rc == -EBUSY)
		format_busy(err, errlen, fd);
	else if (rc == 0 && pid_fd < 0)
		bc_message(err, errlen, "can't write there: %s", strerror(-pid_fd));
	else if (rc == 0)
		write_pid(pid_fd);
	else
		bc_message(err, errlen, "can't lock the directory: %s", strerror(-rc));
	if (pid_fd >= 0)
		close(pid_fd);
	rc = rc != 0 ? rc : pid_fd < 0 ? pid_fd : 0;
	if (rc != 0)
		close(fd);
	return rc != 0 ? rc : fd;
}

/* Makes the entry of a new directory durable. */
static void sync_parent(int dir_fd)
{
	int fd = openat(dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!fsync(fd);
	close(fd);
}

int bc_dir_claim(const char *dir, char *err, size_t errlen)
{
	char what[256];
	bool is_new = mkdir(dir, 0750) == 0;

	if (!is_new && errno != EEXIST) {
		int rc = -errno;
		bc_message(err, errlen,
			"%s: can't create the directory: %s; create it, or use another (-o)", dir,
			strerror(-rc));
		return rc;
	}
	int fd = bc_dir_open(dir, what, sizeof(what));
	if (fd < 0)
		bc_message(err, errlen, "%s: %s", dir, what);
	else if (is_new)
		sync_parent(fd);
	return fd;
}

int bc_lock_file(const char *path, long *holder)
{
	int fd = open_pid_file(AT_FDCWD, path);

	*holder = 0;
	if (fd < 0)
		return fd;
	int rc = lock_fd(fd);
	if (rc == 0) {
		write_pid(fd);
		return fd;
	}
	if (rc == -EBUSY)
		*holder = read_pid(fd);
	close(fd);
	return rc;
}
