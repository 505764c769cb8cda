/* The socket: HTTP by libmicrohttpd, inside the loop. It knows requests and answers; what they say
 * is its owner's. */
#ifndef BC_DAEMON_SERVER_H
#define BC_DAEMON_SERVER_H

#include <uv.h>

struct bc_server;

struct bc_server_options {
	int listen_fd; /* the caller's; the server doesn't close it */
	void *context;

	/* The text of GET /v1/status: JSON, allocated, freed by the server; NULL when memory ran
	 * out. */
	char *(*status)(void *context);
};

/* Starts to answer. Returns 0 or a negative errno. */
int bc_server_start(struct bc_server **server, uv_loop_t *loop,
	const struct bc_server_options *options) __attribute__((warn_unused_result));

/* Connections that are open. */
unsigned bc_server_clients(const struct bc_server *server);

/* Ends all connections. Memory goes when the loop has closed the handles. NULL is none. */
void bc_server_close(struct bc_server *server);

#endif
