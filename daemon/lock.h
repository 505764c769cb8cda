/* What only one daemon may hold: an output directory, a socket. Both are held by a lock (on the
 * directory itself; on a file beside the socket) that the kernel lets go when the process ends,
 * however it ends. */
#ifndef BC_DAEMON_LOCK_H
#define BC_DAEMON_LOCK_H

#include <stddef.h>

/* Makes sure the directory is there (its parent must be), opens it and takes its lock. Returns the
 * directory's fd, which holds the lock until it is closed; or a negative errno with a sentence in
 * `why`: -EBUSY when another process holds it, whose pid `why` says. */
int bc_dir_claim(const char *dir, char *why, size_t why_room) __attribute__((warn_unused_result));

/* The same for a directory that must be there; `why` doesn't name it. */
int bc_dir_open(const char *dir, char *why, size_t why_room) __attribute__((warn_unused_result));

/* Takes the socket's lock, removes a stale socket, and listens, mode 0660 and of the group if there
 * is one of that name. Returns the listening fd, *lock_fd set; or as above. */
int bc_socket_claim(const char *path, const char *group, int *lock_fd, char *why, size_t why_room)
	__attribute__((warn_unused_result));

/* Removes the socket and lets its lock go. */
void bc_socket_release(const char *path, int listen_fd, int lock_fd);

#endif
