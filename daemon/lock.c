#include "daemon/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

int bc_dir_open(const char *dir, char *why, size_t room)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		int rc = -errno;
		snprintf(why, room, "can't open the directory: %s", strerror(-rc));
		return rc;
	}
	/* The directory itself is locked: a lock file can be deleted. */
	int rc = lock(fd);
	int pid_fd = open_pid_file(fd, DIR_PID);
	if (rc == -EBUSY)
		snprintf(why, room,
			"buscapd with pid %ld records into it; stop that one, or give another "
			"directory with -o",
			pid_fd >= 0 ? read_pid(pid_fd) : 0);
	else if (rc == 0 && pid_fd < 0)
		snprintf(why, room, "can't write there: %s", strerror(-pid_fd));
	else if (rc == 0)
		write_pid(pid_fd);
	else
		snprintf(why, room, "can't lock the directory: %s", strerror(-rc));
	if (pid_fd >= 0)
		close(pid_fd);
	rc = rc != 0 ? rc : pid_fd < 0 ? pid_fd : 0;
	if (rc != 0)
		close(fd);
	return rc != 0 ? rc : fd;
}

int bc_dir_claim(const char *dir, char *why, size_t room)
{
	char what[256];

	if (mkdir(dir, 0750) != 0 && errno != EEXIST) {
		int rc = -errno;
		snprintf(why, room, "%s: can't make the directory: %s", dir, strerror(-rc));
		return rc;
	}
	int fd = bc_dir_open(dir, what, sizeof(what));
	if (fd < 0)
		snprintf(why, room, "%s: %s", dir, what);
	return fd;
}

/* Whether somebody listens on the socket; then *pid is who. */
static bool is_alive(const struct sockaddr_un *address, long *pid)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* EAGAIN: it listens, and is too busy to take one more. */
	bool is_connected = fd >= 0 &&
			    (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
				    errno == EAGAIN);

	*pid = 0;
	if (is_connected && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0)
		*pid = peer.pid;
	if (fd >= 0)
		close(fd);
	return is_connected;
}

static int listen_on(const struct sockaddr_un *address, const char *group)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	const struct group *entry = group[0] != '\0' ? getgrnam(group) : NULL;
	mode_t before = umask(0117);
	int rc = bind(fd, (const struct sockaddr *)address, sizeof(*address));
	rc = rc == 0 ? 0 : -errno;
	umask(before);
	if (rc == 0 && entry != NULL && chown(address->sun_path, (uid_t)-1, entry->gr_gid) != 0)
		rc = errno == EPERM ? 0 : -errno; /* not our group: those of our own can connect */
	if (rc == 0 && listen(fd, SOMAXCONN) != 0)
		rc = -errno;
	if (rc != 0) {
		close(fd);
		return rc;
	}
	return fd;
}

int bc_socket_claim(const char *path, const char *group, int *lock_fd, char *why, size_t room)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char lock_path[sizeof(address.sun_path) + 8];
	long holder = 0;
	struct stat st;

	*lock_fd = -1;
	if (strlen(path) >= sizeof(address.sun_path)) {
		snprintf(why, room, "%s: too long for a socket's path", path);
		return -ENAMETOOLONG;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	snprintf(lock_path, sizeof(lock_path), "%s.lock", path);
	int rc = open_pid_file(AT_FDCWD, lock_path);
	if (rc >= 0) {
		*lock_fd = rc;
		rc = lock(*lock_fd);
		holder = rc == -EBUSY ? read_pid(*lock_fd) : 0;
	}
	if (rc == 0) {
		write_pid(*lock_fd);
		rc = is_alive(&address, &holder) ? -EBUSY : 0;
	}
	if (rc == 0 && lstat(path, &st) == 0) {
		if (S_ISSOCK(st.st_mode))
			unlink(path);
		else
			rc = -EEXIST;
	}
	if (rc == 0)
		rc = listen_on(&address, group);
	if (rc >= 0)
		return rc;
	if (rc == -EBUSY)
		snprintf(why, room,
			"%s: the process with pid %ld listens there; stop that one, or give "
			"another "
			"path with --socket",
			path, holder);
	else if (rc == -EEXIST)
		snprintf(why, room, "%s: something that is no socket is in its place", path);
	else
		snprintf(why, room,
			"%s: can't listen there: %s; give another path with --socket, or none with "
			"--no-socket",
			path, strerror(-rc));
	if (*lock_fd >= 0)
		close(*lock_fd);
	return rc;
}

void bc_socket_release(const char *path, int listen_fd, int lock_fd)
{
	unlink(path);
	close(listen_fd);
	close(lock_fd);
}
