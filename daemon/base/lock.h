/* Locks for what only one daemon may use: an output directory, a socket. The lock is on the
 * directory itself, or on a file next to the socket (daemon/main/socket.h). The kernel releases it
 * when the process ends, for whatever reason. */
#ifndef BC_DAEMON_BASE_LOCK_H
#define BC_DAEMON_BASE_LOCK_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>

/* Creates the directory if it is missing (its parent must exist), opens it, and locks it. Returns
 * its fd, which holds the lock until it is closed; or a negative errno with a message in `err`, and
 * nothing created. *is_new: it was missing. -EBUSY: another process has the lock; `err` contains
 * its pid if that is known and of our pid namespace. */
int bc_dir_claim(const char *dir, bool *is_new, char *err, size_t errlen) BC_MUST_CHECK;

/* The same for a directory that must exist; `err` does not contain its name. */
int bc_dir_open(const char *dir, char *err, size_t errlen) BC_MUST_CHECK;

/* After a failed start or run, before closing fd: removes what bc_dir_claim() has created. A
 * directory in which there is something stays. */
void bc_dir_abandon(int fd, const char *dir, bool is_new);

/* Locks a file, which is created if it is missing, and writes our pid into it. Returns its fd,
 * which holds the lock until it is closed; or a negative errno. -EBUSY: another process has the
 * lock; *holder is its pid, or 0 if unknown or of another pid namespace. `err` is a message if the
 * file is another user's, otherwise empty. */
int bc_lock_file(const char *path, long *holder, char *err, size_t errlen) BC_MUST_CHECK;

/* True if the open file (-1: none) still has this path. */
bool bc_is_at(int fd, const char *path);

/* Unlocks the file, and deletes it if it still has its path. */
void bc_unlock_file(int fd, const char *path);

#endif
