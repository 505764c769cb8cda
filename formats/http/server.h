/* An HTTP/1.1 server, built on libmicrohttpd, that runs in any loop. It handles connections,
 * requests and responses; their contents are up to the receiver.
 *
 *     bc_server_load(), once
 *     bc_server_start()
 *     bc_server_run(), whenever bc_server_fd() is readable
 *     bc_server_close()
 *
 * All functions are called by one thread, except bc_request_fd().
 *
 * The cost of a client is limited:
 *
 *   head of a request               16 KiB, else 431
 *   body of a request               64 KiB, else 413; may be chunked
 *   idle time                       a connection is closed if for 10 s its client neither sends
 *                                   any of a request nor reads any of a response. Time during which
 *                                   the client waits for the receiver, and streams, are not limited
 *   connections of other users      connections_max; one more gets a 503
 *   connections of the owner        BC_SERVER_OWNER_CONNECTIONS, in addition
 *   memory of a connection          36 KiB: 32 KiB for both heads, and some state
 *   memory of bodies                2 MiB for the owner and 2 MiB for other users, else 503
 *   memory of responses             up to 16 KiB each; longer ones share long_bytes_max for the
 *                                   owner and the same for other users, else 503. A longer response
 *                                   that is the only one is sent regardless of its size
 *   total memory                    4 MiB, twice long_bytes_max, and 52 KiB for each of
 *                                   connections_max, BC_SERVER_OWNER_CONNECTIONS and 96
 *
 * The owner is root or the user that this process runs as. A new connection of the owner over the
 * limit replaces the one that has been waiting for a request, or for its response to be read, the
 * longest, once it has waited for 50 ms; until then new clients wait in the kernel's queue. If all
 * connections of the owner are streams or wait for the receiver, it gets a 503 too.
 *
 * libmicrohttpd itself refuses input that is not HTTP, and a head over 32 KiB, with a suitable
 * status and a short page that is not JSON. */
#ifndef BC_FORMATS_HTTP_SERVER_H
#define BC_FORMATS_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"

#define BC_REQUEST_HEAD_BYTES 16384u
#define BC_REQUEST_BODY_BYTES 65536u

/* Bodies in memory at a time: this many of the owner, and this many of other users. */
#define BC_REQUEST_BODIES 32u

/* A response up to BC_RESPONSE_SHORT_BYTES is always sent. */
#define BC_RESPONSE_SHORT_BYTES 16384u
#define BC_RESPONSE_LONG_BYTES  (4u << 20) /* the default of long_bytes_max */

#define BC_SERVER_OWNER_CONNECTIONS 168u

/* Descriptors that a server may use in addition to one for each connection: its own, and one for
 * each connection being refused or closed. */
#define BC_SERVER_EXTRA_DESCRIPTORS 100u

struct bc_server;
struct bc_request;

struct bc_server_options {
	int listen_fd;            /* listening, non-blocking; owned by the caller */
	bool is_local;            /* a Unix socket: the kernel knows the client's user */
	bool ignores_bodies;      /* responds without reading the body, and closes the connection */
	unsigned connections_max; /* of users other than the owner, 1 .. 4096 */
	unsigned owner_max;       /* of the owner, up to BC_SERVER_OWNER_CONNECTIONS; 0: those */
	unsigned timeout_s;       /* idle time; 0: 10 s */
	unsigned head_s;          /* time for the whole head of a request; 0: only the idle time */
	size_t long_bytes_max;    /* memory of long responses; 0: BC_RESPONSE_LONG_BYTES */
	void *context;

	/* Called by bc_server_run() once per complete request. The receiver must respond with a
	 * text or a stream, within the call or later. */
	void (*request)(void *context, struct bc_request *request);
};

/* Loads libmicrohttpd, before the first server starts. On failure returns false and sets `err`. */
bool bc_server_load(char *err, size_t errlen) BC_MUST_CHECK;

/* Starts to serve. Returns 0 or a negative errno. */
int bc_server_start(
	struct bc_server **server, const struct bc_server_options *options) BC_MUST_CHECK;

/* Returns the descriptor to watch. It is readable when the server has something to do. */
int bc_server_fd(const struct bc_server *server);

/* Does what can be done without waiting, in small steps: other work of the loop gets its turn. */
void bc_server_run(struct bc_server *server);

/* Listens on another socket from now on: it gets the number of the old one, and `fd` is closed. */
void bc_server_listen(struct bc_server *server, int fd);

/* Number of connections, without those being refused or closed. */
unsigned bc_server_connections(const struct bc_server *server);

/* Closes all connections and frees the server. Streams may send what they still have, as far as
 * their clients accept it without delay; closed() of each is called before this returns. `request`
 * is no longer called. Pending requests still need a response, which is discarded. Stop watching
 * the descriptor first. Must not be called from `request` or a stream's functions. May be NULL. */
void bc_server_close(struct bc_server *server);

/* Requests. The receiver owns a request until it calls bc_request_respond() or bc_request_stream(),
 * and must not use it afterwards. If the client has disconnected, the request still needs a
 * response, which is then discarded.
 *
 * Strings are valid until the request has its response, or the server is closed. */

const char *bc_request_method(const struct bc_request *request);
const char *bc_request_path(const struct bc_request *request); /* decoded, without the query */

/* Returns the decoded value of a query parameter, the first if it is repeated; empty if it has no
 * value; NULL if it is absent. */
const char *bc_request_query(const struct bc_request *request, const char *name);

/* Returns the value of a header, or NULL. The case of its name does not matter. */
const char *bc_request_header(const struct bc_request *request, const char *name);

/* Called with a name and its value, "" if it has none. Returns false to stop. */
typedef bool bc_request_each(void *context, const char *name, const char *value);

/* Calls `each` for every query parameter, or every header. */
void bc_request_each_query(const struct bc_request *request, void *context, bc_request_each *each);
void bc_request_each_header(const struct bc_request *request, void *context, bc_request_each *each);

/* Returns the body, followed by a zero byte, and its length in *bytes. Without a body: "". */
const char *bc_request_body(const struct bc_request *request, size_t *bytes);

/* True if the kernel says that the client is root or this process's user. Always false over TCP. */
bool bc_request_is_owner(const struct bc_request *request);

/* Returns the connection's socket, to poll it for a disconnect. It is valid until the request has
 * its response or the server is closed. */
int bc_request_fd(const struct bc_request *request);

/* Sends a response. Takes ownership of `text`, which is allocated. A NULL text means out of memory
 * and sends a 500. A long response that exceeds the memory limit becomes a 503. `headers` are
 * further headers, as names and values in turn, ending with NULL; it may be NULL. */
void bc_request_respond(struct bc_request *request, unsigned status, const char *content_type,
	char *text, const char *const *headers);

/* A stream is a response without a known length. The server reads from it when the client can. */
struct bc_stream_ops {
	/* Writes up to `size` bytes (at least 100) and returns how many. 0: no data now. */
	size_t (*read)(void *context, char *out, size_t size);

	/* Called after read() returned 0. Returns true if the stream has ended. NULL: never. */
	bool (*is_over)(void *context);

	/* The client has disconnected, the stream has ended, or the server is closing. Called once,
	 * as the last call; the stream is freed afterwards. */
	void (*closed)(void *context);
};

struct bc_stream;

/* Responds with a stream. `ops` must outlive it. Makes no calls to `ops` before it returns. Returns
 * NULL if out of memory or the server is closed; then the caller still has to respond to the
 * request, and closed() is not called. */
struct bc_stream *bc_request_stream(struct bc_request *request, const char *content_type,
	const struct bc_stream_ops *ops, void *context) BC_MUST_CHECK;

/* Reports that the stream has data, or has ended. Cheap; never calls back directly. */
void bc_stream_wake(struct bc_stream *stream);

/* Returns the CPU time spent on all clients so far, for streams that limit their cost. */
uint64_t bc_stream_served_ns(const struct bc_stream *stream);

#endif
