/* The socket: HTTP/1.1 by libmicrohttpd, inside the loop. It knows connections, requests and
 * answers (daemon/http/request.h); what they say is its owner's.
 *
 * What a client may cost is bounded:
 *
 *   a request's head                16 KiB, else 431
 *   its body                        64 KiB, else 413; chunked bodies need no length
 *   its time                        a connection ends when 10 s pass in which its client neither
 *                                   sends anything of a request nor reads anything of its answer;
 *                                   waiting for us, and streams, take as long as they take
 *   connections of others           connections_max; one more gets a 503
 *   connections of the owner        BC_SERVER_OWNER_PLACES, apart from these
 *   memory of a connection          36 KiB: 32 KiB for heads both ways, and some state
 *   memory of bodies                2 MiB of the owner's and 2 MiB of others' at a time, else 503
 *   memory of answers               16 KiB; longer ones 4 MiB of the owner's and 4 MiB of others'
 *                                   at a time, or a single one that is longer than that, else 503
 *   memory in all                   12 MiB, and 52 KiB for each of connections_max,
 *                                   BC_SERVER_OWNER_PLACES and 96
 *
 * libmicrohttpd watches the time and a connection's memory. It can't do the rest: it doesn't know
 * who connects, it refuses connections without a word, and bodies and answers are ours.
 *
 * The owner is root or the user we run as, and always gets an answer. When all its places are taken
 * the connection ends that has waited longest for a request, or for its answer to be read, if that
 * is 50 ms at least; until then new clients wait in the kernel's queue. When the owner has nothing
 * but streams and answers to come, it gets a 503, too.
 *
 * libmicrohttpd itself refuses what isn't HTTP at all, and a head that passes 32 KiB, with a status
 * that fits and a short page of its own that isn't JSON. */
#ifndef BC_DAEMON_HTTP_SERVER_H
#define BC_DAEMON_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/http/request.h"
#include "formats/base/must_check.h"

#define BC_SERVER_OWNER_PLACES 168u

struct bc_server;

struct bc_server_options {
	int listen_fd; /* listens and doesn't block; the caller's, the server doesn't close it */
	bool is_local; /* a Unix socket: the kernel knows who asks */
	unsigned connections_max; /* of others than the owner, 1 .. 4096 */
	unsigned timeout_s;       /* instead of the 10 s above; 0: those */
	size_t long_bytes;        /* instead of BC_ANSWER_LONG_BYTES; 0: those */
	void *context;

	/* Called once for each whole request, from the loop. It must lead to one answer or stream,
	 * within the call or later. */
	void (*request)(void *context, struct bc_request *request);
};

/* Starts to answer. Returns 0 or a negative errno. */
int bc_server_start(struct bc_server **server, uv_loop_t *loop,
	const struct bc_server_options *options) BC_MUST_CHECK;

/* Connections that have a place. */
unsigned bc_server_clients(const struct bc_server *server);

/* Ends all connections. Streams say what they still have, as far as clients take it at once, and
 * `closed` of each is called before this returns; `request` is called no more. Requests that aren't
 * answered yet must still be; the answers are thrown away. Memory goes when the loop has closed the
 * handles. Not to be called from within `request` or a stream's calls. NULL is none. */
void bc_server_close(struct bc_server *server);

#endif
