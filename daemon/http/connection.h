/* The server's connections: how many there may be, and which one is closed to admit the owner.
 *
 * bc_connections_admit() adds a connection, bc_connections_remove() removes it; in between,
 * libmicrohttpd owns the descriptor. Loop thread only.
 *
 * libmicrohttpd has a connection limit too, but it cannot tell the owner from other users, and it
 * closes excess connections without a response. So connections are counted here, by class;
 * libmicrohttpd's limit is above the sum of the limits here. */
#ifndef BC_DAEMON_HTTP_CONNECTION_H
#define BC_DAEMON_HTTP_CONNECTION_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bc_connections;
struct bc_request;
struct MHD_Connection;

enum bc_connection_class {
	BC_CLASS_OTHER,
	BC_CLASS_OWNER,
	BC_CLASS_REFUSED, /* its request gets a 503 */
	BC_CLASS_CLOSING, /* shut down, but libmicrohttpd has not noticed yet */
	BC_CLASSES,
};

/* Connections being refused at the same time. One more closes the oldest of them. */
#define BC_CONNECTIONS_REFUSED_MAX 32u

enum bc_phase {
	BC_PHASE_RECEIVING, /* waiting for a request, or for the rest of one */
	BC_PHASE_WORKING,   /* the client waits for the daemon, or reads a stream */
	BC_PHASE_SENDING,   /* waiting for the client to read its response */
};

struct bc_connection {
	struct bc_connections *connections;
	struct bc_connection *next;
	struct bc_connection *prev;
	struct MHD_Connection *mhd;
	int fd;
	bool is_owner;
	bool has_zero_byte; /* in the request's target */
	enum bc_connection_class class;
	enum bc_phase phase;
	uint64_t phase_start_ns;
	struct bc_request *request; /* the current one, or NULL */
};

struct bc_connections {
	struct bc_connection *first;
	unsigned used[BC_CLASSES];
	unsigned max[BC_CLASSES]; /* only BC_CLASS_OTHER and BC_CLASS_OWNER */

	/* Shared by all requests. Index 1 is the owner's share, index 0 that of other users. */
	size_t long_bytes_max; /* see bc_server_options.long_bytes_max */
	size_t long_bytes[2];  /* memory of long responses being sent */
	unsigned bodies[2];    /* request bodies in memory */
	uint64_t served_ns;    /* CPU time spent in libmicrohttpd */

	/* Set by the server. */
	void *server;
	void (*run_soon)(void *server); /* called when a connection was resumed */
	void *context;
	void (*request)(void *context, struct bc_request *request); /* NULL: stopping */
};

/* Adds the connection of an accepted descriptor. Returns 0 with *connection set; -EAGAIN if the
 * owner's limit is reached but a connection can be closed within 50 ms (try again then); or
 * -ENOMEM. */
int bc_connections_admit(struct bc_connections *connections, int fd, bool is_owner,
	struct bc_connection **connection) BC_MUST_CHECK;

/* Removes and frees the connection. Does not touch the descriptor. */
void bc_connections_remove(struct bc_connections *connections, struct bc_connection *connection);

void bc_connection_set_phase(struct bc_connection *connection, enum bc_phase phase);

#endif
