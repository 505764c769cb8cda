/* A request of a client, and its response: one text, immediately or later, or a stream. A request
 * is complete when its receiver gets it.
 *
 * The receiver owns a request until it calls bc_request_respond() or bc_request_stream(), and must
 * not use it afterwards. If the client has disconnected, the request still needs a response, which
 * is then discarded. Loop thread only. */
#ifndef BC_DAEMON_HTTP_REQUEST_H
#define BC_DAEMON_HTTP_REQUEST_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BC_REQUEST_HEAD_BYTES 16384u
#define BC_REQUEST_BODY_BYTES 65536u

/* Bodies in memory at a time: this many of the owner, and this many of other users. */
#define BC_REQUEST_BODIES 32u

/* A response up to BC_RESPONSE_SHORT_BYTES is always sent. Longer responses being sent may use
 * BC_RESPONSE_LONG_BYTES of memory for the owner, and the same again for other users. */
#define BC_RESPONSE_SHORT_BYTES 16384u
#define BC_RESPONSE_LONG_BYTES  (4u << 20)

struct bc_request;

/* The strings below are valid until the request has its response, or the server is closed. */
const char *bc_request_method(const struct bc_request *request);
const char *bc_request_path(const struct bc_request *request); /* decoded, without the query */

/* Returns the decoded value of a query parameter, the first if it is repeated; empty if it has no
 * value; NULL if it is absent. */
const char *bc_request_query(const struct bc_request *request, const char *name);

/* Calls `each` for every query parameter until it returns false. */
void bc_request_each_query(const struct bc_request *request, void *context,
	bool (*each)(void *context, const char *name, const char *value));

/* Returns the body, followed by a zero byte, and its length in *bytes. Without a body: "". */
const char *bc_request_body(const struct bc_request *request, size_t *bytes);

/* Returns the value of a header, or NULL. The case of its name does not matter. */
const char *bc_request_header(const struct bc_request *request, const char *name);

/* Whether the client is root or the user that buscapd runs as, according to the kernel. Always
 * false over TCP. */
bool bc_request_is_owner(const struct bc_request *request);

/* Sends a response. Takes ownership of `text`, which is allocated. A NULL text means out of memory
 * and sends a 500. A long response that exceeds the memory limit becomes a 503. `allow` is the
 * Allow header of a 405, else NULL. */
void bc_request_respond(struct bc_request *request, unsigned status, const char *content_type,
	char *text, const char *allow);

/* A stream is a response without a known length. The server reads from it whenever the client can
 * accept data. */
struct bc_stream_ops {
	/* Writes up to `size` bytes (`size` is at least 100) and returns how many were written.
	 * 0: no data now. */
	size_t (*read)(void *context, char *out, size_t size);

	/* Called after read() returned 0. Returns whether the stream has ended. */
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
