/* Whether the daemon's socket can be connected to, and in words why not. libcurl tells only that it
 * couldn't, and doesn't wait for a place in a full queue. */
#ifndef BC_CLI_CLIENT_SOCKET_PROBE_H
#define BC_CLI_CLIENT_SOCKET_PROBE_H

#include "formats/base/must_check.h"

#include <stddef.h>

/* Connects to the Unix socket at `path`, waiting up to timeout_ms for a place in its queue, and
 * hangs up. Returns 0 or a negative errno; -EAGAIN: no place in that time. */
int bc_socket_probe(const char *path, long timeout_ms) BC_MUST_CHECK;

/* A sentence, to be put behind the path, that says why bc_socket_probe() returned `error` and what
 * to do about it. */
void bc_socket_probe_error(char *out, size_t room, const char *path, int error, long timeout_ms);

#endif
