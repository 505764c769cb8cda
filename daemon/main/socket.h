/* The Unix socket for clients: created here, or passed by the service manager (sd_listen_fds(3)).
 *
 *     bc_socket_inherit()     first, before threads are started
 *     bc_socket_claim()       if none was passed
 *     bc_socket_check()       each second
 *     bc_socket_release()
 */
#ifndef BC_DAEMON_MAIN_SOCKET_H
#define BC_DAEMON_MAIN_SOCKET_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct bc_socket {
	int fd;      /* listening, non-blocking; -1: none */
	int node_fd; /* its node, for identification; -1: none */
	int lock_fd; /* the lock file next to it; -1: none */
	const char *group;
	gid_t gid;      /* of the group; -1: none. Looked up once: its directory may hang */
	bool is_passed; /* the service manager owns its node */
	bool is_lost;   /* its node can't be made again; reported */
};

/* Uses the socket that was passed, if any, and removes LISTEN_* from the environment. It must be
 * the only one, a listening Unix stream socket, and at `path`; with an empty path, none may be
 * passed. Returns 0, with socket->fd -1 if none was passed, or -EINVAL with a message in `err`. */
int bc_socket_inherit(
	struct bc_socket *socket, const char *path, char *err, size_t errlen) BC_MUST_CHECK;

/* Locks PATH.lock, removes a stale socket, and listens with mode 0660 and the given group if it
 * exists. `group` must stay valid. Returns 0, or a negative errno with a message in `err`: -EBUSY
 * if another process listens. */
int bc_socket_claim(struct bc_socket *socket, const char *path, const char *group, char *err,
	size_t errlen) BC_MUST_CHECK;

/* If the node is gone, or another process's, makes it again as soon as that is possible, and logs
 * it. Returns the new listening socket, to be used instead of socket->fd under the same number, or
 * -1: nothing to do, or not possible now. */
int bc_socket_check(struct bc_socket *socket, const char *path) BC_MUST_CHECK;

/* Closes the socket and, unless it was passed, removes its node, if it still has it, and its
 * lock. A passed socket keeps listening in the service manager. */
void bc_socket_release(struct bc_socket *socket, const char *path);

#endif
