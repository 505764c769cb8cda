/* An address of this machine alone, 127.0.0.1:PORT or [::1]:PORT, and a socket that listens there:
 * for metrics_listen. */
#ifndef BC_DAEMON_HTTP_LOOPBACK_H
#define BC_DAEMON_HTTP_LOOPBACK_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct bc_loopback {
	struct sockaddr_storage address;
	socklen_t bytes; /* 0: none is set */
	char text[64];   /* as written */
};

/* Reads 127.x.x.x:PORT or [::1]:PORT, PORT from 1 to 65535; the empty text is none. On failure
 * returns false with a sentence in `err`. */
bool bc_loopback_read(
	struct bc_loopback *loopback, const char *text, char *err, size_t errlen) BC_MUST_CHECK;

/* Listens there. Returns a socket that doesn't block, for the caller to close, or a negative
 * errno. */
int bc_loopback_listen(const struct bc_loopback *loopback) BC_MUST_CHECK;

#endif
