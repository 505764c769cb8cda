/* What only one daemon may hold: an output directory, a socket. Both are held by a lock (on the
 * directory itself; on a file beside the socket, daemon/main/socket.h) that the kernel lets go when
 * the process ends, however it ends. */
#ifndef BC_DAEMON_BASE_LOCK_H
#define BC_DAEMON_BASE_LOCK_H

#include "formats/base/must_check.h"

#include <stddef.h>

/* Makes sure the directory is there (its parent must be), opens it and takes its lock. Returns the
 * directory's fd, which holds the lock until it is closed; or a negative errno with a sentence in
 * `err`: -EBUSY when another process holds it, whose pid `err` says. */
int bc_dir_claim(const char *dir, char *err, size_t errlen) BC_MUST_CHECK;

/* The same for a directory that must be there; `err` doesn't name it. */
int bc_dir_open(const char *dir, char *err, size_t errlen) BC_MUST_CHECK;

/* Takes the lock of a file, which is made if it isn't there and says our pid. Returns its fd, which
 * holds the lock until it is closed; or a negative errno: -EBUSY when another process holds it,
 * with its pid in *holder, 0 where that isn't known. */
int bc_lock_file(const char *path, long *holder) BC_MUST_CHECK;

#endif
