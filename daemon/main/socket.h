/* The socket that clients connect to: made here, or passed by the service manager, which has made
 * it and keeps it (systemd's socket activation, sd_listen_fds(3)).
 *
 *     bc_socket_take_inherited()    first of all, before there are threads
 *     bc_socket_claim()          if none was passed
 *     bc_socket_release()
 */
#ifndef BC_DAEMON_MAIN_SOCKET_H
#define BC_DAEMON_MAIN_SOCKET_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>

struct bc_socket {
	int fd;         /* listens, and never waits; -1: there is none */
	int lock_fd;    /* of the file beside it, whose lock says that it is ours; -1: none */
	bool is_passed; /* its node, mode and group are the service manager's */
};

/* Takes the socket that was passed, if any was, and forgets the environment's LISTEN_*, so that no
 * child takes it for its own. It must be the only one, and a listening Unix stream socket at
 * `path`; an empty path wants none. Returns 0, with socket->fd -1 when none was passed, or -EINVAL
 * with a sentence in `err`. */
int bc_socket_take_inherited(
	struct bc_socket *socket, const char *path, char *err, size_t errlen) BC_MUST_CHECK;

/* Takes the lock beside the socket, removes a stale socket, and listens, mode 0660 and of the group
 * if there is one of that name. Returns 0, or a negative errno with a sentence in `err`: -EBUSY
 * when another process holds it, whose pid `err` says. */
int bc_socket_claim(struct bc_socket *socket, const char *path, const char *group, char *err,
	size_t errlen) BC_MUST_CHECK;

/* Closes it; removes one that was made here, and lets its lock go. One that was passed goes on
 * listening, for the next start. */
void bc_socket_release(struct bc_socket *socket, const char *path);

#endif
