/* Locks a directory, or a file next to a socket, with flock(2): the kernel releases the lock when
 * the process ends, so a lock is never stale. The pid in the file is only for error messages.
 *
 * The lock of a directory is on the directory itself, because a lock file in it could be deleted. A
 * lock file next to a socket may be deleted by the process that had it: after locking, the path is
 * compared with the open file, and the file is opened again if they differ. */
#include "daemon/base/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "formats/base/host.h"
#include "formats/base/text.h"

/* Each time, another process has deleted the file in the moment between opening and locking it. */
#define LOCK_TRIES 10u

/* As often, a millisecond apart, a lock is found to be shared. */
#define SHARED_TRIES 100u

#define DIR_PID ".buscapd.lock" /* contains the pid; the lock is on the directory */

#define NAMESPACE_BYTES 48

/* Sets `name` to our pid namespace, "pid:[4026531836]", or to "?" without /proc. A pid is
 * meaningless in other namespaces. */
static void read_namespace(char name[NAMESPACE_BYTES])
{
	ssize_t n = readlink("/proc/self/ns/pid", name, NAMESPACE_BYTES - 1);

	snprintf(name + (n > 0 ? n : 0), NAMESPACE_BYTES - (size_t)(n > 0 ? n : 0), "%s",
		n > 0 ? "" : "?");
}

/* Writes our pid and its namespace, for the error message of another daemon. Errors are ignored:
 * the lock works without it, and a full disk must not prevent the start. */
static void write_pid(int fd)
{
	char space[NAMESPACE_BYTES];
	char text[NAMESPACE_BYTES + 24];

	read_namespace(space);
	int n = snprintf(text, sizeof(text), "%ld %s\n", (long)getpid(), space);
	if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n)
		return;
}

/* Returns 0 if it is unknown or from another namespace. */
static long read_pid(int fd)
{
	char own[NAMESPACE_BYTES];
	char text[NAMESPACE_BYTES + 24] = "";
	char *end;

	if (pread(fd, text, sizeof(text) - 1, 0) <= 0)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	long pid = strtol(text, &end, 10);
	read_namespace(own);
	return pid > 0 && *end == ' ' && strcmp(end + 1, own) == 0 ? pid : 0;
}

/* In a directory like /tmp, O_CREAT of another user's file fails (fs.protected_regular). */
static int open_pid_file(int dir_fd, const char *path)
{
	const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int fd = openat(dir_fd, path, flags);

	if (fd < 0 && errno == ENOENT)
		fd = openat(dir_fd, path, flags | O_CREAT, 0640);
	return fd < 0 ? -errno : fd;
}

/* Describes a file of another user that can't be opened. Returns false if it is not that. Only root
 * is named: the loop must not wait for the directory of users, which may hang. */
static bool format_foreign(
	char *err, size_t errlen, int dir_fd, const char *path, int rc, const char *what_to_do)
{
	struct stat st;

	if (rc != -EACCES || fstatat(dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		st.st_uid == geteuid())
		return false;
	char number[24];
	snprintf(number, sizeof(number), "%lu", (unsigned long)st.st_uid);
	bc_message(err, errlen, "%s: can't open: %s; it belongs to user %s; %s", path,
		strerror(-rc), st.st_uid == 0 ? "root" : number, what_to_do);
	return true;
}

/* Locks a file for us alone. A command that only asks whether it is locked holds a shared lock for
 * a moment (cli/io/operands), which is waited for. */
static int lock_fd(int fd)
{
	const struct timespec moment = {.tv_nsec = 1000000};

	for (unsigned i = 0; i < SHARED_TRIES; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return -errno;
		if (flock(fd, LOCK_SH | LOCK_NB) != 0)
			break;
		flock(fd, LOCK_UN);
		nanosleep(&moment, NULL);
	}
	return -EBUSY;
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
			"in use by another buscapd, of another user or in another container; stop "
			"that one, or use another directory (-o)");
}

int bc_dir_open(const char *dir, char *err, size_t errlen)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		int rc = -errno;
		bc_message(
			err, errlen, "can't open: %s; use another directory (-o)", strerror(-rc));
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
	else if (rc == 0 && pid_fd < 0 &&
		 !format_foreign(err, errlen, fd, DIR_PID, pid_fd,
			 "delete it, or use another directory (-o)"))
		bc_message(err, errlen, "can't write there: %s", strerror(-pid_fd));
	else if (rc == 0 && pid_fd >= 0)
		write_pid(pid_fd);
	else if (rc != 0)
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

int bc_dir_claim(const char *dir, bool *is_new, char *err, size_t errlen)
{
	char what[BC_PATH_ERROR_MAX];

	*is_new = mkdir(dir, 0750) == 0;
	if (!*is_new && errno != EEXIST) {
		int rc = -errno;
		bc_message(err, errlen,
			"%s: can't create the directory: %s; create it, or use another (-o)", dir,
			bc_path_error(what, dir, -rc));
		return rc;
	}
	int fd = bc_dir_open(dir, what, sizeof(what));
	if (fd >= 0 && *is_new)
		sync_parent(fd);
	if (fd < 0)
		bc_message(err, errlen, "%s: %s", dir, what);
	if (fd < 0 && *is_new)
		rmdir(dir);
	return fd;
}

void bc_dir_abandon(int fd, const char *dir, bool is_new)
{
	unlinkat(fd, DIR_PID, 0);
	if (is_new && bc_is_at(fd, dir))
		rmdir(dir); /* fails if there is something in it */
}

bool bc_is_at(int fd, const char *path)
{
	struct stat held;
	struct stat named;

	return fd >= 0 && fstat(fd, &held) == 0 && lstat(path, &named) == 0 &&
	       held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

int bc_lock_file(const char *path, long *holder, char *err, size_t errlen)
{
	int rc = -EBUSY;
	int fd = -1;

	*holder = 0;
	err[0] = '\0';
	for (unsigned i = 0; i < LOCK_TRIES; i++) {
		fd = open_pid_file(AT_FDCWD, path);
		if (fd < 0) {
			format_foreign(err, errlen, AT_FDCWD, path, fd,
				"delete it, or choose another path with --socket");
			return fd;
		}
		rc = lock_fd(fd);
		if (rc != 0 || bc_is_at(fd, path))
			break;
		close(fd); /* deleted meanwhile by the one that had locked it */
		fd = -1;
		rc = -EBUSY;
	}
	if (rc == 0) {
		write_pid(fd);
		return fd;
	}
	if (rc == -EBUSY && fd >= 0)
		*holder = read_pid(fd);
	if (fd >= 0)
		close(fd);
	return rc;
}

void bc_unlock_file(int fd, const char *path)
{
	if (bc_is_at(fd, path))
		unlink(path);
	close(fd);
}
