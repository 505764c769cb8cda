#include "daemon/exchange.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/clock.h"

/* A body that is too long is read to its end, so that the client is there for the answer; but not
 * further than this. */
#define DISCARD_MAX_BYTES (UINT64_C(1) << 20)

static const char *refusal_text(unsigned status)
{
	switch (status) {
	case MHD_HTTP_BAD_REQUEST:
		return "the path or the query has a zero byte in it";
	case MHD_HTTP_CONTENT_TOO_LARGE:
		return "the body is too long: 64 KiB are taken";
	case MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE:
		return "the headers are too long: 16 KiB are taken";
	case MHD_HTTP_SERVICE_UNAVAILABLE:
		return "there are too many long bodies at a time; try again later";
	default:
		return "there is no memory for this now";
	}
}

static enum MHD_Result send_error(struct MHD_Connection *mhd, unsigned status, const char *sentence)
{
	char *text = NULL;

	if (asprintf(&text, "{\"error\":\"%s\"}\n", sentence) < 0)
		return MHD_NO;
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(text), text, MHD_RESPMEM_MUST_FREE);
	if (response == NULL) {
		free(text);
		return MHD_NO;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
	enum MHD_Result result = MHD_queue_response(mhd, status, response);
	MHD_destroy_response(response);
	return result;
}

/* The client is to take some of the answer within each such time, or libmicrohttpd ends it. */
static void time_answer(const struct bc_request *r)
{
	uint64_t patience_ns = r->connection->all->patience_ns;

	MHD_set_connection_option(r->connection->mhd, MHD_CONNECTION_OPTION_TIMEOUT,
		(unsigned)((patience_ns + 999999999) / 1000000000));
}

static enum MHD_Result send_refusal(const struct bc_request *r)
{
	time_answer(r);
	return send_error(r->connection->mhd, r->refusal, refusal_text(r->refusal));
}

static enum MHD_Result find_zero(void *context, enum MHD_ValueKind kind, const char *key,
	size_t key_bytes, const char *value, size_t value_bytes)
{
	bool *has_zero = context;

	(void)kind;
	*has_zero = *has_zero || (key != NULL && strlen(key) != key_bytes) ||
		    (value != NULL && strlen(value) != value_bytes);
	return MHD_YES;
}

/* What the head alone says against a request; 0: nothing. */
static unsigned judge_head(struct bc_connection *connection, uint64_t *announced)
{
	struct MHD_Connection *mhd = connection->mhd;
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(
		mhd, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	const char *length = MHD_lookup_connection_value(
		mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
	bool has_zero = connection->has_bad_path;

	/* libmicrohttpd has refused a length that is no number. */
	*announced = length != NULL ? strtoull(length, NULL, 10) : 0;
	MHD_get_connection_values_n(mhd, MHD_GET_ARGUMENT_KIND, find_zero, &has_zero);
	if (info != NULL && info->header_size > BC_SERVER_HEAD_BYTES)
		return MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE;
	if (has_zero)
		return MHD_HTTP_BAD_REQUEST;
	return *announced > BC_SERVER_BODY_BYTES ? MHD_HTTP_CONTENT_TOO_LARGE : 0;
}

/* The path of a target that names its server as well, as a request to a proxy does: it is to be
 * taken from anybody (RFC 9112, 3.2.2). The server named is us, by whatever name. */
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

static enum MHD_Result begin(struct bc_server *server, struct bc_connection *connection,
	const char *path, const char *method, void **slot)
{
	struct bc_request *r = calloc(1, sizeof(*r));
	uint64_t announced;

	if (r == NULL)
		return MHD_NO;
	*slot = r;
	r->server = server;
	r->connection = connection;
	r->path = path_of_target(path);
	r->method = method;
	connection->request = r;
	r->refusal = judge_head(connection, &announced);
	/* Answered now, libmicrohttpd reads nothing more of it and ends the connection. */
	if (r->refusal != 0 &&
		(r->refusal != MHD_HTTP_CONTENT_TOO_LARGE || announced > DISCARD_MAX_BYTES)) {
		bc_connection_whole(connection, bc_now_ns());
		return send_refusal(r);
	}
	return MHD_YES;
}

static enum MHD_Result discard(struct bc_request *r, size_t n)
{
	r->discarded_bytes += n;
	if (r->discarded_bytes <= DISCARD_MAX_BYTES)
		return MHD_YES;
	/* libmicrohttpd takes no answer in the middle of a body. */
	bc_connection_tell(
		r->connection, "413 Content Too Large", refusal_text(MHD_HTTP_CONTENT_TOO_LARGE));
	return MHD_NO;
}

static size_t *bodies_of(const struct bc_request *r)
{
	return &r->connection->all->body_bytes[r->connection->is_owner];
}

static void free_body(struct bc_request *r)
{
	*bodies_of(r) -= r->body_room;
	free(r->body);
	r->body = NULL;
	r->body_room = 0;
}

/* Returns 0, or the status to refuse the request with. */
static unsigned grow_body(struct bc_request *r, size_t room)
{
	if (room - r->body_room > BC_SERVER_BODIES_BYTES - *bodies_of(r))
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	char *body = realloc(r->body, room);
	if (body == NULL)
		return MHD_HTTP_INTERNAL_SERVER_ERROR;
	*bodies_of(r) += room - r->body_room;
	r->body = body;
	r->body_room = room;
	return 0;
}

/* A piece of the body. */
static enum MHD_Result take(struct bc_request *r, const char *bytes, size_t n)
{
	if (r->refusal != 0)
		return discard(r, n);
	if (n > BC_SERVER_BODY_BYTES - r->body_bytes) {
		r->refusal = MHD_HTTP_CONTENT_TOO_LARGE;
		return discard(r, n);
	}
	if (r->body_bytes + n >= r->body_room) {
		size_t room = 2 * (r->body_bytes + n) + 256;
		if (room > BC_SERVER_BODY_BYTES + 1)
			room = BC_SERVER_BODY_BYTES + 1;
		r->refusal = grow_body(r, room);
		if (r->refusal != 0)
			return discard(r, n);
	}
	memcpy(r->body + r->body_bytes, bytes, n);
	r->body_bytes += n;
	r->body[r->body_bytes] = '\0';
	return MHD_YES;
}

static enum MHD_Result send_answer(struct bc_request *r)
{
	struct MHD_Connection *mhd = r->connection->mhd;

	free_body(r);
	r->connection->since_ns = bc_now_ns();
	if (r->response == NULL)
		return MHD_NO;
	if (r->push == NULL)
		time_answer(r);
	enum MHD_Result result = MHD_queue_response(mhd, r->status, r->response);
	MHD_destroy_response(r->response);
	r->response = NULL;
	return result;
}

static enum MHD_Result finish(const struct bc_server_options *options, struct bc_request *r)
{
	if (!r->is_handed_on) {
		bc_connection_whole(r->connection, bc_now_ns());
		if (r->refusal != 0)
			return send_refusal(r);
		if (options->request == NULL) {
			r->refusal = MHD_HTTP_SERVICE_UNAVAILABLE;
			time_answer(r);
			return send_error(r->connection->mhd, r->refusal, "buscapd is stopping");
		}
		r->is_handed_on = true;
		options->request(options->context, r);
	}
	if (r->is_answered)
		return send_answer(r);
	r->is_suspended = true;
	MHD_suspend_connection(r->connection->mhd);
	return MHD_YES;
}

enum MHD_Result bc_exchange_part(const struct bc_server_options *options, struct bc_server *server,
	struct bc_connection *connection, const char *path, const char *method, const char *body,
	size_t *body_bytes, void **request)
{
	struct bc_request *r = *request;

	if (r == NULL)
		return begin(server, connection, path, method, request);
	if (*body_bytes == 0)
		return finish(options, r);
	size_t n = *body_bytes;
	*body_bytes = 0;
	return take(r, body, n);
}

void bc_exchange_completed(struct bc_request *r)
{
	if (r == NULL)
		return;
	/* Whoever still has to answer it keeps the body: the server is being closed. */
	bool is_kept = r->is_handed_on && !r->is_answered;
	if (!is_kept)
		free_body(r);
	r->connection = NULL;
	r->server = NULL;
	if (r->push != NULL)
		r->push->request = NULL;
	if (r->response != NULL) {
		MHD_destroy_response(r->response);
		r->response = NULL;
	}
	if (!is_kept)
		free(r);
}

bool bc_exchange_is_sending(const struct bc_request *r)
{
	return r->push == NULL && !r->is_suspended && (r->is_answered || r->refusal != 0);
}

void bc_exchange_resume(struct bc_request *r)
{
	if (!r->is_suspended)
		return;
	r->is_suspended = false;
	MHD_resume_connection(r->connection->mhd);
}
