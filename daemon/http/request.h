/* A request of a client of the socket, whole, and its answer: one text, now or later, or a stream.
 *
 * A request is its receiver's until it is answered by bc_request_answer() or bc_request_stream(),
 * and not to be touched afterwards. One whose client has gone is answered like any other; the
 * answer is thrown away. All of this belongs to the loop's thread. */
#ifndef BC_DAEMON_HTTP_REQUEST_H
#define BC_DAEMON_HTTP_REQUEST_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BC_REQUEST_HEAD_BYTES 16384u
#define BC_REQUEST_BODY_BYTES 65536u

/* Bodies at a time, of the owner's requests and of others' each. */
#define BC_REQUEST_BODIES 32u

/* Answers no longer than this are always given. Longer ones may take this much memory at a time,
 * the owner's and others' each. */
#define BC_ANSWER_SHORT_BYTES 16384u
#define BC_ANSWER_LONG_BYTES  (4u << 20)

struct bc_request;

/* Texts last until the request is answered, or the server closed. */
const char *bc_request_method(const struct bc_request *request);
const char *bc_request_path(const struct bc_request *request); /* decoded, without the query */

/* The value of a member of the query, decoded: empty where it has none; NULL: there is no such
 * member. The first, where there are several. */
const char *bc_request_query(const struct bc_request *request, const char *name);

/* Calls `each` for the members of the query until it returns false. */
void bc_request_each_query(const struct bc_request *request, void *context,
	bool (*each)(void *context, const char *name, const char *value));

/* The body, with a zero behind it; *bytes is its length. An empty text where there is none. */
const char *bc_request_body(const struct bc_request *request, size_t *bytes);

/* The Content-Type, as it was sent; NULL: none. */
const char *bc_request_content_type(const struct bc_request *request);

/* Whether root or who we run as asks, by the kernel's word; false over TCP. */
bool bc_request_is_owner(const struct bc_request *request);

/* Answers. `text` is allocated, and freed by the server; NULL stands for memory that ran out, and
 * gives 500; a long one too many (daemon/http/server.h) gives 503. `allow` is for 405, else NULL.
 */
void bc_request_answer(struct bc_request *request, unsigned status, const char *content_type,
	char *text, const char *allow);

/* A stream is an answer that goes on. Data is asked for when the client can take some. */
struct bc_push_ops {
	/* Writes up to `room` bytes, 100 at least, and returns how many; 0: nothing now. */
	size_t (*read)(void *context, char *out, size_t room);

	/* Asked when read() gave 0: whether nothing more comes, ever. */
	bool (*is_over)(void *context);

	/* The client has gone, the stream is over, or the server closes. Called once, the last of
	 * the calls; the stream is no more. */
	void (*closed)(void *context);
};

struct bc_push;

/* Answers with a stream. `ops` must last as long. Nothing of it is called from within. Returns
 * NULL, and leaves the request to be answered, when memory ran out or the server is closed;
 * closed() is not called then. */
struct bc_push *bc_request_stream(struct bc_request *request, const char *content_type,
	const struct bc_push_ops *ops, void *context) BC_MUST_CHECK;

/* There is something to read, or the stream is over. Cheap, may be called often; never calls back
 * from within. */
void bc_push_wake(struct bc_push *push);

/* Time of the processor that all clients have had so far: for a stream that is not to cost too
 * much. */
uint64_t bc_push_served_ns(const struct bc_push *push);

#endif
