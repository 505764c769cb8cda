/* The socket and the directory of recordings of a user's own buscapd (the system's has others,
 * which root and services use), and what programs remember for a user. */
#ifndef BC_FORMATS_BASE_USER_PATHS_H
#define BC_FORMATS_BASE_USER_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#define BC_SYSTEM_SOCKET "/run/buscapd/buscapd.sock"
#define BC_SYSTEM_DIR    "/var/lib/buscapd"

/* Bytes of a socket's path, with its zero. */
#define BC_SOCKET_PATH_MAX 108

/* True unless this is root, or a service of the system's systemd: that has $INVOCATION_ID, and no
 * session with $XDG_RUNTIME_DIR. */
bool bc_user_is_ordinary(void);

/* $XDG_RUNTIME_DIR/buscapd.sock. Returns false, and leaves *path empty, for others than ordinary
 * users, without that variable (ssh without a session, cron), or if it is too long. */
bool bc_user_socket(char path[BC_SOCKET_PATH_MAX]);

/* $XDG_DATA_HOME/buscapd, by default ~/.local/share/buscapd. Returns false, and leaves *path empty,
 * for others than ordinary users, or without a home. */
bool bc_user_dir(char *path, size_t size);

/* $XDG_STATE_HOME/buscap, by default ~/.local/state/buscap. Returns false, and leaves *path empty,
 * without these variables or if it is too long. */
bool bc_user_state_dir(char *path, size_t size);

/* Creates the missing parents of an absolute path, for this user only (0700). */
void bc_make_parents(char *path);

#endif
