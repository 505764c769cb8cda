#include "daemon/base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIR_PID ".buscapd.lock" /* says who; the lock itself is the directory's */

/* Writes our pid where the next daemon looks for who holds the lock. A full disk must not keep the
 * daemon from starting: the lock holds, nameless. */
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

static int lock(int fd)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

/* Who may read the directory may not be allowed to write to it. */
static void say_busy(char *err, size_t errlen, int dir_fd)
{
	int fd = openat(dir_fd, DIR_PID, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	long pid = fd >= 0 ? read_pid(fd) : 0;

	if (fd >= 0)
		close(fd);
	if (pid > 0)
		snprintf(err, errlen,
			"buscapd with pid %ld records into it; stop that one, or give another "
			"directory with -o",
			pid);
	else
		snprintf(err, errlen,
			"another buscapd records into it; stop that one, or give another "
			"directory with -o");
}

int bc_dir_open(const char *dir, char *err, size_t errlen)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		int rc = -errno;
		snprintf(err, errlen, "can't open the directory: %s", strerror(-rc));
		return rc;
	}
	/* The directory itself is locked: a lock file can be deleted. */
	int rc = lock(fd);
	int pid_fd = open_pid_file(fd, DIR_PID);
	/* That of a run by another user, root mostly. The lock is ours now: it is nobody's. */
	if (rc == 0 && pid_fd == -EACCES && unlinkat(fd, DIR_PID, 0) == 0)
		pid_fd = open_pid_file(fd, DIR_PID);
	if (rc == -EBUSY)
		say_busy(err, errlen, fd);
	else if (rc == 0 && pid_fd < 0)
		snprintf(err, errlen, "can't write there: %s", strerror(-pid_fd));
	else if (rc == 0)
		write_pid(pid_fd);
	else
		snprintf(err, errlen, "can't lock the directory: %s", strerror(-rc));
	if (pid_fd >= 0)
		close(pid_fd);
	rc = rc != 0 ? rc : pid_fd < 0 ? pid_fd : 0;
	if (rc != 0)
		close(fd);
	return rc != 0 ? rc : fd;
}

int bc_dir_claim(const char *dir, char *err, size_t errlen)
{
	char what[256];

	if (mkdir(dir, 0750) != 0 && errno != EEXIST) {
		int rc = -errno;
		snprintf(err, errlen,
			"%s: can't make the directory: %s; make it, or give another with -o", dir,
			strerror(-rc));
		return rc;
	}
	int fd = bc_dir_open(dir, what, sizeof(what));
	if (fd < 0)
		snprintf(err, errlen, "%s: %s", dir, what);
	return fd;
}

int bc_lock_file(const char *path, long *holder)
{
	int fd = open_pid_file(AT_FDCWD, path);

	*holder = 0;
	if (fd < 0)
		return fd;
	int rc = lock(fd);
	if (rc == 0) {
		write_pid(fd);
		return fd;
	}
	if (rc == -EBUSY)
		*holder = read_pid(fd);
	close(fd);
	return rc;
}
