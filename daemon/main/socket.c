/* Owns the node of the Unix socket. It is passed by the service manager, or made here: the lock
 * file next to it says that the path is ours, so that a node without a listener can be replaced.
 *
 * Invariant: only a node that is still ours is removed (bc_is_at()), and a passed one never. A node
 * that someone deletes is made again each second until that works. */
#include "daemon/main/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/lock.h"
#include "daemon/base/log.h"
#include "daemon/main/systemd.h"
#include "formats/base/host.h"
#include "formats/base/text.h"

#define PID_OF_SYSTEMD 1

#define LOCK_PATH_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) + sizeof(".lock"))

/* Passed by the service manager */

/* Writes the address of a Unix socket as text. */
static void write_address(char *out, size_t size, const struct sockaddr_un *address, size_t bytes)
{
	size_t n = bytes > offsetof(struct sockaddr_un, sun_path)
			   ? bytes - offsetof(struct sockaddr_un, sun_path)
			   : 0;

	if (n == 0)
		snprintf(out, size, "no path");
	else if (address->sun_path[0] == '\0')
		snprintf(out, size, "@%.*s", (int)(n - 1), address->sun_path + 1);
	else
		snprintf(out, size, "%.*s", (int)n, address->sun_path);
}

/* One node may have several paths, for example in /run and /var/run. */
static bool is_same_node(const char *a, const char *b)
{
	struct stat x;
	struct stat y;

	return strcmp(a, b) == 0 || (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
					    x.st_ino == y.st_ino);
}

static bool check_passed(
	const struct bc_systemd *systemd, int fd, const char *path, char *err, size_t errlen)
{
	struct sockaddr_un address = {.sun_family = AF_UNSPEC};
	socklen_t bytes = sizeof(address);
	char where[sizeof(address.sun_path) + 2];

	if (systemd->sd_is_socket(fd, AF_UNIX, SOCK_STREAM, 1) <= 0 ||
		getsockname(fd, (struct sockaddr *)&address, &bytes) != 0)
		return bc_fail(err, errlen,
			"systemd passed something other than a listening Unix stream socket; the "
			"socket unit needs ListenStream=%s and Accept=no",
			path[0] != '\0' ? path : "PATH");
	write_address(where, sizeof(where), &address, bytes);
	if (path[0] == '\0')
		return bc_fail(err, errlen,
			"systemd passed the socket %s, but socket.path is empty: set it to this "
			"path, or stop the socket unit",
			where);
	if (address.sun_path[0] == '\0' || !is_same_node(where, path))
		return bc_fail(err, errlen,
			"systemd passed the socket %s, but socket.path is %s: make ListenStream= "
			"in the socket unit and socket.path the same",
			where, path);
	return true;
}

int bc_socket_inherit(struct bc_socket *s, const char *path, char *err, size_t errlen)
{
	const struct bc_systemd *systemd;
	int fd = SD_LISTEN_FDS_START;

	*s = (struct bc_socket){.fd = -1, .node_fd = -1, .lock_fd = -1};
	if (getenv("LISTEN_FDS") == NULL)
		return 0;
	if ((systemd = bc_systemd_load(err, errlen)) == NULL)
		return -EINVAL;
	int count = systemd->sd_listen_fds(1); /* sets FD_CLOEXEC */
	if (count == 0)
		return 0;
	if (count < 0) {
		bc_message(err, errlen, "can't use LISTEN_FDS from the environment: %s",
			strerror(-count));
		return -EINVAL;
	}
	if (count > 1) {
		bc_message(err, errlen,
			"systemd passed %d sockets, but buscapd uses one; the socket unit needs "
			"exactly one ListenStream=",
			count);
		return -EINVAL;
	}
	if (!check_passed(systemd, fd, path, err, errlen))
		return -EINVAL;
	/* accept() must not block, whatever NonBlocking= in the unit says. */
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
		bc_message(err, errlen, "can't use the socket that systemd passed: %s",
			strerror(errno));
		return -EINVAL;
	}
	s->fd = fd;
	s->node_fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	s->is_passed = true;
	return 0;
}

/* Created here */

/* Returns whether a process listens on the socket, and its pid; 0 if its namespace hides it. */
static bool is_alive(const struct sockaddr_un *address, long *pid)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* EAGAIN: it listens, but its backlog is full. */
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

static void set_group(const struct bc_socket *s, const char *path)
{
	/* Our own user and root can connect anyway. */
	if (s->gid != (gid_t)-1 && chown(path, (uid_t)-1, s->gid) != 0)
		bc_log(BC_LOG_WARNING,
			"%s: can't let the group %s connect: %s; set socket.group to one that "
			"this user may use",
			path, s->group, strerror(errno));
}

/* Makes the node and listens on it. *node_fd keeps its inode, so that no other gets the number.
 * Returns the listening fd or a negative errno. */
static int listen_on(const struct bc_socket *s, const struct sockaddr_un *address, int *node_fd)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	mode_t before = umask(0117);
	int rc = bind(fd, (const struct sockaddr *)address, sizeof(*address));
	rc = rc == 0 ? 0 : -errno;
	umask(before);
	if (rc == 0) {
		set_group(s, address->sun_path);
		*node_fd = open(address->sun_path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		rc = *node_fd < 0 || listen(fd, SOMAXCONN) != 0 ? -errno : 0;
	}
	if (rc == 0)
		return fd;
	if (*node_fd >= 0)
		close(*node_fd);
	*node_fd = -1;
	close(fd);
	return rc;
}

/* Replaces a stale socket. Returns the listening fd or a negative errno; -EBUSY with the pid of the
 * listening process in *holder. */
static int replace_stale(
	const struct bc_socket *s, const struct sockaddr_un *address, int *node_fd, long *holder)
{
	struct stat st;

	if (is_alive(address, holder))
		return -EBUSY;
	if (lstat(address->sun_path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode))
			return -EEXIST;
		unlink(address->sun_path);
	}
	return listen_on(s, address, node_fd);
}

static void write_error(char *err, size_t errlen, const char *path, int rc, long holder)
{
	char why[BC_PATH_ERROR_MAX];

	/* In a container, it may be anything. The last test is that of sd_booted(3). */
	if (rc == -EBUSY && holder == PID_OF_SYSTEMD && access("/run/systemd/system/", F_OK) == 0)
		bc_message(err, errlen,
			"%s: systemd listens on this socket; stop its socket unit, or choose "
			"another path with --socket",
			path);
	else if (rc == -EBUSY && holder == 0)
		bc_message(err, errlen,
			"%s: another process listens on this socket, perhaps in another container; "
			"stop it, or choose another path with --socket",
			path);
	else if (rc == -EBUSY)
		bc_message(err, errlen,
			"%s: process %ld listens on this socket; stop it, or choose another path "
			"with --socket",
			path, holder);
	else if (rc == -EEXIST)
		bc_message(err, errlen, "%s: exists and is not a socket", path);
	else
		bc_message(err, errlen,
			"%s: can't listen: %s; choose another path with --socket, or use "
			"--no-socket",
			path, bc_path_error(why, path, -rc));
}

static void write_lock_path(char out[LOCK_PATH_MAX], const char *path)
{
	snprintf(out, LOCK_PATH_MAX, "%s.lock", path);
}

/* Locks PATH.lock, unless it is locked already, and makes the node. Returns the listening fd, or a
 * negative errno with a message in `err`. */
static int make_node(struct bc_socket *s, const char *path, char *err, size_t errlen)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char lock_path[LOCK_PATH_MAX];
	int node_fd = -1;
	long holder = 0;
	int rc = 0;

	if (strlen(path) >= sizeof(address.sun_path)) {
		bc_message(err, errlen, "%s: too long for a socket path", path);
		return -ENAMETOOLONG;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	write_lock_path(lock_path, path);
	err[0] = '\0';
	int lock_fd = bc_is_at(s->lock_fd, lock_path)
			      ? s->lock_fd
			      : bc_lock_file(lock_path, &holder, err, errlen);
	if (lock_fd < 0 && err[0] != '\0')
		return lock_fd;
	rc = lock_fd < 0 ? lock_fd : replace_stale(s, &address, &node_fd, &holder);
	if (rc < 0) {
		write_error(err, errlen, path, rc, holder);
		if (lock_fd >= 0 && lock_fd != s->lock_fd)
			bc_unlock_file(lock_fd, lock_path);
		return rc;
	}
	if (s->lock_fd >= 0 && s->lock_fd != lock_fd)
		close(s->lock_fd);
	if (s->node_fd >= 0)
		close(s->node_fd);
	s->lock_fd = lock_fd;
	s->node_fd = node_fd;
	return rc;
}

int bc_socket_claim(
	struct bc_socket *s, const char *path, const char *group, char *err, size_t errlen)
{
	const struct group *entry = group[0] != '\0' ? getgrnam(group) : NULL;

	*s = (struct bc_socket){.fd = -1, .node_fd = -1, .lock_fd = -1, .group = group};
	s->gid = entry != NULL ? entry->gr_gid : (gid_t)-1;
	int fd = make_node(s, path, err, errlen);
	if (fd < 0)
		return fd;
	s->fd = fd;
	return 0;
}

int bc_socket_check(struct bc_socket *s, const char *path)
{
	char err[512] = "";
	size_t n = strlen(path);
	int fd = -1;

	if (s->fd < 0 || bc_is_at(s->node_fd, path))
		return -1;
	if (!s->is_passed)
		fd = make_node(s, path, err, sizeof(err));
	/* The error may also be the lock's. */
	bool is_own = strncmp(err, path, n) == 0 && err[n] == ':';
	if (fd >= 0)
		bc_log(BC_LOG_WARNING, "%s: the socket was deleted; made it again", path);
	else if (!s->is_lost && s->is_passed)
		bc_log(BC_LOG_WARNING, "%s: the socket was deleted; restart its socket unit", path);
	else if (!s->is_lost)
		bc_log(BC_LOG_WARNING,
			"%s: the socket was deleted; clients can't connect until it can be made "
			"again: %s",
			path, is_own ? err + n + strlen(": ") : err);
	s->is_lost = fd < 0;
	return fd;
}

/* The node may be another daemon's by now. */
void bc_socket_release(struct bc_socket *s, const char *path)
{
	char lock_path[LOCK_PATH_MAX];

	if (s->fd < 0)
		return;
	if (!s->is_passed && bc_is_at(s->node_fd, path))
		unlink(path);
	close(s->fd);
	if (s->node_fd >= 0)
		close(s->node_fd);
	if (s->lock_fd >= 0) {
		write_lock_path(lock_path, path);
		bc_unlock_file(s->lock_fd, lock_path);
	}
	*s = (struct bc_socket){.fd = -1, .node_fd = -1, .lock_fd = -1};
}
