#include "daemon/http/request.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/http/request_internal.h"

/* What a client of HTTP/1.0 is sent of a stream at a time. */
#define BLOCK_BYTES 16384

struct refusal {
	unsigned status;
	const char *body;
};

/* The server's own answers. */
#define REFUSAL(name, status, sentence) \
	static const struct refusal name = {status, "{\"error\":\"" sentence "\"}\n"}

REFUSAL(zero_byte, MHD_HTTP_BAD_REQUEST, "the path or the query has a zero byte in it");
REFUSAL(long_head, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE,
	"the headers are too long: the limit is 16 KiB");
REFUSAL(long_body, MHD_HTTP_CONTENT_TOO_LARGE, "the body is too long: the limit is 64 KiB");
REFUSAL(no_memory, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory");
REFUSAL(no_place, MHD_HTTP_SERVICE_UNAVAILABLE,
	"there are too many connections; try again later, or close others");
REFUSAL(many_bodies, MHD_HTTP_SERVICE_UNAVAILABLE,
	"too many requests with a body at a time; try again later");
REFUSAL(many_answers, MHD_HTTP_SERVICE_UNAVAILABLE,
	"there are too many long answers at a time; try again later");
REFUSAL(stopping, MHD_HTTP_SERVICE_UNAVAILABLE, "buscapd is stopping");

struct bc_request {
	struct bc_connection *connection; /* NULL: libmicrohttpd is done with the request */
	const char *method;
	const char *path;
	char *body; /* NULL, or BC_REQUEST_BODY_BYTES and a zero */
	size_t body_bytes;
	const struct refusal *refusal; /* the answer once all has come; NULL: the receiver's */
	bool is_handed_on;
	bool is_answered; /* response is what libmicrohttpd takes next */
	bool is_suspended;
	unsigned status;
	struct MHD_Response *response; /* NULL although it is answered: memory ran out */
	struct bc_push *push;          /* NULL: no stream */
};

struct bc_push {
	struct bc_request *request;    /* NULL: libmicrohttpd is done with it */
	const struct bc_push_ops *ops; /* NULL: it never began */
	void *context;
	bool has_gone; /* the client */
};

/* What a request says */

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
		MHD_lookup_connection_value_n(r->connection->mhd, MHD_GET_ARGUMENT_KIND, name,
			strlen(name), &value, NULL) != MHD_YES)
		return NULL;
	return value != NULL ? value : "";
}

struct walk {
	void *context;
	bool (*each)(void *context, const char *name, const char *value);
};

static enum MHD_Result on_value(
	void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct walk *walk = context;

	(void)kind;
	return walk->each(walk->context, name != NULL ? name : "", value != NULL ? value : "")
		       ? MHD_YES
		       : MHD_NO;
}

void bc_request_each_query(const struct bc_request *r, void *context,
	bool (*each)(void *context, const char *name, const char *value))
{
	struct walk walk = {.context = context, .each = each};

	if (r->connection != NULL)
		MHD_get_connection_values(
			r->connection->mhd, MHD_GET_ARGUMENT_KIND, on_value, &walk);
}

const char *bc_request_body(const struct bc_request *r, size_t *bytes)
{
	*bytes = r->body_bytes;
	return r->body != NULL ? r->body : "";
}

const char *bc_request_content_type(const struct bc_request *r)
{
	if (r->connection == NULL)
		return NULL;
	return MHD_lookup_connection_value(
		r->connection->mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE);
}

bool bc_request_is_owner(const struct bc_request *r)
{
	return r->connection != NULL && r->connection->is_owner;
}

/* How it comes */

/* The path of a target that names its server as well, as a request to a proxy does: servers must
 * accept it (RFC 9112, 3.2.2). The server named is us, by whatever name. */
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

static enum MHD_Result receive_head(
	struct bc_connection *connection, const char *path, const char *method, void **slot)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		connection->mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	struct bc_request *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return MHD_NO;
	*slot = r;
	r->connection = connection;
	r->path = path_of_target(path);
	r->method = method;
	connection->request = r;
	if (connection->place == BC_PLACE_REFUSED)
		r->refusal = &no_place;
	else if (info != NULL && info->header_size > BC_REQUEST_HEAD_BYTES)
		r->refusal = &long_head;
	else if (connection->has_zero)
		r->refusal = &zero_byte;
	return MHD_YES;
}

static unsigned *bodies_of(const struct bc_request *r)
{
	return &r->connection->all->bodies[r->connection->is_owner];
}

static void free_body(struct bc_request *r)
{
	*bodies_of(r) -= r->body != NULL;
	free(r->body);
	r->body = NULL;
}

/* Bodies that are to be refused are read to their end, or the client would not be there for the
 * answer. */
static enum MHD_Result receive_body(struct bc_request *r, const char *bytes, size_t n)
{
	if (r->refusal == NULL && n > BC_REQUEST_BODY_BYTES - r->body_bytes)
		r->refusal = &long_body;
	if (r->refusal == NULL && r->body == NULL) {
		if (*bodies_of(r) == BC_REQUEST_BODIES)
			r->refusal = &many_bodies;
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

static struct MHD_Response *make_refusal(const struct refusal *refusal)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(refusal->body), (void *)refusal->body, MHD_RESPMEM_PERSISTENT);

	if (response != NULL)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
	return response;
}

static void refuse(struct bc_request *r, const struct refusal *refusal)
{
	r->status = refusal->status;
	r->response = make_refusal(refusal);
	r->is_answered = true;
	if (r->response != NULL)
		MHD_add_response_header(r->response, MHD_HTTP_HEADER_CONNECTION, "close");
}

static enum MHD_Result send_answer(struct bc_request *r)
{
	struct bc_connection *connection = r->connection;

	free_body(r);
	if (r->response == NULL)
		return MHD_NO;
	if (r->push == NULL)
		bc_connection_set_phase(connection, BC_PHASE_SENDING);
	else /* a stream may be read as slowly as its client likes */
		MHD_set_connection_option(connection->mhd, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
	enum MHD_Result result = MHD_queue_response(connection->mhd, r->status, r->response);
	MHD_destroy_response(r->response);
	r->response = NULL;
	return result;
}

static enum MHD_Result receive_end(struct bc_request *r)
{
	const struct bc_connections *all = r->connection->all;

	if (!r->is_handed_on) {
		bc_connection_set_phase(r->connection, BC_PHASE_WORKING);
		if (r->refusal == NULL && all->request == NULL)
			r->refusal = &stopping;
		r->is_handed_on = true;
		if (r->refusal != NULL)
			refuse(r, r->refusal);
		else
			all->request(all->context, r);
	}
	if (r->is_answered)
		return send_answer(r);
	r->is_suspended = true;
	MHD_suspend_connection(r->connection->mhd);
	return MHD_YES;
}

enum MHD_Result bc_request_part(struct bc_connection *connection, const char *path,
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
	/* The receiver still has to answer it and keeps the body: the server is being closed. */
	bool is_kept = r->is_handed_on && !r->is_answered;
	if (!is_kept)
		free_body(r);
	r->connection = NULL;
	if (r->push != NULL)
		r->push->request = NULL;
	if (r->response != NULL) {
		MHD_destroy_response(r->response);
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
	MHD_resume_connection(r->connection->mhd);
}

/* Its answer */

/* The answer is there: libmicrohttpd takes it when it next looks at the connection. */
static void answered(struct bc_request *r, unsigned status, struct MHD_Response *response)
{
	r->is_answered = true;
	r->status = status;
	r->response = response;
	if (r->is_suspended) {
		struct bc_connections *all = r->connection->all;
		bc_request_resume(r);
		all->turn_soon(all->server);
	}
}

/* A text that is counted for as long as it is being sent. */
struct long_answer {
	size_t *counted; /* which is there until libmicrohttpd has stopped */
	size_t bytes;
	char *text;
};

static void free_long_answer(void *context)
{
	struct long_answer *answer = context;

	*answer->counted -= answer->bytes;
	free(answer->text);
	free(answer);
}

/* Takes the text. Returns NULL when memory ran out. */
static struct MHD_Response *make_long(size_t *counted, char *text, size_t bytes)
{
	struct long_answer *answer = malloc(sizeof(*answer));

	if (answer == NULL) {
		free(text);
		return NULL;
	}
	*answer = (struct long_answer){counted, bytes, text};
	*counted += bytes;
	struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
		bytes, text, free_long_answer, answer);
	if (response == NULL)
		free_long_answer(answer);
	return response;
}

/* The same, of any length. */
static struct MHD_Response *make_response(char *text, size_t bytes, size_t *counted)
{
	if (bytes > BC_ANSWER_SHORT_BYTES)
		return make_long(counted, text, bytes);
	struct MHD_Response *response = MHD_create_response_from_buffer(
		bytes, text, MHD_RESPMEM_MUST_FREE);
	if (response == NULL)
		free(text);
	return response;
}

void bc_request_answer(struct bc_request *r, unsigned status, const char *content_type, char *text,
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
	const struct bc_connections *all = r->connection->all;
	size_t *counted = &r->connection->all->answer_bytes[r->connection->is_owner];
	size_t bytes = text != NULL ? strlen(text) : 0;
	if (text == NULL)
		refusal = &no_memory;
	else if (bytes > BC_ANSWER_SHORT_BYTES && *counted != 0 &&
		 *counted + bytes > all->long_bytes)
		refusal = &many_answers;
	if (refusal != NULL) {
		free(text);
		answered(r, refusal->status, make_refusal(refusal));
		return;
	}
	response = make_response(text, bytes, counted);
	if (response != NULL) {
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
		if (allow != NULL)
			MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allow);
	}
	answered(r, status, response);
}

/* Streams */

static ssize_t on_read(void *context, uint64_t position, char *out, size_t room)
{
	struct bc_push *push = context;

	(void)position;
	if (push->has_gone || push->request == NULL)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	size_t n = push->ops->read(push->context, out, room);
	if (n != 0)
		return (ssize_t)n;
	if (push->ops->is_over(push->context))
		return MHD_CONTENT_READER_END_OF_STREAM;
	push->request->is_suspended = true;
	MHD_suspend_connection(push->request->connection->mhd);
	return 0;
}

static void on_free(void *context)
{
	struct bc_push *push = context;

	if (push->request != NULL)
		push->request->push = NULL;
	if (push->ops != NULL)
		push->ops->closed(push->context);
	free(push);
}

struct bc_push *bc_request_stream(struct bc_request *r, const char *content_type,
	const struct bc_push_ops *ops, void *context)
{
	struct bc_push *push = r->connection != NULL ? calloc(1, sizeof(*push)) : NULL;

	if (push == NULL)
		return NULL;
	struct MHD_Response *response = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, BLOCK_BYTES, on_read, push, on_free);
	if (response == NULL) {
		free(push);
		return NULL;
	}
	/* The time-out of the connection is off from then on, so it ends with the stream. */
	if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type) !=
			MHD_YES ||
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close") != MHD_YES) {
		MHD_destroy_response(response); /* frees it by on_free(): ops isn't set yet */
		return NULL;
	}
	push->ops = ops;
	push->context = context;
	push->request = r;
	r->push = push;
	answered(r, MHD_HTTP_OK, response);
	return push;
}

void bc_push_wake(struct bc_push *push)
{
	struct bc_request *r = push->request;

	if (r == NULL || !r->is_suspended)
		return;
	bc_request_resume(r);
	r->connection->all->turn_soon(r->connection->all->server);
}

uint64_t bc_push_served_ns(const struct bc_push *push)
{
	return push->request != NULL ? push->request->connection->all->served_ns : 0;
}

bool bc_request_is_waiting_stream(const struct bc_request *r)
{
	return r->push != NULL && r->is_suspended;
}

void bc_request_end_stream(struct bc_request *r)
{
	r->push->has_gone = true;
	bc_push_wake(r->push);
}
