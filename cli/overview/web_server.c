#include "cli/overview/web_server.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/io/client.h"
#include "formats/base/clock.h"
#include "formats/base/json.h"
#include "formats/base/late_library.h"
#include "formats/base/must_check.h"
#include "formats/base/text.h"
#include "formats/recording/search.h"
#include "formats/trace/filter_parse.h"
#include "formats/trace/name_map.h"

/* ---- A search as query parameters of /data/find (docs/web.md, "Paths"). */

/* Records in one response: without a limit in the query, and at most. */
#define RECORDS     1000u
#define RECORDS_MAX 10000u
#define CONTEXT_MAX 1000u

const char *const query_names[] = {"addr", "type", "proc", "port", "region", "records", "from",
	"to", "first", "last", "context", "count", NULL};

struct query {
	const struct bc_name_map *names;
	const char *(*value)(void *context, const char *name);
	void *context;
	char *err;
	size_t errlen;
};

/* Reads a number, if the query has it. */
static bool read_number(
	const struct query *q, const char *name, uint64_t min, uint64_t max, uint64_t *value)
{
	const char *text = q->value(q->context, name);

	if (text == NULL || (bc_number_read(value, text) && *value >= min && *value <= max))
		return true;
	snprintf(q->err, q->errlen, "%s=%.60s: must be %" PRIu64 " to %" PRIu64, name, text, min,
		max);
	return false;
}

static bool read_flag(const struct query *q, const char *name, bool *value)
{
	const char *text = q->value(q->context, name);

	*value = text != NULL && strcmp(text, "true") == 0;
	if (text == NULL || *value || strcmp(text, "false") == 0)
		return true;
	snprintf(q->err, q->errlen, "%s=%.60s: must be true or false", name, text);
	return false;
}

static bool read_numbers(const struct query *q, struct bc_span *span)
{
	const char *text = q->value(q->context, "records");

	if (text == NULL || (bc_number_read_range(&span->first, &span->last, text) &&
				    span->first <= span->last))
		return true;
	snprintf(q->err, q->errlen,
		"records=%.60s: must be a range of record numbers, such as 100-199", text);
	return false;
}

static bool read_condition(const struct query *q, const char *name, struct bc_filter *filter)
{
	const char *text = q->value(q->context, name);
	char time[64];
	char why[256];
	bool ok;

	if (text == NULL)
		return true;
	if (strcmp(name, "from") != 0 && strcmp(name, "to") != 0)
		return bc_filter_parse_condition(filter, q->names, name, text, q->err, q->errlen);
	/* In a query, "+" stands for a blank, which no time begins with. */
	if (text[0] == ' ' && strlen(text) < sizeof(time)) {
		snprintf(time, sizeof(time), "+%s", text + 1);
		text = time;
	}
	ok = name[0] == 'f' ? bc_filter_parse_from(filter, text, why, sizeof(why))
			    : bc_filter_parse_to(filter, text, why, sizeof(why));
	if (!ok)
		snprintf(q->err, q->errlen, "%s=%.60s: %s", name, text, why);
	return ok;
}

/* Sets the options of a search. `value` returns the value of a parameter, or NULL if it is absent.
 * Without first, last and count, the first 1,000 matches are selected. `names` has the regions.
 * Returns false with a message that names the parameter. */
static bool read_query(struct bc_search_options *o, const struct bc_name_map *names,
	const char *(*value)(void *context, const char *name), void *context, char *err,
	size_t errlen)
{
	static const char *const conditions[] = {
		"addr", "type", "proc", "port", "region", "from", "to"};
	const struct query q = {names, value, context, err, errlen};

	*o = (struct bc_search_options){.first = 0};
	bc_filter_init(&o->filter);
	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++)
		if (!read_condition(&q, conditions[i], &o->filter))
			return false;
	if (!read_numbers(&q, &o->filter.numbers) ||
		!read_number(&q, "first", 1, RECORDS_MAX, &o->first) ||
		!read_number(&q, "last", 1, RECORDS_MAX, &o->last) ||
		!read_number(&q, "context", 0, CONTEXT_MAX, &o->context) ||
		!read_flag(&q, "count", &o->is_count))
		return false;
	int modes = (o->first != 0) + (o->last != 0) + o->is_count;
	if (modes > 1 || (o->is_count && o->context != 0))
		return bc_fail(err, errlen, "%s",
			modes > 1 ? "first, last and count exclude each other"
				  : "count excludes context");
	if (modes == 0)
		o->first = RECORDS;
	return true;
}

/* libmicrohttpd's memory for a request. */
#define HEAD_BYTES 32768u

#define PARAMS_MAX 16u

#define JSON_TYPE  "application/json"
#define LINES_TYPE "application/x-ndjson"
#define TEXT_TYPE  "text/plain; charset=utf-8"
#define HTML_TYPE  "text/html; charset=utf-8"

/* The page itself has a policy, with hashes of its script and style. Both apply. */
#define PAGE_POLICY                                                                  \
	"connect-src 'self'; object-src 'none'; frame-src 'none'; base-uri 'none'; " \
	"form-action 'none'; frame-ancestors 'none'"
#define DATA_POLICY "default-src 'none'; frame-ancestors 'none'"

#define MHD_FUNCTIONS(F)                                          \
	F(MHD_add_response_header)                                \
	F(MHD_create_response_from_buffer)                        \
	F(MHD_create_response_from_buffer_with_free_callback_cls) \
	F(MHD_destroy_response)                                   \
	F(MHD_get_connection_info)                                \
	F(MHD_get_connection_values)                              \
	F(MHD_lookup_connection_value)                            \
	F(MHD_queue_response)                                     \
	F(MHD_set_connection_option)                              \
	F(MHD_start_daemon)                                       \
	F(MHD_stop_daemon)

static struct {
	MHD_FUNCTIONS(BC_LATE_POINTER)
} lib;
static struct bc_late_library mhd_library = {
	.names = {"libmicrohttpd.so.12"},
	.package = "libmicrohttpd12",
	.functions = (const char *const[]){MHD_FUNCTIONS(BC_LATE_NAME) NULL},
	.pointers = &lib,
};

struct connection {
	struct bc_web_server *server;
	bool is_used;
	int fd;
	uint64_t until_ns; /* when its next head must be complete; UINT64_MAX: it is */
};

struct bc_web_server {
	struct bc_web_server_options options;
	struct MHD_Daemon *mhd;
	atomic_bool is_ending;
	atomic_size_t sending; /* bytes of the responses that are being sent */
	atomic_uint searches;
	pthread_mutex_t lock; /* of the connections */
	struct connection connections[BC_WEB_CONNECTIONS];
};

struct request {
	struct bc_web_server *server;
	struct MHD_Connection *mhd;
	struct bc_web_client client;
	const char *path;
	struct bc_web_credentials credentials;
	struct {
		const char *name;
		const char *value;
	} params[PARAMS_MAX]; /* without the token */
	unsigned count;
	bool is_repeated; /* a parameter that must be there only once */
	bool is_invalid;  /* a zero byte, or too many parameters */
	char err[512];
};

/* ---- responses */

/* A body that counts as being sent until it is freed. */
struct body {
	struct bc_web_server *server;
	char *text;
	size_t bytes;
};

static void free_body(void *context)
{
	struct body *body = context;

	atomic_fetch_sub(&body->server->sending, body->bytes);
	free(body->text);
	free(body);
}

/* Adds what every response has, sends it and releases it. */
static enum MHD_Result send_response(struct request *r, unsigned status, const char *type,
	const char *policy, struct MHD_Response *response)
{
	const char *const headers[][2] = {
		{"Content-Type", type},
		{"Content-Security-Policy", policy},
		{"Cache-Control", "no-store"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{"Referrer-Policy", "no-referrer"},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
		{status == MHD_HTTP_METHOD_NOT_ALLOWED ? "Allow" : NULL, "GET"},
	};
	enum MHD_Result ok = response != NULL ? MHD_YES : MHD_NO;

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		if (ok == MHD_YES && headers[i][0] != NULL)
			ok = lib.MHD_add_response_header(response, headers[i][0], headers[i][1]);
	if (ok == MHD_YES)
		ok = lib.MHD_queue_response(r->mhd, status, response);
	if (response != NULL)
		lib.MHD_destroy_response(response);
	return ok;
}

/* Sends a text that lasts as long as the server. */
static enum MHD_Result send_static(
	struct request *r, unsigned status, const char *type, const char *text)
{
	return send_response(r, status, type, DATA_POLICY,
		lib.MHD_create_response_from_buffer(
			strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT));
}

/* Sends an allocated text, and frees it. NULL: out of memory. */
static enum MHD_Result send_text(
	struct request *r, unsigned status, const char *type, char *text, size_t bytes)
{
	struct bc_web_server *server = r->server;
	struct body *body = text != NULL ? malloc(sizeof(*body)) : NULL;

	if (body == NULL) {
		free(text);
		return send_static(r, MHD_HTTP_INTERNAL_SERVER_ERROR, JSON_TYPE,
			"{\"error\":\"out of memory\"}\n");
	}
	*body = (struct body){server, text, bytes};
	if (atomic_fetch_add(&server->sending, bytes) + bytes > BC_WEB_RESPONSES_BYTES) {
		free_body(body);
		return send_static(r, MHD_HTTP_SERVICE_UNAVAILABLE, JSON_TYPE,
			"{\"error\":\"too many long responses are being sent; try again\"}\n");
	}
	struct MHD_Response *response = lib.MHD_create_response_from_buffer_with_free_callback_cls(
		bytes, text, free_body, body);
	if (response == NULL)
		free_body(body);
	return send_response(r, status, type, DATA_POLICY, response);
}

static enum MHD_Result send_error(struct request *r, unsigned status, const char *message)
{
	json_t *object = json_pack("{s:o}", "error", bc_json_text(message));
	char *line = bc_json_print_line(object);

	json_decref(object);
	return send_text(r, status, JSON_TYPE, line, line != NULL ? strlen(line) : 0);
}

/* Sends what bc_web_data_*() made, and frees it. */
static enum MHD_Result send_data(
	struct request *r, const char *type, struct bc_byte_buffer *text, int rc)
{
	if (rc == 0)
		return send_text(r, MHD_HTTP_OK, type, text->bytes, text->used);
	bc_byte_buffer_free(text);
	switch (rc) {
	case -ENOMEM:
		return send_text(r, 0, NULL, NULL, 0);
	case -ECANCELED:
		return send_error(r, MHD_HTTP_SERVICE_UNAVAILABLE,
			"this took too long; select a shorter time");
	case -EFBIG:
		return send_error(r, MHD_HTTP_INTERNAL_SERVER_ERROR,
			"the response is too long; ask for fewer columns, rows or records");
	default:
		snprintf(r->err, sizeof(r->err), "can't read the directory: %s", strerror(-rc));
		return send_error(r, MHD_HTTP_INTERNAL_SERVER_ERROR, r->err);
	}
}

/* ---- parameters */

static const char *param(void *context, const char *name)
{
	const struct request *r = context;

	for (unsigned i = 0; i < r->count; i++)
		if (strcmp(r->params[i].name, name) == 0)
			return r->params[i].value;
	return NULL;
}

/* Reads an integer, if the query has it. */
static bool read_integer(
	struct request *r, const char *name, int64_t min, int64_t max, int64_t *value)
{
	const char *text = param(r, name);
	bool is_negative = text != NULL && min < 0 && text[0] == '-';
	uint64_t number;

	if (text == NULL)
		return true;
	if (bc_number_read(&number, text + is_negative) && number <= INT64_MAX) {
		*value = is_negative ? -(int64_t)number : (int64_t)number;
		if (*value >= min && *value <= max)
			return true;
	}
	snprintf(r->err, sizeof(r->err), "%s=%.60s: must be %" PRId64 " to %" PRId64, name, text,
		min, max);
	return false;
}

static bool read_time(struct request *r, const char *name, int64_t *ns)
{
	if (read_integer(r, name, -INT64_MAX, INT64_MAX, ns))
		return true;
	snprintf(r->err, sizeof(r->err), "%s=%.60s: must be a time in ns since 1970", name,
		param(r, name));
	return false;
}

/* Reads `from` and `to`. */
static bool read_times(struct request *r, int64_t *from_ns, int64_t *to_ns)
{
	*from_ns = INT64_MIN;
	*to_ns = INT64_MAX;
	if (!read_time(r, "from", from_ns) || !read_time(r, "to", to_ns))
		return false;
	if (*from_ns <= *to_ns)
		return true;
	snprintf(r->err, sizeof(r->err), "from: must not be after to");
	return false;
}

static bool read_picture(struct request *r, struct bc_overview_options *o)
{
	int64_t from = 0, to = BC_PLACES - 1, columns, rows;

	*o = bc_overview_options_default();
	columns = o->columns;
	rows = o->rows;
	if (!read_times(r, &o->from_ns, &o->to_ns) ||
		!read_integer(r, "place_from", 0, BC_PLACES - 1, &from) ||
		!read_integer(r, "place_to", 0, BC_PLACES - 1, &to) ||
		!read_integer(r, "columns", 1, BC_OVERVIEW_COLUMNS, &columns) ||
		!read_integer(r, "rows", 2, BC_OVERVIEW_ROWS, &rows))
		return false;
	o->place_from = (uint32_t)from;
	o->place_to = (uint32_t)to;
	o->columns = (unsigned)columns;
	o->rows = (unsigned)rows;
	if (from <= to)
		return true;
	snprintf(r->err, sizeof(r->err), "place_from: must not be above place_to");
	return false;
}

/* ---- paths */

static enum MHD_Result refuse(struct request *r)
{
	return send_error(r, MHD_HTTP_BAD_REQUEST, r->err);
}

static enum MHD_Result get_page(struct request *r)
{
	const struct bc_web_server_options *o = &r->server->options;
	struct MHD_Response *response = lib.MHD_create_response_from_buffer(
		o->page_bytes, (void *)(uintptr_t)o->page, MHD_RESPMEM_PERSISTENT);

	return response != NULL ? send_response(r, MHD_HTTP_OK, HTML_TYPE, PAGE_POLICY, response)
				: MHD_NO;
}

static enum MHD_Result get_overview(struct request *r)
{
	struct bc_byte_buffer text = {.max = BC_WEB_RESPONSE_BYTES};
	struct bc_overview_options options;

	if (!read_picture(r, &options))
		return refuse(r);
	int rc = bc_web_data_overview(r->server->options.data, &r->client, &options, &text);
	return send_data(r, JSON_TYPE, &text, rc);
}

static enum MHD_Result get_events(struct request *r)
{
	struct bc_byte_buffer text = {.max = BC_WEB_RESPONSE_BYTES};
	int64_t from_ns, to_ns;

	if (!read_times(r, &from_ns, &to_ns))
		return refuse(r);
	int rc = bc_web_data_events(r->server->options.data, &r->client, from_ns, to_ns, &text);
	return send_data(r, JSON_TYPE, &text, rc);
}

static enum MHD_Result find(struct request *r, const struct bc_search_options *options)
{
	struct bc_byte_buffer text = {.max = BC_WEB_RESPONSE_BYTES};
	atomic_uint *searches = &r->server->searches;
	bool is_one_too_many = atomic_fetch_add(searches, 1) >= BC_WEB_SEARCHES;
	int rc = 0;

	if (!is_one_too_many)
		rc = bc_web_data_find(r->server->options.data, &r->client, options, &text);
	atomic_fetch_sub(searches, 1);
	if (is_one_too_many)
		return send_error(
			r, MHD_HTTP_SERVICE_UNAVAILABLE, "too many searches at a time; try again");
	return send_data(r, LINES_TYPE, &text, rc);
}

static enum MHD_Result get_find(struct request *r)
{
	struct bc_search_options *options = malloc(sizeof(*options));
	enum MHD_Result result;

	if (options == NULL)
		return send_text(r, 0, NULL, NULL, 0);
	if (read_query(options, r->server->options.names, param, r, r->err, sizeof(r->err)))
		result = find(r, options);
	else
		result = refuse(r);
	free(options);
	return result;
}

static enum MHD_Result get_live(struct request *r)
{
	int64_t since = 0;

	if (!read_integer(r, "since", 0, INT64_MAX, &since))
		return refuse(r);
	char *text = bc_web_feed_write(r->server->options.feed, (uint64_t)since);
	return send_text(r, MHD_HTTP_OK, JSON_TYPE, text, text != NULL ? strlen(text) : 0);
}

/* Passes the daemon's history on, which has less than 512 KiB. */
static enum MHD_Result get_history(struct request *r)
{
	const struct bc_web_server_options *o = &r->server->options;
	struct bc_response response;
	struct bc_client *client;

	if (bc_client_open(&client, o->console, o->socket) != BC_EXIT_OK)
		return send_text(r, 0, NULL, NULL, 0);
	bc_client_set_timeout(client, BC_WEB_HISTORY_MS);
	enum bc_exit code = bc_client_call(client, "GET", "/v1/history", NULL, &response);
	char *text = response.text;
	size_t bytes = response.bytes;
	response.text = NULL;
	snprintf(r->err, sizeof(r->err), "%s%s%s",
		code == BC_EXIT_UNREACHABLE ? bc_client_path(client) : "",
		code == BC_EXIT_UNREACHABLE ? ": " : "", bc_client_error(client));
	bc_response_free(&response);
	bc_client_close(client);
	if (code == BC_EXIT_OK)
		return send_text(r, MHD_HTTP_OK, JSON_TYPE, text, bytes);
	free(text);
	return send_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, r->err);
}

static const char *const no_params[] = {NULL};
static const char *const picture_params[] = {
	"from", "to", "place_from", "place_to", "columns", "rows", NULL};
static const char *const time_params[] = {"from", "to", NULL};
static const char *const live_params[] = {"since", NULL};

static const struct path {
	const char *path;
	enum MHD_Result (*get)(struct request *r);
	const char *const *params; /* allowed ones, besides the token */
} paths[] = {
	{"/", get_page, no_params},
	{"/data/overview", get_overview, picture_params},
	{"/data/events", get_events, time_params},
	{"/data/find", get_find, query_names},
	{"/data/live", get_live, live_params},
	{"/data/history", get_history, no_params},
};

static bool check_params(struct request *r, const struct path *path)
{
	if (r->is_invalid || r->is_repeated) {
		snprintf(r->err, sizeof(r->err), "%s",
			r->is_invalid ? "invalid query" : "query parameter given twice");
		return false;
	}
	for (unsigned i = 0; i < r->count; i++) {
		unsigned n = 0;
		while (path->params[n] != NULL && strcmp(path->params[n], r->params[i].name) != 0)
			n++;
		if (path->params[n] != NULL)
			continue;
		snprintf(r->err, sizeof(r->err), "%.100s: unknown query parameter",
			r->params[i].name);
		return false;
	}
	return true;
}

static enum MHD_Result respond(struct request *r, const char *method)
{
	if (!bc_web_guard_allows(&r->server->options.guard, &r->credentials))
		return send_static(r, MHD_HTTP_FORBIDDEN, TEXT_TYPE,
			"open the link that buscap web printed\n");
	if (strcmp(method, "GET") != 0)
		return send_error(r, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET is allowed");
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (strcmp(paths[i].path, r->path) != 0)
			continue;
		return check_params(r, &paths[i]) ? paths[i].get(r) : refuse(r);
	}
	return send_error(r, MHD_HTTP_NOT_FOUND, "no such path");
}

/* ---- connections */

static void set_deadline(struct connection *c, uint64_t until_ns)
{
	pthread_mutex_lock(&c->server->lock);
	c->until_ns = until_ns;
	pthread_mutex_unlock(&c->server->lock);
}

/* libmicrohttpd's timeout is for clients that do nothing. One that sends a byte now and then would
 * keep its connection. */
static uint64_t head_deadline(void)
{
	return bc_now_ns() + BC_WEB_TIMEOUT_S * UINT64_C(1000000000);
}

static struct connection *connection_of(struct MHD_Connection *mhd)
{
	return lib.MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* Called before a connection is served, and before it is closed. */
static void on_connection(void *context, struct MHD_Connection *mhd, void **connection,
	enum MHD_ConnectionNotificationCode code)
{
	struct bc_web_server *server = context;
	struct connection *c = server->connections;

	pthread_mutex_lock(&server->lock);
	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		c = *connection;
		c->is_used = false;
	} else {
		for (; c->is_used; c++)
			assert(c + 1 < server->connections + BC_WEB_CONNECTIONS);
		*c = (struct connection){.server = server,
			.is_used = true,
			.fd = lib.MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)
				      ->connect_fd,
			.until_ns = head_deadline()};
		*connection = c;
	}
	pthread_mutex_unlock(&server->lock);
}

/* Called when a response was sent. */
static void on_completed(void *context, struct MHD_Connection *mhd, void **state,
	enum MHD_RequestTerminationCode code)
{
	(void)context;
	(void)state;
	(void)code;
	set_deadline(connection_of(mhd), head_deadline());
}

void bc_web_server_poll(struct bc_web_server *server)
{
	pthread_mutex_lock(&server->lock);
	for (unsigned i = 0; i < BC_WEB_CONNECTIONS; i++) {
		const struct connection *c = &server->connections[i];
		if (c->is_used && c->until_ns <= bc_now_ns())
			(void)shutdown(c->fd, SHUT_RDWR);
	}
	pthread_mutex_unlock(&server->lock);
}

/* ---- requests */

/* Sets a value that must be there only once: otherwise two readers may see different ones. */
static void set_once(const char **to, const char *value)
{
	*to = *to == NULL ? value : ""; /* which is refused */
}

static enum MHD_Result on_header(
	void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct request *r = context;
	struct bc_web_credentials *c = &r->credentials;

	(void)kind;
	value = value != NULL ? value : "";
	if (strcasecmp(name, "Host") == 0)
		set_once(&c->host, value);
	else if (strcasecmp(name, "Origin") == 0)
		set_once(&c->origin, value);
	else if (strcasecmp(name, "Sec-Fetch-Site") == 0)
		set_once(&c->fetch_site, value);
	return MHD_YES;
}

static enum MHD_Result on_param(
	void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct request *r = context;

	(void)kind;
	value = value != NULL ? value : "";
	if (strcmp(name, "token") == 0) {
		set_once(&r->credentials.token, value);
	} else if (r->count == PARAMS_MAX) {
		r->is_invalid = true;
	} else {
		r->is_repeated = r->is_repeated || param(r, name) != NULL;
		r->params[r->count].name = name;
		r->params[r->count++].value = value;
	}
	return MHD_YES;
}

static bool has_body(struct MHD_Connection *mhd)
{
	return lib.MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Content-Length") != NULL ||
	       lib.MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Transfer-Encoding") != NULL;
}

/* The state of a request whose target has a zero byte, and would be read only up to it. */
static const char has_zero_byte;

/* Called with the target of a request before it is decoded. Returns the state of the request. */
static void *on_target(void *context, const char *target, struct MHD_Connection *mhd)
{
	(void)context;
	(void)mhd;
	return strstr(target, "%00") != NULL ? (void *)(uintptr_t)&has_zero_byte : NULL;
}

/* Called when the head has arrived, and again when there is no more of the body. A response to the
 * first call closes the connection; the body is then not read. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *mhd, const char *path,
	const char *method, const char *version, const char *body, size_t *body_bytes, void **state)
{
	struct bc_web_server *server = context;
	const union MHD_ConnectionInfo *info = lib.MHD_get_connection_info(
		mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct request r = {.server = server,
		.mhd = mhd,
		.path = path,
		.is_invalid = *state == &has_zero_byte,
		.client = {.fd = info->connect_fd,
			.until_ns = bc_now_ns() + BC_WEB_READ_S * UINT64_C(1000000000),
			.is_ending = &server->is_ending}};

	set_deadline(connection_of(mhd), UINT64_MAX);
	(void)version;
	(void)body;
	(void)body_bytes;
	if (*state == NULL && !has_body(mhd)) {
		*state = server;
		return MHD_YES;
	}
	lib.MHD_get_connection_values(mhd, MHD_HEADER_KIND, on_header, &r);
	lib.MHD_get_connection_values(mhd, MHD_GET_ARGUMENT_KIND, on_param, &r);
	/* The time that the response takes is not that of a client that does nothing: setting the
	 * timeout again, from 0, restarts it. */
	lib.MHD_set_connection_option(mhd, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
	enum MHD_Result result = respond(&r, method);
	lib.MHD_set_connection_option(mhd, MHD_CONNECTION_OPTION_TIMEOUT, BC_WEB_TIMEOUT_S);
	return result;
}

/* libmicrohttpd's messages are about faulty clients. */
static void ignore_log(void *context, const char *format, va_list args)
{
	(void)context;
	(void)format;
	(void)args;
}

/* ---- start and stop */

enum bc_exit bc_web_server_load(const struct bc_console *console)
{
	char err[256];

	if (bc_late_library_load(&mhd_library, err, sizeof(err)))
		return BC_EXIT_OK;
	bc_print_error(console, NULL, "%s", err);
	return BC_EXIT_FAILED;
}

int bc_web_server_start(
	struct bc_web_server **out, int listen_fd, const struct bc_web_server_options *options)
{
	struct bc_web_server *server = calloc(1, sizeof(*server));

	*out = NULL;
	if (server == NULL) {
		close(listen_fd);
		return -ENOMEM;
	}
	server->options = *options;
	atomic_init(&server->is_ending, false);
	atomic_init(&server->sending, 0);
	atomic_init(&server->searches, 0);
	pthread_mutex_init(&server->lock, NULL);
	errno = 0;
	server->mhd = lib.MHD_start_daemon(MHD_USE_THREAD_PER_CONNECTION |
						   MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
						   MHD_USE_ITC | MHD_USE_ERROR_LOG,
		0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, ignore_log, NULL,
		MHD_OPTION_URI_LOG_CALLBACK, on_target, server, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
		MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_CONNECTION_LIMIT,
		BC_WEB_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, BC_WEB_TIMEOUT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_BYTES, MHD_OPTION_END);
	if (server->mhd != NULL) {
		*out = server;
		return 0;
	}
	int rc = errno != 0 ? -errno : -EIO;
	close(listen_fd);
	pthread_mutex_destroy(&server->lock);
	free(server);
	return rc;
}

void bc_web_server_stop(struct bc_web_server *server)
{
	if (server == NULL)
		return;
	atomic_store(&server->is_ending, true);
	lib.MHD_stop_daemon(server->mhd);
	pthread_mutex_destroy(&server->lock);
	free(server);
}
