/* Explains why the daemon's socket can't be connected to. libcurl only reports that it failed, and
 * does not wait while the socket's queue is full. */
#ifndef BC_CLI_IO_SOCKET_PROBE_H
#define BC_CLI_IO_SOCKET_PROBE_H

#include "formats/base/must_check.h"

#include <stddef.h>

/* Connects to the Unix socket at `path` and closes the connection. Waits up to timeout_ms for space
 * in the socket's queue. Returns 0 or a negative errno; -EAGAIN is a timeout. */
int bc_socket_probe(const char *path, long timeout_ms) BC_MUST_CHECK;

/* Writes the error text for `error`, a result of bc_socket_probe(), and what to do. */
void bc_socket_probe_error(char *err, size_t errlen, const char *path, int error, long timeout_ms);

#endif
