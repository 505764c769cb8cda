/* An HTTP/1.1 server inside the loop, built on libmicrohttpd. It handles connections, requests and
 * responses (daemon/http/request.h); their contents are up to the receiver.
 *
 * The cost of a client is limited:
 *
 *   head of a request               16 KiB, else 431
 *   body of a request               64 KiB, else 413; may be chunked
 *   idle time                       a connection is closed if for 10 s its client neither sends
 *                                   any of a request nor reads any of a response. Time during which
 *                                   the client waits for the daemon, and streams, are not limited
 *   connections of other users      connections_max; one more gets a 503
 *   connections of the owner        BC_SERVER_OWNER_CONNECTIONS, in addition
 *   memory of a connection          36 KiB: 32 KiB for both heads, and some state
 *   memory of bodies                2 MiB for the owner and 2 MiB for other users, else 503
 *   memory of responses             up to 16 KiB each; longer ones share 4 MiB for the owner and
 *                                   4 MiB for other users, else 503. A longer response that is the
 *                                   only one is sent regardless of its size
 *   total memory                    12 MiB, and 52 KiB for each of connections_max,
 *                                   BC_SERVER_OWNER_CONNECTIONS and 96
 *
 * libmicrohttpd enforces the idle time and the memory of a connection. It cannot do the rest: it
 * does not know which user connects, it refuses connections without a response, and it does not own
 * bodies and responses.
 *
 * The owner is root or the user that buscapd runs as. A new connection of the owner over the limit
 * replaces the one that has been waiting for a request, or for its response to be read, the
 * longest, once it has waited for 50 ms; until then new clients wait in the kernel's queue. If all
 * connections of the owner are streams or wait for the daemon, it gets a 503 too.
 *
 * libmicrohttpd itself refuses input that is not HTTP, and a head over 32 KiB, with a suitable
 * status and a short page that is not JSON. */
#ifndef BC_DAEMON_HTTP_SERVER_H
#define BC_DAEMON_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/http/request.h"
#include "formats/base/must_check.h"

#define BC_SERVER_OWNER_CONNECTIONS 168u

/* Descriptors that a server may use in addition to those of its connections: its own, and those of
 * connections that it refuses or closes. */
#define BC_SERVER_EXTRA_DESCRIPTORS 100u

struct bc_server;

struct bc_server_options {
	int listen_fd;            /* listening, non-blocking; owned by the caller */
	bool is_local;            /* a Unix socket: the kernel knows the client's user */
	unsigned connections_max; /* of users other than the owner, 1 .. 4096 */
	unsigned owner_max;       /* of the owner, up to BC_SERVER_OWNER_CONNECTIONS; 0: those */
	unsigned timeout_s;       /* idle time; 0: 10 s */
	size_t long_bytes_max;    /* memory of long responses; 0: BC_RESPONSE_LONG_BYTES */
	void *context;

	/* Called from the loop once per complete request. The receiver must respond with a text
	 * or a stream, within the call or later. */
	void (*request)(void *context, struct bc_request *request);
};

/* Loads libmicrohttpd, before the first server starts. Returns false, with a message in `err`, if
 * that fails. */
bool bc_server_load(char *err, size_t errlen) BC_MUST_CHECK;

/* Starts to serve. Returns 0 or a negative errno. */
int bc_server_start(struct bc_server **server, uv_loop_t *loop,
	const struct bc_server_options *options) BC_MUST_CHECK;

/* Listens on another socket from now on: it gets the number of the one in the options, and `fd` is
 * closed. */
void bc_server_listen(struct bc_server *server, int fd);

/* Number of connections, without those being refused or closed. */
unsigned bc_server_connections(const struct bc_server *server);

/* Closes all connections. Streams may send what they still have, as far as their clients accept it
 * without delay; closed() of each is called before this returns. `request` is no longer called.
 * Pending requests still need a response, which is discarded. Memory is freed when the loop has
 * closed the handles. Must not be called from `request` or from a stream's functions. NULL is
 * allowed. */
void bc_server_close(struct bc_server *server);

#endif
