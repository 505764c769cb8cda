#include "daemon/http/request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/http/mhd.h"
#include "daemon/http/request_internal.h"

/* A stream is sent to HTTP/1.0 clients in blocks of this size. */
#define BLOCK_BYTES 16384

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
REFUSAL(stopping, MHD_HTTP_SERVICE_UNAVAILABLE, "buscapd is stopping");

struct bc_request {
	struct bc_connection *connection; /* NULL: libmicrohttpd is done with the request */
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

/* The contents of a request */

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
		bc_mhd.MHD_lookup_connection_value_n(r->connection->mhd, MHD_GET_ARGUMENT_KIND,
			name, strlen(name), &value, NULL) != MHD_YES)
		return NULL;
	return value != NULL ? value : "";
}

struct query_visitor {
	void *context;
	bool (*each)(void *context, const char *name, const char *value);
};

static enum MHD_Result on_value(
	void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct query_visitor *visitor = context;

	(void)kind;
	return visitor->each(visitor->context, name != NULL ? name : "", value != NULL ? value : "")
		       ? MHD_YES
		       : MHD_NO;
}

void bc_request_each_query(const struct bc_request *r, void *context,
	bool (*each)(void *context, const char *name, const char *value))
{
	struct query_visitor visitor = {.context = context, .each = each};

	if (r->connection != NULL)
		bc_mhd.MHD_get_connection_values(
			r->connection->mhd, MHD_GET_ARGUMENT_KIND, on_value, &visitor);
}

const char *bc_request_body(const struct bc_request *r, size_t *bytes)
{
	*bytes = r->body_bytes;
	return r->body != NULL ? r->body : "";
}

const char *bc_request_header(const struct bc_request *r, const char *name)
{
	if (r->connection == NULL)
		return NULL;
	return bc_mhd.MHD_lookup_connection_value(r->connection->mhd, MHD_HEADER_KIND, name);
}

bool bc_request_is_owner(const struct bc_request *r)
{
	return r->connection != NULL && r->connection->is_owner;
}

/* Receiving */

/* Strips scheme and host from a target in absolute form, as sent to a proxy. Servers must accept
 * this form (RFC 9112, 3.2.2). Any host name is accepted. */
static const char *path_of_target(const char *target)
{
	size_t scheme = strncasecmp(target, "http://", 7) == 0    ? 7
			: strncasecmp(target, "https://", 8) == 0 ? 8
								  : 0;

	if (scheme == 0)
		return target;
	const char *path = strchr(target + scheme, '/');
	return path != NULL ? path : "/";
}

static void deliver(struct bc_request *r)
{
	const struct bc_connections *connections = r->connection->connections;

	r->is_delivered = true;
	bc_connection_set_phase(r->connection, BC_PHASE_WORKING);
	connections->request(connections->context, r);
}

static enum MHD_Result receive_head(
	struct bc_connection *connection, const char *path, const char *method, void **slot)
{
	const union MHD_ConnectionInfo *info = bc_mhd.MHD_get_connection_info(
		connection->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	struct bc_request *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return MHD_NO;
	*slot = r;
	r->connection = connection;
	r->path = path_of_target(path);
	r->method = method;
	connection->request = r;
	if (connection->class == BC_CLASS_REFUSED)
		r->refusal = &too_many_connections;
	else if (info != NULL && info->header_size > BC_REQUEST_HEAD_BYTES)
		r->refusal = &long_head;
	else if (connection->has_zero_byte)
		r->refusal = &zero_byte;
	return MHD_YES;
}

static unsigned *bodies_of(const struct bc_request *r)
{
	return &r->connection->connections->bodies[r->connection->is_owner];
}

static void free_body(struct bc_request *r)
{
	*bodies_of(r) -= r->body != NULL;
	free(r->body);
	r->body = NULL;
}

/* A refused body is still read to its end: most clients read the response only after they have sent
 * everything. */
static enum MHD_Result receive_body(struct bc_request *r, const char *bytes, size_t n)
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
		return MHD_YES;
	memcpy(r->body + r->body_bytes, bytes, n);
	r->body_bytes += n;
	r->body[r->body_bytes] = '\0';
	return MHD_YES;
}

static void suspend(struct bc_request *r)
{
	r->is_suspended = true;
	bc_mhd.MHD_suspend_connection(r->connection->mhd);
}

static struct MHD_Response *make_refusal(const struct refusal *refusal)
{
	struct MHD_Response *response = bc_mhd.MHD_create_response_from_buffer(
		strlen(refusal->body), (void *)refusal->body, MHD_RESPMEM_PERSISTENT);

	if (response != NULL)
		bc_mhd.MHD_add_response_header(
			response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
	return response;
}

static void refuse(struct bc_request *r, const struct refusal *refusal)
{
	r->status = refusal->status;
	r->response = make_refusal(refusal);
	r->has_response = true;
	if (r->response != NULL)
		bc_mhd.MHD_add_response_header(r->response, MHD_HTTP_HEADER_CONNECTION, "close");
}

static enum MHD_Result queue_response(struct bc_request *r)
{
	struct bc_connection *connection = r->connection;

	free_body(r);
	if (r->response == NULL)
		return MHD_NO;
	if (r->stream == NULL)
		bc_connection_set_phase(connection, BC_PHASE_SENDING);
	else /* a client may read a stream as slowly as it likes */
		bc_mhd.MHD_set_connection_option(
			connection->mhd, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
	enum MHD_Result result = bc_mhd.MHD_queue_response(connection->mhd, r->status, r->response);
	bc_mhd.MHD_destroy_response(r->response);
	r->response = NULL;
	return result;
}

static enum MHD_Result receive_end(struct bc_request *r)
{
	if (r->refusal == NULL && !r->is_delivered && r->connection->connections->request == NULL)
		r->refusal = &stopping;
	if (r->refusal != NULL)
		refuse(r, r->refusal);
	else if (!r->is_delivered)
		deliver(r);
	if (r->has_response)
		return queue_response(r);
	suspend(r);
	return MHD_YES;
}

enum MHD_Result bc_request_receive(struct bc_connection *connection, const char *path,
	const char *method, const char *body, size_t *body_bytes, void **request)
{
	struct bc_request *r = *request;
	size_t n = *body_bytes;

	if (r == NULL)
		return receive_head(connection, path, method, request);
	if (n == 0)
		return receive_end(r);
	*body_bytes = 0;
	return receive_body(r, body, n);
}

void bc_request_completed(struct bc_request *r)
{
	if (r == NULL)
		return;
	/* The server is closing, but the receiver still uses the body and has to respond. */
	bool is_kept = r->is_delivered && !r->has_response;
	if (!is_kept)
		free_body(r);
	r->connection = NULL;
	if (r->stream != NULL)
		r->stream->request = NULL;
	if (r->response != NULL) {
		bc_mhd.MHD_destroy_response(r->response);
		r->response = NULL;
	}
	if (!is_kept)
		free(r);
}

void bc_request_resume(struct bc_request *r)
{
	if (!r->is_suspended)
		return;
	r->is_suspended = false;
	bc_mhd.MHD_resume_connection(r->connection->mhd);
}

/* Responding */

/* Lets libmicrohttpd handle the connection again, if it is suspended. */
static void resume_soon(struct bc_request *r)
{
	struct bc_connections *connections = r->connection->connections;

	if (!r->is_suspended)
		return;
	bc_request_resume(r);
	connections->run_soon(connections->server);
}

/* libmicrohttpd fetches the response when it next handles the connection. */
static void set_response(struct bc_request *r, unsigned status, struct MHD_Response *response)
{
	r->has_response = true;
	r->status = status;
	r->response = response;
	resume_soon(r);
}

/* A response that counts against the memory limit while it is being sent. */
struct long_response {
	size_t *total; /* valid until libmicrohttpd has stopped */
	size_t bytes;
	char *text;
};

static void free_long_response(void *context)
{
	struct long_response *counted = context;

	*counted->total -= counted->bytes;
	free(counted->text);
	free(counted);
}

/* Takes ownership of the text. Returns NULL if out of memory. */
static struct MHD_Response *make_long_response(size_t *total, char *text, size_t bytes)
{
	struct long_response *counted = malloc(sizeof(*counted));

	if (counted == NULL) {
		free(text);
		return NULL;
	}
	*counted = (struct long_response){total, bytes, text};
	*total += bytes;
	struct MHD_Response *response =
		bc_mhd.MHD_create_response_from_buffer_with_free_callback_cls(
			bytes, text, free_long_response, counted);
	if (response == NULL)
		free_long_response(counted);
	return response;
}

/* The same for any length. */
static struct MHD_Response *make_response(char *text, size_t bytes, size_t *total)
{
	if (bytes > BC_RESPONSE_SHORT_BYTES)
		return make_long_response(total, text, bytes);
	struct MHD_Response *response = bc_mhd.MHD_create_response_from_buffer(
		bytes, text, MHD_RESPMEM_MUST_FREE);
	if (response == NULL)
		free(text);
	return response;
}

void bc_request_respond(struct bc_request *r, unsigned status, const char *content_type, char *text,
	const char *allow)
{
	const struct refusal *refusal = NULL;
	struct MHD_Response *response;

	if (r->connection == NULL) {
		free(text);
		free(r->body);
		free(r);
		return;
	}
	struct bc_connections *connections = r->connection->connections;
	size_t *total = &connections->long_bytes[r->connection->is_owner];
	size_t bytes = text != NULL ? strlen(text) : 0;
	if (text == NULL)
		refusal = &no_memory;
	else if (bytes > BC_RESPONSE_SHORT_BYTES && *total != 0 &&
		 *total + bytes > connections->long_bytes_max)
		refusal = &too_many_long_responses;
	if (refusal != NULL) {
		free(text);
		set_response(r, refusal->status, make_refusal(refusal));
		return;
	}
	response = make_response(text, bytes, total);
	if (response != NULL) {
		bc_mhd.MHD_add_response_header(
			response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
		if (allow != NULL)
			bc_mhd.MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allow);
	}
	set_response(r, status, response);
}

/* Streams */

static ssize_t on_read(void *context, uint64_t position, char *out, size_t size)
{
	struct bc_stream *stream = context;

	(void)position;
	if (stream->is_client_gone || stream->request == NULL)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	size_t n = stream->ops->read(stream->context, out, size);
	if (n != 0)
		return (ssize_t)n;
	if (stream->ops->is_over(stream->context))
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
	struct MHD_Response *response = bc_mhd.MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_read, stream, on_free);
	if (response == NULL) {
		free(stream);
		return NULL;
	}
	/* A stream turns off the connection's timeout, so the connection must end with it. */
	if (bc_mhd.MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type) !=
			MHD_YES ||
		bc_mhd.MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") !=
			MHD_YES) {
		bc_mhd.MHD_destroy_response(response); /* on_free() frees the stream; without ops it
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
		resume_soon(stream->request);
}

uint64_t bc_stream_served_ns(const struct bc_stream *stream)
{
	return stream->request != NULL ? stream->request->connection->connections->served_ns : 0;
}

bool bc_request_is_suspended(const struct bc_request *r)
{
	return r->is_suspended && r->stream != NULL;
}

void bc_request_disconnected(struct bc_request *r)
{
	r->stream->is_client_gone = true;
	bc_stream_wake(r->stream);
}
