/* A loopback address, 127.0.0.1:PORT or [::1]:PORT, and a socket that listens on it: for
 * metrics_listen. */
#ifndef BC_DAEMON_HTTP_LOOPBACK_H
#define BC_DAEMON_HTTP_LOOPBACK_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct bc_loopback {
	struct sockaddr_storage address;
	socklen_t bytes; /* of `address`; 0: no address */
	char text[64];   /* as configured */
};

/* Parses 127.x.x.x:PORT or [::1]:PORT with a PORT from 1 to 65535. An empty string means no
 * address. Returns false with a message in `err` if the text is invalid. */
bool bc_loopback_parse(
	struct bc_loopback *loopback, const char *text, char *err, size_t errlen) BC_MUST_CHECK;

/* Whether the value of a Host header, with or without a port, is localhost or a loopback address.
 */
bool bc_loopback_is_host(const char *host);

/* Returns a listening, non-blocking socket, which the caller closes, or a negative errno. */
int bc_loopback_listen(const struct bc_loopback *loopback) BC_MUST_CHECK;

#endif
