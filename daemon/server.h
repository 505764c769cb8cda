/* The socket: HTTP/1.1 by libmicrohttpd, inside the loop. It knows connections, requests and
 * answers (daemon/request.h); what they say is its owner's.
 *
 * What a client may do to us is bounded:
 *
 *   a request's head                16 KiB, else 431
 *   its body                        64 KiB, else 413; chunked bodies need no length
 *   its time                        10 s from the connection's beginning to its last byte, however
 *                                   it trickles (408). On a kept connection 10 s from the answer
 *                                   before it to its first line, and 10 s from there to the rest
 *   an answer                       cut off when 10 s pass in which the client takes none of it; a
 *                                   stream never
 *   connections of others           connections_max; one more gets a 503 at once
 *   connections of the owner        BC_SERVER_OWNER_PLACES of its own
 *   memory of a connection          36 KiB: 32 KiB for heads both ways, and some state
 *   memory of bodies                2 MiB of the owner's and 2 MiB of others' at a time, else 503
 *   memory of answers               16 KiB; those that are longer 4 MiB of the owner's and 4 MiB of
 *                                   others' at a time, or one that is longer than that, else 503
 *   memory in all                   12 MiB, and 52 KiB for each of connections_max,
 *                                   BC_SERVER_OWNER_PLACES and 64
 *
 * The owner is root or who we run as, and always finds a place: for one more the one is ended that
 * has longest not asked anything, or not taken its answer, if that is 50 ms at least; meanwhile
 * those that connect wait. With nothing but streams and answers to come it gets a 503, too.
 *
 * What isn't HTTP at all, and a head that passes 32 KiB, libmicrohttpd refuses by itself, with a
 * status that fits and a short page of its own that is no JSON. */
#ifndef BC_DAEMON_SERVER_H
#define BC_DAEMON_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/request.h"

#define BC_SERVER_OWNER_PLACES 168u

#define BC_SERVER_HEAD_BYTES 16384u
#define BC_SERVER_BODY_BYTES 65536u

/* Of all bodies at a time, of the owner's and of others' each. */
#define BC_SERVER_BODIES_BYTES (2u << 20)

/* Answers no longer than this are always given; the longer ones have so much at a time, the owner's
 * and others' each. */
#define BC_SERVER_SHORT_BYTES 16384u
#define BC_SERVER_LONG_BYTES  (4u << 20)

struct bc_server;

struct bc_server_options {
	int listen_fd; /* listens and doesn't block; the caller's, the server doesn't close it */
	bool is_local; /* a Unix socket: the kernel knows who asks */
	unsigned connections_max; /* of others than the owner, 1 .. 4096 */
	unsigned patience_ms;     /* instead of the 10 s above; 0: those */
	size_t long_bytes;        /* instead of BC_SERVER_LONG_BYTES; 0: those */
	void *context;

	/* Called once for each whole request, from the loop. It must lead to one answer or stream,
	 * within the call or later. */
	void (*request)(void *context, struct bc_request *request);
};

/* Starts to answer. Returns 0 or a negative errno. */
int bc_server_start(struct bc_server **server, uv_loop_t *loop,
	const struct bc_server_options *options) __attribute__((warn_unused_result));

/* Connections that are open. */
unsigned bc_server_clients(const struct bc_server *server);

/* Ends all connections. Streams say what they still have, as far as clients take it at once, and
 * `closed` of each is called before this returns; `request` is called no more. Requests that aren't
 * answered yet must still be; the answers are thrown away. Memory goes when the loop has closed the
 * handles. Not to be called from within `request` or a stream's calls. NULL is none. */
void bc_server_close(struct bc_server *server);

/* For daemon/request. A connection was resumed: libmicrohttpd is to look at it soon. */
void bc_server_turn_soon(struct bc_server *server);
/* Time of the processor that clients have had. */
uint64_t bc_server_served_ns(const struct bc_server *server);

#endif
