/* The server owns its connections and their requests. libmicrohttpd reads heads and bodies and
 * sends responses; it enforces the idle time and the memory of a connection. The other limits are
 * here, because it does not know which user connects, refuses connections without a response, and
 * does not own bodies and responses.
 *
 * A request is RECEIVED in pieces, DELIVERED to the receiver when it is complete or refused by the
 * server itself, RESPONDED to, and COMPLETED when libmicrohttpd has sent the response or lost the
 * client. It is freed when the receiver and libmicrohttpd are both done with it, in any order.
 *
 * Invariant: a connection whose request has nothing to send is suspended. Then it costs no CPU time
 * and has no timeout, but libmicrohttpd does not notice that its client disconnects: see
 * check_connections(). libmicrohttpd can only be stopped when no connection is suspended.
 *
 * One epoll descriptor holds the listening socket, libmicrohttpd's descriptor and a timer, so that
 * any loop can run the server by watching one descriptor. */
#include "formats/http/server.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "formats/base/clock.h"
#include "formats/base/late_library.h"

#define TIMEOUT_S        10
#define CONNECTION_BYTES 32768 /* libmicrohttpd's memory for both heads */
#define CONNECTIONS_MAX  4096u

#define MS_NS    UINT64_C(1000000)
#define CHECK_NS BC_NS_PER_S  /* how often connections are checked */
#define PAUSE_NS (20 * MS_NS) /* how long accepting pauses without descriptors or room */

/* A connection is not closed in favour of another until its client has had this long to send a
 * request, or to read its response. */
#define GRACE_NS (50 * MS_NS)

/* Connections being refused at the same time. One more closes the oldest of them. */
#define REFUSED_MAX 32u

/* Connections accepted in one run. The loop has other work. */
#define ACCEPT_MAX 16

/* Connections that can be shut down in one run, before libmicrohttpd notices. */
#define CLOSING_MAX 64u

/* How often each stream is read once more when the server closes. */
#define LAST_RUNS 4u

/* A stream is sent to HTTP/1.0 clients in blocks of this size. */
#define BLOCK_BYTES 16384

/* A program built with the headers of an older libmicrohttpd also runs with the newer library,
 * which has the same soname. The older library ignores the flag. */
#if MHD_VERSION < 0x00097707
#define MHD_USE_NO_THREAD_SAFETY (1u << 19)
#endif

#define MHD_FUNCTIONS(F)                                          \
	F(MHD_add_connection)                                     \
	F(MHD_add_response_header)                                \
	F(MHD_create_response_from_buffer)                        \
	F(MHD_create_response_from_buffer_with_free_callback_cls) \
	F(MHD_create_response_from_callback)                      \
	F(MHD_destroy_response)                                   \
	F(MHD_get_connection_info)                                \
	F(MHD_get_connection_values)                              \
	F(MHD_get_daemon_info)                                    \
	F(MHD_get_timeout)                                        \
	F(MHD_lookup_connection_value)                            \
	F(MHD_lookup_connection_value_n)                          \
	F(MHD_queue_response)                                     \
	F(MHD_resume_connection)                                  \
	F(MHD_run)                                                \
	F(MHD_set_connection_option)                              \
	F(MHD_start_daemon)                                       \
	F(MHD_stop_daemon)                                        \
	F(MHD_suspend_connection)

static struct {
	MHD_FUNCTIONS(BC_LATE_POINTER)
} lib;
static struct bc_late_library library = {
	.name = "libmicrohttpd.so.12",
	.package = "libmicrohttpd12",
	.functions = (const char *const[]){MHD_FUNCTIONS(BC_LATE_NAME) NULL},
	.pointers = &lib,
};

enum connection_class {
	CLASS_OTHER,
	CLASS_OWNER,
	CLASS_REFUSED, /* its request gets a 503 */
	CLASS_CLOSING, /* shut down, but libmicrohttpd has not noticed yet */
	CLASSES,
};

enum phase {
	PHASE_HEAD,    /* waiting for a request, or for the rest of its head */
	PHASE_BODY,    /* waiting for the rest of a body */
	PHASE_WORKING, /* the client waits for the receiver, or reads a stream */
	PHASE_SENDING, /* waiting for the client to read its response */
};

struct connection {
	struct bc_server *server;
	struct connection *next;
	struct connection *prev;
	struct MHD_Connection *mhd;
	int fd;
	bool is_owner;
	bool has_zero_byte; /* in the request's target */
	enum connection_class class;
	enum phase phase;
	uint64_t phase_start_ns;
	struct bc_request *request; /* the current one, or NULL */
};

struct bc_server {
	struct bc_server_options options; /* request: NULL when stopping */
	struct MHD_Daemon *mhd;
	int epoll_fd;
	int timer_fd;
	uint64_t timer_ns; /* when the timer expires; 0: at once; UINT64_MAX: it is not set */
	uint64_t check_ns; /* next check of the connections; UINT64_MAX: none */

	struct connection *first;
	unsigned used[CLASSES];
	unsigned max[CLASSES];       /* only CLASS_OTHER and CLASS_OWNER */
	struct connection *arriving; /* being handed to libmicrohttpd */
	int waiting_fd;              /* accepted, but the owner's limit is reached; -1: none */
	bool is_paused; /* not accepting for PAUSE_NS: no descriptors, or no room for the owner */

	/* Shared by all requests. Index 1 is the owner's share, index 0 the others'. */
	size_t long_bytes[2]; /* memory of long responses being sent */
	unsigned bodies[2];   /* request bodies in memory */
	uint64_t served_ns;   /* CPU time spent in libmicrohttpd */
};

struct refusal {
	unsigned status;
	const char *body;
};

/* Responses of the server itself. */
#define REFUSAL(name, status, message) \
	static const struct refusal name = {status, "{\"error\":\"" message "\"}\n"}

REFUSAL(zero_byte, MHD_HTTP_BAD_REQUEST, "zero byte in the path or query");
REFUSAL(long_head, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE,
	"headers too long: the limit is 16 KiB");
REFUSAL(long_body, MHD_HTTP_CONTENT_TOO_LARGE, "body too long: the limit is 64 KiB");
REFUSAL(no_memory, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
REFUSAL(too_many_connections, MHD_HTTP_SERVICE_UNAVAILABLE,
	"too many connections; close some, or try again later");
REFUSAL(too_many_bodies, MHD_HTTP_SERVICE_UNAVAILABLE,
	"too many requests with a body; try again later");
REFUSAL(too_many_long_responses, MHD_HTTP_SERVICE_UNAVAILABLE,
	"too many long responses; try again later");
REFUSAL(stopping, MHD_HTTP_SERVICE_UNAVAILABLE, "the server is stopping");

struct bc_request {
	struct connection *connection; /* NULL: libmicrohttpd is done with the request */
	const char *method;
	const char *path;
	char *body; /* NULL, or BC_REQUEST_BODY_BYTES and a zero */
	size_t body_bytes;
	const struct refusal *refusal; /* sent when the body is complete; NULL: not refused */
	bool is_delivered;             /* to the receiver */
	bool has_response;
	bool is_suspended;
	unsigned status;
	struct MHD_Response *response; /* NULL with has_response: out of memory, or queued */
	struct bc_stream *stream;      /* NULL: the response is not a stream */
};

struct bc_stream {
	struct bc_request *request;      /* NULL: libmicrohttpd is done with it */
	const struct bc_stream_ops *ops; /* NULL: setup failed, do not call closed() */
	void *context;
	bool is_client_gone;
};

/* ---- connections */

static void close_connection(struct connection *c)
{
	shutdown(c->fd, SHUT_RDWR);
	c->server->used[c->class]--;
	c->class = CLASS_CLOSING;
	c->server->used[CLASS_CLOSING]++;
}

/* Finds the connection that has been waiting for its client the longest. A connection whose client
 * waits for the receiver is never closed. */
static struct connection *find_oldest(struct bc_server *server, enum connection_class class)
{
	struct connection *oldest = NULL;

	for (struct connection *c = server->first; c != NULL; c = c->next)
		if (c->class == class && c->phase != PHASE_WORKING &&
			(oldest == NULL || c->phase_start_ns < oldest->phase_start_ns))
			oldest = c;
	return oldest;
}

/* Sets *class to the class of a new connection, after closing an old one if necessary. Returns
 * -EAGAIN if the owner's limit is reached but a connection can be closed within GRACE_NS. */
static int choose_class(struct bc_server *server, bool is_owner, enum connection_class *class)
{
	struct connection *oldest = NULL;

	*class = is_owner ? CLASS_OWNER : CLASS_OTHER;
	if (server->used[*class] < server->max[*class])
		return 0;
	if (is_owner)
		oldest = find_oldest(server, CLASS_OWNER);
	if (oldest != NULL && bc_now_ns() - oldest->phase_start_ns < GRACE_NS)
		return -EAGAIN;
	if (oldest == NULL) {
		*class = CLASS_REFUSED;
		if (server->used[CLASS_REFUSED] == REFUSED_MAX)
			oldest = find_oldest(server, CLASS_REFUSED);
	}
	if (oldest != NULL)
		close_connection(oldest);
	return 0;
}

static void set_phase(struct connection *c, enum phase phase)
{
	c->phase = phase;
	c->phase_start_ns = bc_now_ns();
}

/* Returns 0 with the connection in server->arriving, -EAGAIN as choose_class(), or -ENOMEM. */
static int add_connection(struct bc_server *server, int fd, bool is_owner)
{
	enum connection_class class;
	int rc = choose_class(server, is_owner, &class);

	if (rc != 0)
		return rc;
	struct connection *c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	*c = (struct connection){.server = server,
		.fd = fd,
		.is_owner = is_owner,
		.class = class,
		.next = server->first};
	set_phase(c, PHASE_HEAD);
	if (c->next != NULL)
		c->next->prev = c;
	server->first = c;
	server->used[class]++;
	server->arriving = c;
	return 0;
}

/* Does not close the descriptor, which libmicrohttpd owns. */
static void remove_connection(struct connection *c)
{
	if (c->next != NULL)
		c->next->prev = c->prev;
	*(c->prev != NULL ? &c->prev->next : &c->server->first) = c->next;
	c->server->used[c->class]--;
	free(c);
}

/* ---- the contents of a request */

const char *bc_request_method(const struct bc_request *r)
{
	return r->method;
}

const char *bc_request_path(const struct bc_request *r)
{
	return r->path;
}

const char *bc_request_query(const struct bc_request *r, const char *name)
{
	const char *value = NULL;

	if (r->connection == NULL ||
		lib.MHD_lookup_connection_value_n(r->connection->mhd, MHD_GET_ARGUMENT_KIND, name,
			strlen(name), &value, NULL) != MHD_YES)
		return NULL;
	return value != NULL ? value : "";
}

const char *bc_request_header(const struct bc_request *r, const char *name)
{
	if (r->connection == NULL)
		return NULL;
	return lib.MHD_lookup_connection_value(r->connection->mhd, MHD_HEADER_KIND, name);
}

struct visitor {
	void *context;
	bc_request_each *each;
};

static enum MHD_Result on_value(
	void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	const struct visitor *visitor = context;

	(void)kind;
	return visitor->each(visitor->context, name != NULL ? name : "", value != NULL ? value : "")
		       ? MHD_YES
		       : MHD_NO;
}

static void visit_values(
	const struct bc_request *r, enum MHD_ValueKind kind, void *context, bc_request_each *each)
{
	struct visitor visitor = {.context = context, .each = each};

	if (r->connection != NULL)
		lib.MHD_get_connection_values(r->connection->mhd, kind, on_value, &visitor);
}

void bc_request_each_query(const struct bc_request *r, void *context, bc_request_each *each)
{
	visit_values(r, MHD_GET_ARGUMENT_KIND, context, each);
}

void bc_request_each_header(const struct bc_request *r, void *context, bc_request_each *each)
{
	visit_values(r, MHD_HEADER_KIND, context, each);
}

const char *bc_request_body(const struct bc_request *r, size_t *bytes)
{
	*bytes = r->body_bytes;
	return r->body != NULL ? r->body : "";
}

bool bc_request_is_owner(const struct bc_request *r)
{
	return r->connection != NULL && r->connection->is_owner;
}

int bc_request_fd(const struct bc_request *r)
{
	return r->connection->fd;
}

/* ---- receiving */

/* Strips scheme and host from a target in absolute form, as sent to a proxy. Servers must accept
 * this form (RFC 9112, 3.2.2). Any host name is accepted, so only on a local socket: over TCP, the
 * receiver checks the Host header, which this form overrides. */
static const char *path_of_target(const char *target, bool is_local)
{
	size_t scheme = strncasecmp(target, "http://", 7) == 0    ? 7
			: strncasecmp(target, "https://", 8) == 0 ? 8
								  : 0;

	if (!is_local || scheme == 0)
		return target;
	const char *path = strchr(target + scheme, '/');
	return path != NULL ? path : "/";
}

/* Returns NULL if out of memory. */
static struct bc_request *receive_head(
	struct connection *connection, const char *path, const char *method)
{
	const union MHD_ConnectionInfo *info = lib.MHD_get_connection_info(
		connection->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	struct bc_request *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->connection = connection;
	r->path = path_of_target(path, connection->server->options.is_local);
	r->method = method;
	connection->request = r;
	set_phase(connection, PHASE_BODY);
	if (connection->class == CLASS_REFUSED)
		r->refusal = &too_many_connections;
	else if (info != NULL && info->header_size > BC_REQUEST_HEAD_BYTES)
		r->refusal = &long_head;
	else if (connection->has_zero_byte)
		r->refusal = &zero_byte;
	return r;
}

static unsigned *bodies_of(const struct bc_request *r)
{
	return &r->connection->server->bodies[r->connection->is_owner];
}

static void free_body(struct bc_request *r)
{
	*bodies_of(r) -= r->body != NULL;
	free(r->body);
	r->body = NULL;
}

/* A refused body is still read to its end: most clients read the response only after that. */
static void receive_body(struct bc_request *r, const char *bytes, size_t n)
{
	if (r->refusal == NULL && n > BC_REQUEST_BODY_BYTES - r->body_bytes)
		r->refusal = &long_body;
	if (r->refusal == NULL && r->body == NULL) {
		if (*bodies_of(r) == BC_REQUEST_BODIES)
			r->refusal = &too_many_bodies;
		else if ((r->body = malloc(BC_REQUEST_BODY_BYTES + 1)) == NULL)
			r->refusal = &no_memory;
		else
			*bodies_of(r) += 1;
	}
	if (r->refusal != NULL)
		return;
	memcpy(r->body + r->body_bytes, bytes, n);
	r->body_bytes += n;
	r->body[r->body_bytes] = '\0';
}

static void suspend(struct bc_request *r)
{
	r->is_suspended = true;
	lib.MHD_suspend_connection(r->connection->mhd);
}

static struct MHD_Response *make_refusal(const struct refusal *refusal)
{
	struct MHD_Response *response = lib.MHD_create_response_from_buffer(
		strlen(refusal->body), (void *)refusal->body, MHD_RESPMEM_PERSISTENT);

	if (response != NULL)
		lib.MHD_add_response_header(
			response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
	return response;
}

static void refuse(struct bc_request *r)
{
	r->status = r->refusal->status;
	r->response = make_refusal(r->refusal);
	r->has_response = true;
	if (r->response != NULL)
		lib.MHD_add_response_header(r->response, MHD_HTTP_HEADER_CONNECTION, "close");
}

static enum MHD_Result queue_response(struct bc_request *r)
{
	struct connection *connection = r->connection;

	free_body(r);
	if (r->response == NULL)
		return MHD_NO;
	if (r->stream == NULL)
		set_phase(connection, PHASE_SENDING);
	else /* a client may read a stream as slowly as it likes */
		lib.MHD_set_connection_option(connection->mhd, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
	enum MHD_Result result = lib.MHD_queue_response(connection->mhd, r->status, r->response);
	lib.MHD_destroy_response(r->response);
	r->response = NULL;
	return result;
}

/* The request is complete, or its connection was resumed. */
static enum MHD_Result receive_end(struct bc_request *r)
{
	const struct bc_server_options *options = &r->connection->server->options;

	if (r->refusal == NULL && !r->is_delivered && options->request == NULL)
		r->refusal = &stopping;
	if (r->refusal != NULL) {
		refuse(r);
	} else if (!r->is_delivered) {
		r->is_delivered = true;
		set_phase(r->connection, PHASE_WORKING);
		options->request(options->context, r);
	}
	if (r->has_response)
		return queue_response(r);
	suspend(r);
	return MHD_YES;
}

static bool has_body(struct MHD_Connection *mhd)
{
	return lib.MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Content-Length") != NULL ||
	       lib.MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Transfer-Encoding") != NULL;
}

static struct connection *connection_of(struct MHD_Connection *mhd)
{
	return lib.MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* Called for the head of a request, for each piece of its body, at its end, and again when it was
 * resumed. A response to the first call closes the connection; the body is then not read. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd, const char *path,
	const char *method, const char *version, const char *body, size_t *body_bytes, void **slot)
{
	const struct bc_server *server = context;
	struct bc_request *r = *slot;
	size_t n = *body_bytes;

	(void)version;
	if (r == NULL) {
		*slot = r = receive_head(connection_of(mhd), path, method);
		if (r == NULL)
			return MHD_NO;
		if (!server->options.ignores_bodies || !has_body(mhd))
			return MHD_YES;
	}
	if (n == 0)
		return receive_end(r);
	*body_bytes = 0;
	receive_body(r, body, n);
	return MHD_YES;
}

/* Called when the response was sent, or the connection is closed. */
static void on_completed(void *context, struct MHD_Connection *mhd, void **slot,
	enum MHD_RequestTerminationCode code)
{
	struct connection *connection = connection_of(mhd);
	struct bc_request *r = *slot;

	(void)context;
	(void)code;
	connection->request = NULL;
	set_phase(connection, PHASE_HEAD);
	if (r == NULL)
		return;
	*slot = NULL;
	/* The server is closing, but the receiver still uses the body and has to respond. */
	bool is_kept = r->is_delivered && !r->has_response;
	if (!is_kept)
		free_body(r);
	r->connection = NULL;
	if (r->stream != NULL)
		r->stream->request = NULL;
	if (r->response != NULL) {
		lib.MHD_destroy_response(r->response);
		r->response = NULL;
	}
	if (!is_kept)
		free(r);
}

/* ---- responding */

/* Makes the server run at a time, or earlier. Setting the timer costs a system call, so a timer
 * that is set for an earlier time stays. */
static void run_at(struct bc_server *server, uint64_t now_ns, uint64_t due_ns)
{
	uint64_t delay_ns = due_ns > now_ns ? due_ns - now_ns : 1; /* 0 would disarm it */
	const struct itimerspec timer = {.it_value = {.tv_sec = (time_t)(delay_ns / BC_NS_PER_S),
						 .tv_nsec = (long)(delay_ns % BC_NS_PER_S)}};

	if (due_ns >= server->timer_ns)
		return;
	server->timer_ns = due_ns;
	(void)timerfd_settime(server->timer_fd, 0, &timer, NULL);
}

/* Lets libmicrohttpd run again after the loop's other work. */
static void run_soon(struct bc_server *server)
{
	run_at(server, 0, 0);
}

static void resume(struct bc_request *r)
{
	if (!r->is_suspended)
		return;
	r->is_suspended = false;
	lib.MHD_resume_connection(r->connection->mhd);
	run_soon(r->connection->server);
}

/* libmicrohttpd fetches the response when it next handles the connection. */
static void set_response(struct bc_request *r, unsigned status, struct MHD_Response *response)
{
	r->has_response = true;
	r->status = status;
	r->response = response;
	resume(r);
}

/* A response being sent. */
struct response_text {
	size_t *total;  /* valid until libmicrohttpd has stopped */
	size_t counted; /* bytes of *total; 0: it is short */
	char *text;
};

static void free_response_text(void *context)
{
	struct response_text *t = context;

	*t->total -= t->counted;
	free(t->text);
	free(t);
}

/* Takes ownership of the text. Returns NULL if out of memory. */
static struct MHD_Response *make_response(char *text, size_t bytes, size_t *total)
{
	struct response_text *t = malloc(sizeof(*t));

	if (t == NULL) {
		free(text);
		return NULL;
	}
	*t = (struct response_text){total, bytes > BC_RESPONSE_SHORT_BYTES ? bytes : 0, text};
	*total += t->counted;
	struct MHD_Response *response = lib.MHD_create_response_from_buffer_with_free_callback_cls(
		bytes, text, free_response_text, t);
	if (response == NULL)
		free_response_text(t);
	return response;
}

void bc_request_respond(struct bc_request *r, unsigned status, const char *content_type, char *text,
	const char *const *headers)
{
	const struct refusal *refusal = NULL;

	if (r->connection == NULL) {
		free(text);
		free(r->body);
		free(r);
		return;
	}
	struct bc_server *server = r->connection->server;
	size_t *total = &server->long_bytes[r->connection->is_owner];
	size_t bytes = text != NULL ? strlen(text) : 0;
	if (text == NULL)
		refusal = &no_memory;
	else if (bytes > BC_RESPONSE_SHORT_BYTES && *total != 0 &&
		 *total + bytes > server->options.long_bytes_max)
		refusal = &too_many_long_responses;
	if (refusal != NULL) {
		free(text);
		set_response(r, refusal->status, make_refusal(refusal));
		return;
	}
	struct MHD_Response *response = make_response(text, bytes, total);
	if (response != NULL) {
		lib.MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
		for (; headers != NULL && *headers != NULL; headers += 2)
			lib.MHD_add_response_header(response, headers[0], headers[1]);
	}
	set_response(r, status, response);
}

/* ---- streams */

static ssize_t on_read(void *context, uint64_t position, char *out, size_t size)
{
	struct bc_stream *stream = context;

	(void)position;
	if (stream->is_client_gone || stream->request == NULL)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	size_t n = stream->ops->read(stream->context, out, size);
	if (n != 0)
		return (ssize_t)n;
	if (stream->ops->is_over != NULL && stream->ops->is_over(stream->context))
		return MHD_CONTENT_READER_END_OF_STREAM;
	suspend(stream->request);
	return 0;
}

static void on_free(void *context)
{
	struct bc_stream *stream = context;

	if (stream->request != NULL)
		stream->request->stream = NULL;
	if (stream->ops != NULL)
		stream->ops->closed(stream->context);
	free(stream);
}

struct bc_stream *bc_request_stream(struct bc_request *r, const char *content_type,
	const struct bc_stream_ops *ops, void *context)
{
	struct bc_stream *stream = r->connection != NULL ? calloc(1, sizeof(*stream)) : NULL;

	if (stream == NULL)
		return NULL;
	struct MHD_Response *response = lib.MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_read, stream, on_free);
	if (response == NULL) {
		free(stream);
		return NULL;
	}
	/* A stream turns off the connection's timeout, so the connection must end with it. */
	if (lib.MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type) !=
			MHD_YES ||
		lib.MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") !=
			MHD_YES) {
		lib.MHD_destroy_response(response); /* on_free() frees the stream; without ops it
						       does nothing else */
		return NULL;
	}
	stream->ops = ops;
	stream->context = context;
	stream->request = r;
	r->stream = stream;
	set_response(r, MHD_HTTP_OK, response);
	return stream;
}

void bc_stream_wake(struct bc_stream *stream)
{
	if (stream->request != NULL)
		resume(stream->request);
}

uint64_t bc_stream_served_ns(const struct bc_stream *stream)
{
	return stream->request != NULL ? stream->request->connection->server->served_ns : 0;
}

/* ---- accepting */

static int watch(struct bc_server *server, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};

	return epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

static void stop_watching(struct bc_server *server, int fd)
{
	(void)epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static bool peer_is_owner(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

/* Meanwhile, new clients wait in the kernel's queue. */
static void pause_accepting(struct bc_server *server)
{
	server->is_paused = true;
	stop_watching(server, server->options.listen_fd);
	server->check_ns = bc_now_ns() + PAUSE_NS;
}

/* Returns false if no more connections can be accepted now. */
static bool admit(struct bc_server *server, int fd)
{
	bool is_owner = server->options.is_local && peer_is_owner(fd);
	struct sockaddr_storage address = {.ss_family = AF_UNIX};
	socklen_t length = sizeof(address);

	int rc = add_connection(server, fd, is_owner);
	server->waiting_fd = rc == -EAGAIN ? fd : -1;
	if (rc == -EAGAIN) {
		pause_accepting(server);
		return false;
	}
	if (rc != 0) {
		close(fd);
		return true;
	}
	if (getpeername(fd, (struct sockaddr *)&address, &length) != 0)
		length = sizeof(address.ss_family);
	if (lib.MHD_add_connection(server->mhd, fd, (struct sockaddr *)&address, length) !=
			MHD_YES &&
		server->arriving != NULL)
		remove_connection(server->arriving);
	server->arriving = NULL;
	return true;
}

/* Returns false if no more connections can be accepted now, or none is waiting. */
static bool accept_one(struct bc_server *server)
{
	if (server->waiting_fd >= 0)
		return admit(server, server->waiting_fd);
	int fd = accept4(server->options.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		return admit(server, fd);
	if (errno == ECONNABORTED || errno == EINTR)
		return true;
	/* Out of descriptors or memory, refused by a firewall, ... */
	if (errno != EAGAIN)
		pause_accepting(server);
	return false;
}

/* Accepts a few connections, which are served before more are accepted. */
static void accept_some(struct bc_server *server)
{
	for (int i = 0; i < ACCEPT_MAX && accept_one(server); i++)
		;
	if (server->check_ns == UINT64_MAX)
		server->check_ns = bc_now_ns() + CHECK_NS;
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **slot,
	enum MHD_ConnectionNotificationCode code)
{
	struct bc_server *server = context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*slot = server->arriving;
		server->arriving->mhd = mhd;
		server->arriving = NULL;
	} else {
		remove_connection(*slot);
	}
}

/* ---- running */

static bool has_disconnected(const struct connection *c)
{
	struct pollfd fd = {.fd = c->fd};

	return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLHUP | POLLERR)) != 0;
}

/* libmicrohttpd does not notice that the client of a suspended stream disconnects. Its timeout is
 * for clients that do nothing: one that sends a byte now and then would keep its connection. */
static void check_connection(struct connection *c)
{
	uint64_t head_ns = c->server->options.head_s * BC_NS_PER_S;
	struct bc_request *r = c->request;

	if (r != NULL && r->is_suspended && r->stream != NULL && has_disconnected(c)) {
		r->stream->is_client_gone = true;
		resume(r);
	} else if (head_ns != 0 && c->phase == PHASE_HEAD && c->class != CLASS_CLOSING &&
		   bc_now_ns() - c->phase_start_ns >= head_ns) {
		close_connection(c);
	}
}

/* Called once a second while there are connections, and at the end of a pause. */
static void check_connections(struct bc_server *server)
{
	for (struct connection *c = server->first; c != NULL; c = c->next)
		check_connection(c);
	server->check_ns = server->first != NULL ? bc_now_ns() + CHECK_NS : UINT64_MAX;
	if (!server->is_paused)
		return;
	server->is_paused = false;
	(void)!watch(server, server->options.listen_fd);
	accept_some(server);
}

/* Sets the timer for the next run. */
static void schedule(struct bc_server *server)
{
	MHD_UNSIGNED_LONG_LONG due_ms;
	uint64_t now_ns = bc_now_ns();

	run_at(server, now_ns, server->check_ns);
	if (lib.MHD_get_timeout(server->mhd, &due_ms) != MHD_YES)
		return;
	if (due_ms == 0)
		run_soon(server);
	else
		run_at(server, now_ns, now_ns + due_ms * MS_NS);
}

int bc_server_fd(const struct bc_server *server)
{
	return server->epoll_fd;
}

void bc_server_run(struct bc_server *server)
{
	struct epoll_event events[3];
	int n = epoll_wait(server->epoll_fd, events, 3, 0);

	for (int i = 0; i < n; i++) {
		uint64_t expirations;
		if (events[i].data.fd == server->options.listen_fd)
			accept_some(server);
		if (events[i].data.fd == server->timer_fd &&
			read(server->timer_fd, &expirations, sizeof(expirations)) > 0)
			server->timer_ns = UINT64_MAX;
	}
	if (bc_now_ns() >= server->check_ns)
		check_connections(server);
	uint64_t start_ns = bc_thread_ns();
	lib.MHD_run(server->mhd);
	server->served_ns += bc_thread_ns() - start_ns;
	schedule(server);
}

void bc_server_listen(struct bc_server *server, int fd)
{
	accept_some(server);
	stop_watching(server, server->options.listen_fd);
	(void)!dup3(fd, server->options.listen_fd, O_CLOEXEC);
	close(fd);
	if (!server->is_paused)
		(void)!watch(server, server->options.listen_fd);
	run_soon(server);
}

unsigned bc_server_connections(const struct bc_server *server)
{
	return server->used[CLASS_OWNER] + server->used[CLASS_OTHER];
}

/* ---- start and stop */

bool bc_server_load(char *err, size_t errlen)
{
	return bc_late_library_load(&library, err, errlen);
}

static void resume_all(struct bc_server *server)
{
	for (struct connection *c = server->first; c != NULL; c = c->next)
		if (c->request != NULL)
			resume(c->request);
}

/* Frees what bc_server_start() has opened. */
static void free_server(struct bc_server *server)
{
	if (server->mhd != NULL)
		lib.MHD_stop_daemon(server->mhd);
	assert(server->first == NULL);
	if (server->waiting_fd >= 0)
		close(server->waiting_fd);
	if (server->timer_fd >= 0)
		close(server->timer_fd);
	if (server->epoll_fd >= 0)
		close(server->epoll_fd);
	free(server);
}

void bc_server_close(struct bc_server *server)
{
	if (server == NULL)
		return;
	/* Streams may still send something, such as why they end. New requests get a 503. */
	server->options.request = NULL;
	for (unsigned runs = 0; runs < LAST_RUNS; runs++) {
		resume_all(server);
		lib.MHD_run(server->mhd);
	}
	resume_all(server);
	free_server(server);
}

/* Called with the target of a request before it is decoded. */
static void *on_target(void *context, const char *target, struct MHD_Connection *mhd)
{
	(void)context;
	connection_of(mhd)->has_zero_byte = strstr(target, "%00") != NULL;
	return NULL;
}

/* libmicrohttpd's messages are about faulty clients, which do not belong in the log. */
static void ignore_log(void *context, const char *format, va_list args)
{
	(void)context;
	(void)format;
	(void)args;
}

/* Without MHD_USE_NO_THREAD_SAFETY, libmicrohttpd 1.0 adds a connection only in its next run, and
 * does not report an error if that fails. */
static struct MHD_Daemon *start_mhd(struct bc_server *server)
{
	const struct bc_server_options *options = &server->options;
	unsigned connections = options->connections_max + BC_SERVER_OWNER_CONNECTIONS +
			       REFUSED_MAX + CLOSING_MAX;

	return lib.MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG |
					    MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_THREAD_SAFETY,
		0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL,
		MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_TIMEOUT,
		options->timeout_s != 0 ? options->timeout_s : TIMEOUT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, server, MHD_OPTION_NOTIFY_CONNECTION, on_connection, server,
		MHD_OPTION_END);
}

static int open_descriptors(struct bc_server *server)
{
	const union MHD_DaemonInfo *info = lib.MHD_get_daemon_info(
		server->mhd, MHD_DAEMON_INFO_EPOLL_FD);

	if (info == NULL)
		return -EIO;
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (server->epoll_fd < 0)
		return -errno;
	server->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (server->timer_fd < 0)
		return -errno;
	int rc = watch(server, info->epoll_fd);
	if (rc == 0)
		rc = watch(server, server->timer_fd);
	return rc == 0 ? watch(server, server->options.listen_fd) : rc;
}

int bc_server_start(struct bc_server **result, const struct bc_server_options *options)
{
	assert(options->connections_max >= 1 && options->connections_max <= CONNECTIONS_MAX);
	struct bc_server *server = calloc(1, sizeof(*server));

	if (server == NULL)
		return -ENOMEM;
	server->options = *options;
	if (server->options.long_bytes_max == 0)
		server->options.long_bytes_max = BC_RESPONSE_LONG_BYTES;
	server->max[CLASS_OTHER] = options->connections_max;
	server->max[CLASS_OWNER] = options->owner_max != 0 ? options->owner_max
							   : BC_SERVER_OWNER_CONNECTIONS;
	server->check_ns = UINT64_MAX;
	server->timer_ns = UINT64_MAX;
	server->waiting_fd = -1;
	server->epoll_fd = -1;
	server->timer_fd = -1;
	server->mhd = start_mhd(server);
	int rc = server->mhd != NULL ? open_descriptors(server) : -EIO;
	if (rc != 0) {
		free_server(server);
		return rc;
	}
	*result = server;
	return 0;
}
