/* The server's connections: which of them has a place, and which makes way for the owner.
 *
 * bc_connections_admit() gives a connection its place, bc_connections_remove() takes it back; in
 * between, its descriptor is libmicrohttpd's. Everything belongs to the loop's thread.
 *
 * libmicrohttpd limits connections, too, but it can't tell the owner from others and closes what
 * exceeds the limit without a word. So places are counted here; its limit is above their sum. */
#ifndef BC_DAEMON_HTTP_CONNECTION_H
#define BC_DAEMON_HTTP_CONNECTION_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bc_connections;
struct bc_request;
struct MHD_Connection;

enum bc_place {
	BC_PLACE_OTHER,
	BC_PLACE_OWNER,
	BC_PLACE_REFUSED, /* its request gets a 503 */
	BC_PLACE_ENDING,  /* shut down; libmicrohttpd hasn't noticed yet */
	BC_PLACES,
};

/* Connections that are refused at a time; one more ends the oldest. */
#define BC_CONNECTIONS_REFUSED 32u

enum bc_phase {
	BC_PHASE_ASKING,  /* we wait for a request, or for the rest of it */
	BC_PHASE_WORKING, /* the client waits for us, or reads a stream */
	BC_PHASE_SENDING, /* the client is to read its answer */
};

struct bc_connection {
	struct bc_connections *all;
	struct bc_connection *next;
	struct bc_connection *before;
	struct MHD_Connection *mhd;
	int fd;
	bool is_owner;
	bool has_zero; /* the request's target has a zero byte in it */
	enum bc_place place;
	enum bc_phase phase;
	uint64_t since_ns;          /* when the phase began */
	struct bc_request *request; /* under way, or NULL */
};

struct bc_connections {
	struct bc_connection *first;
	unsigned used[BC_PLACES];
	unsigned max[BC_PLACES]; /* of others, of the owner */

	/* What requests share; index 1 is the owner's. */
	size_t long_bytes;      /* as bc_server_options.long_bytes */
	size_t answer_bytes[2]; /* memory of long answers */
	unsigned bodies[2];
	uint64_t served_ns; /* processor time spent in libmicrohttpd */

	/* Set by the server. */
	void *server;
	void (*turn_soon)(void *server); /* a connection was resumed */
	void *context;
	void (*request)(void *context, struct bc_request *request); /* NULL: we stop */
};

/* Gives an accepted descriptor a place. Returns 0 with *connection set; -EAGAIN when the owner will
 * soon have a place: ask again; or -ENOMEM. */
int bc_connections_admit(struct bc_connections *all, int fd, bool is_owner,
	struct bc_connection **connection) BC_MUST_CHECK;

/* Takes the place back and frees the connection. The descriptor is not touched. */
void bc_connections_remove(struct bc_connections *all, struct bc_connection *connection);

void bc_connection_set_phase(struct bc_connection *connection, enum bc_phase phase);

#endif
