#include "daemon/request.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/exchange.h"

/* What a client of HTTP/1.0 is sent of a stream at a time. */
#define BLOCK_BYTES 16384

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

/* Its answer */

static void let_go(struct bc_request *r)
{
	free(r->body);
	free(r);
}

/* The answer is there: libmicrohttpd takes it when it next looks at the connection. */
static void answered(struct bc_request *r, unsigned status, struct MHD_Response *response)
{
	r->is_answered = true;
	r->status = status;
	r->response = response;
	if (r->is_suspended) {
		struct bc_server *server = r->server;
		bc_exchange_resume(r);
		bc_server_turn_soon(server);
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

static bool is_too_much(const struct bc_connections *all, size_t counted, size_t bytes)
{
	return counted != 0 && counted + bytes > all->long_bytes;
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
	if (bytes > BC_SERVER_SHORT_BYTES)
		return make_long(counted, text, bytes);
	struct MHD_Response *response = MHD_create_response_from_buffer(
		bytes, text, MHD_RESPMEM_MUST_FREE);
	if (response == NULL)
		free(text);
	return response;
}

static struct MHD_Response *make_error(unsigned status)
{
	static char no_memory[] = "{\"error\":\"there is no memory for this now\"}\n";
	static char too_much[] =
		"{\"error\":\"there are too many long answers at a time; try again later\"}\n";
	char *text = status == MHD_HTTP_SERVICE_UNAVAILABLE ? too_much : no_memory;

	return MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_PERSISTENT);
}

void bc_request_answer(struct bc_request *r, unsigned status, const char *content_type, char *text,
	const char *allow)
{
	struct MHD_Response *response;

	if (r->connection == NULL) {
		free(text);
		let_go(r);
		return;
	}
	struct bc_connections *all = r->connection->all;
	size_t *counted = &all->answer_bytes[r->connection->is_owner];
	size_t bytes = text != NULL ? strlen(text) : 0;
	bool is_refused = bytes > BC_SERVER_SHORT_BYTES && is_too_much(all, *counted, bytes);
	if (text == NULL || is_refused) {
		free(text);
		status = is_refused ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_INTERNAL_SERVER_ERROR;
		content_type = "application/json";
		response = make_error(status);
	} else {
		response = make_response(text, bytes, counted);
	}
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
	/* The time-out of the connection is off from now on, so it ends with the stream. */
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
	bc_exchange_resume(r);
	bc_server_turn_soon(r->server);
}

uint64_t bc_push_served_ns(const struct bc_push *push)
{
	return push->request != NULL ? bc_server_served_ns(push->request->server) : 0;
}

bool bc_exchange_is_waiting_stream(const struct bc_request *r)
{
	return r->push != NULL && r->is_suspended;
}

void bc_exchange_end_stream(struct bc_request *r)
{
	r->push->has_gone = true;
	bc_push_wake(r->push);
}
