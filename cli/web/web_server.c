/* The server runs on the main thread, which never waits for anything but its descriptors. A request
 * that reads files or waits for the daemon is worked on by its own thread, which ends with it:
 * reading a large recording may take a minute, and must not delay other requests. There are at most
 * as many threads as connections. What they share is in web_data and web_feed, with their locks.
 *
 * A request is CHECKED by the main thread (credentials, method, path, names of parameters), WORKED
 * on, and ENDED: then it is in the list `ended`, and the main thread sends its response. Invariant:
 * from the start of its thread until then, only it touches it, and its connection stays open. */
#include "cli/web/web_server.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "cli/io/client.h"
#include "cli/web/page.h"
#include "formats/base/clock.h"
#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/http/server.h"
#include "formats/recording/search.h"
#include "formats/trace/filter_parse.h"

#define CONNECTIONS     64u
#define HEAD_S          10u         /* the time for the head of a request */
#define READ_S          60u         /* the time for reading the files for one response */
#define HISTORY_MS      2000        /* the time for the daemon's history */
#define SEARCHES        4u          /* at a time */
#define RESPONSE_BYTES  (16u << 20) /* of one response */
#define RESPONSES_BYTES (64u << 20) /* of all that are being sent */
#define PARAMS_MAX      16u

/* Records of a search: without a limit in the query, and at most. */
#define RECORDS     1000
#define RECORDS_MAX 10000
#define CONTEXT_MAX 1000

#define JSON_TYPE  "application/json"
#define LINES_TYPE "application/x-ndjson"
#define TEXT_TYPE  "text/plain; charset=utf-8"
#define SVG_TYPE   "image/svg+xml"
#define HTML_TYPE  "text/html; charset=utf-8"

#define HEADERS(policy)                                                                          \
	"Content-Security-Policy", policy, "Cache-Control", "no-store",                          \
		"Cross-Origin-Resource-Policy", "same-origin", "Referrer-Policy", "no-referrer", \
		"X-Content-Type-Options", "nosniff", "X-Frame-Options", "DENY"
#define DATA_POLICY "default-src 'none'; frame-ancestors 'none'"

static const char *const data_headers[] = {HEADERS(DATA_POLICY), NULL};
static const char *const method_headers[] = {HEADERS(DATA_POLICY), "Allow", "GET", NULL};

/* The page itself has a policy, with hashes of its script and style. Both apply. */
static const char page_policy[] =
	"connect-src 'self'; object-src 'none'; frame-src 'none'; base-uri 'none'; "
	"form-action 'none'; frame-ancestors 'none'";
static const char *const page_headers[] = {HEADERS(page_policy), NULL};

struct bc_web_server {
	struct bc_web_server_options options;
	struct bc_server *http;
	atomic_bool is_ending;
	atomic_uint searches;
	unsigned working; /* requests with a thread */
	int ended_fd;     /* an eventfd, readable if `ended` is not empty */
	pthread_mutex_t lock;
	struct request *ended; /* protected by the lock */
};

struct request {
	struct bc_web_server *server;
	struct bc_request *http;
	struct request *next; /* in server->ended */
	void (*get)(struct request *r);
	pthread_t thread;
	struct bc_web_client client;
	struct bc_web_credentials credentials;
	struct {
		const char *name;
		const char *value;
	} params[PARAMS_MAX]; /* without the token */
	unsigned count;
	bool is_repeated;  /* a parameter was given twice */
	bool has_too_many; /* parameters */
	struct bc_search_options search;
	char err[512];

	/* The response. */
	unsigned status;
	const char *type;
	char *text; /* allocated; NULL: out of memory */
};

/* ---- who is served */

#define TOKEN_CHARS (BC_WEB_TOKEN_TEXT - 1)

int bc_web_guard_init(struct bc_web_guard *guard, const union bc_tcp_address *address)
{
	uint8_t random[TOKEN_CHARS / 2];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -errno;
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(guard->token + 2 * i, 3, "%02x", random[i]);
	guard->address = *address;
	return 0;
}

/* The time does not depend on where the texts differ. */
static bool is_token(const struct bc_web_guard *guard, const char *text)
{
	unsigned differs = 0;

	if (strlen(text) != TOKEN_CHARS)
		return false;
	for (size_t i = 0; i < TOKEN_CHARS; i++)
		differs |= (unsigned char)text[i] ^ (unsigned char)guard->token[i];
	return differs == 0;
}

/* True for the page itself, and for a user who follows the link, from anywhere: a site that opens
 * another one's page in a tab can't read it. Old browsers and other clients lack these headers. */
static bool is_same_site(const char *fetch_site, const char *fetch_dest)
{
	return fetch_site == NULL || strcmp(fetch_site, "same-origin") == 0 ||
	       strcmp(fetch_site, "none") == 0 ||
	       (fetch_dest != NULL && strcmp(fetch_dest, "document") == 0);
}

static bool is_same_origin(const char *origin, const char *host)
{
	static const char scheme[] = "http://";
	const size_t n = sizeof(scheme) - 1;

	return origin == NULL || (strncmp(origin, scheme, n) == 0 && strcmp(origin + n, host) == 0);
}

bool bc_web_guard_allows(const struct bc_web_guard *guard, const struct bc_web_credentials *c)
{
	if (c->host == NULL || !bc_tcp_address_is_host(&guard->address, c->host) ||
		!is_same_origin(c->origin, c->host) || !is_same_site(c->fetch_site, c->fetch_dest))
		return false;
	return c->token != NULL && is_token(guard, c->token);
}

/* ---- responses */

static void respond(struct request *r, unsigned status, const char *type, char *text)
{
	r->status = status;
	r->type = type;
	r->text = text;
}

static void respond_error(struct request *r, unsigned status, const char *message)
{
	json_t *object = json_pack("{s:o}", "error", bc_json_text(message));

	respond(r, status, JSON_TYPE, bc_json_print_line(object));
	json_decref(object);
}

/* Responds with what bc_web_data_*() returned, and frees it. */
static void respond_data(struct request *r, const char *type, struct bc_byte_buffer *text, int rc)
{
	if (rc == 0) {
		respond(r, 200, type, text->bytes);
		return;
	}
	bc_byte_buffer_free(text);
	switch (rc) {
	case -ENOMEM:
		respond(r, 500, JSON_TYPE, NULL);
		break;
	case -ECANCELED:
		respond_error(r, 503, "this took too long; try again, or select a shorter time");
		break;
	case -EFBIG:
		respond_error(
			r, 500, "the response is too long; ask for fewer columns, rows or records");
		break;
	case -ENODATA:
		respond_error(r, 404, "no references to memory: there is nothing to draw");
		break;
	case -ESRCH:
		respond_error(r, 404, "no recording has this id");
		break;
	case -E2BIG:
		respond_error(r, 400,
			"too many records: a curve is of at most 16 million; select a shorter "
			"time");
		break;
	case -EXDEV:
		respond_error(r, 409, BC_OVERVIEW_AXES_TEXT);
		break;
	default:
		snprintf(r->err, sizeof(r->err), "can't read the directory: %s", strerror(-rc));
		respond_error(r, 500, r->err);
	}
}

/* ---- parameters */

static const char *param(const struct request *r, const char *name)
{
	for (unsigned i = 0; i < r->count; i++)
		if (strcmp(r->params[i].name, name) == 0)
			return r->params[i].value;
	return NULL;
}

/* Reads an integer, if the query has it. Like all these functions, returns false with a message
 * that names the parameter if it is invalid. */
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
	return bc_fail(r->err, sizeof(r->err), "%s=%.60s: must be %" PRId64 " to %" PRId64, name,
		text, min, max);
}

static bool read_time(struct request *r, const char *name, int64_t *ns)
{
	return read_integer(r, name, -INT64_MAX, INT64_MAX, ns) ||
	       bc_fail(r->err, sizeof(r->err), "%s=%.60s: must be a time in ns since 1970", name,
		       param(r, name));
}

/* Reads `from` and `to`. */
static bool read_times(struct request *r, int64_t *from_ns, int64_t *to_ns)
{
	*from_ns = INT64_MIN;
	*to_ns = INT64_MAX;
	if (!read_time(r, "from", from_ns) || !read_time(r, "to", to_ns))
		return false;
	return *from_ns <= *to_ns || bc_fail(r->err, sizeof(r->err), "from: must not be after to");
}

static bool read_flag(struct request *r, const char *name, bool *value)
{
	const char *text = param(r, name);

	*value = text != NULL && strcmp(text, "true") == 0;
	return text == NULL || *value || strcmp(text, "false") == 0 ||
	       bc_fail(r->err, sizeof(r->err), "%s=%.60s: must be true or false", name, text);
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
		!read_integer(r, "rows", 2, BC_OVERVIEW_ROWS, &rows) ||
		!read_flag(r, "by_processor", &o->by_processor))
		return false;
	o->place_from = (uint32_t)from;
	o->place_to = (uint32_t)to;
	o->columns = (unsigned)columns;
	o->rows = (unsigned)rows;
	return from <= to ||
	       bc_fail(r->err, sizeof(r->err), "place_from: must not be above place_to");
}

/* Reads the name of a curve or of a picture. Without it, the data is sent. */
static bool read_figure(struct request *r, enum bc_figure *figure, bool is_curve)
{
	const char *name = param(r, "figure");

	*figure = name != NULL ? bc_figure_parse(name) : BC_FIGURE_NONE;
	return name == NULL ||
	       (*figure != BC_FIGURE_NONE && bc_figure_is_curve(*figure) == is_curve) ||
	       bc_fail(r->err, sizeof(r->err), "figure=%.60s: must be %s", name,
		       is_curve ? "working-set or miss-ratio" : "timeline or heat-map");
}

static bool read_count(struct request *r, const char *name, int64_t min, int64_t max, uint64_t *n)
{
	int64_t value = 0;

	if (!read_integer(r, name, min, max, &value))
		return false;
	*n = (uint64_t)value;
	return true;
}

static bool read_numbers(struct request *r, struct bc_span *span)
{
	const char *text = param(r, "records");

	return text == NULL ||
	       (bc_number_read_range(&span->first, &span->last, text) &&
		       span->first <= span->last) ||
	       bc_fail(r->err, sizeof(r->err),
		       "records=%.60s: must be a range of record numbers, such as 100-199", text);
}

static bool read_condition(struct request *r, const char *name, struct bc_filter *filter)
{
	const char *text = param(r, name);
	char time[64];
	char why[256];
	bool ok;

	if (text == NULL)
		return true;
	if (strcmp(name, "from") != 0 && strcmp(name, "to") != 0)
		return bc_filter_parse_condition(
			filter, r->server->options.names, name, text, r->err, sizeof(r->err));
	/* In a query, "+" stands for a blank, which no time begins with. */
	if (text[0] == ' ' && strlen(text) < sizeof(time)) {
		snprintf(time, sizeof(time), "+%s", text + 1);
		text = time;
	}
	ok = name[0] == 'f' ? bc_filter_parse_from(filter, text, why, sizeof(why))
			    : bc_filter_parse_to(filter, text, why, sizeof(why));
	return ok || bc_fail(r->err, sizeof(r->err), "%s=%.60s: %s", name, text, why);
}

/* Without first, last and count, the first 1,000 matches are selected. */
static bool read_search(struct request *r, struct bc_search_options *o)
{
	static const char *const conditions[] = {
		"addr", "type", "proc", "port", "region", "from", "to"};

	bc_filter_init(&o->filter);
	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++)
		if (!read_condition(r, conditions[i], &o->filter))
			return false;
	if (!read_numbers(r, &o->filter.numbers) ||
		!read_count(r, "first", 1, RECORDS_MAX, &o->first) ||
		!read_count(r, "last", 1, RECORDS_MAX, &o->last) ||
		!read_count(r, "context", 0, CONTEXT_MAX, &o->context) ||
		!read_flag(r, "count", &o->is_count))
		return false;
	int modes = (o->first != 0) + (o->last != 0) + o->is_count;
	if (modes > 1 || (o->is_count && o->context != 0))
		return bc_fail(r->err, sizeof(r->err), "%s",
			modes > 1 ? "first, last and count exclude each other"
				  : "count excludes context");
	if (modes == 0)
		o->first = RECORDS;
	return true;
}

/* ---- paths */

static void refuse(struct request *r)
{
	respond_error(r, 400, r->err);
}

static void get_page(struct request *r)
{
	respond(r, 200, HTML_TYPE, strndup(bc_page_html, bc_page_html_bytes));
}

static void get_overview(struct request *r)
{
	struct bc_byte_buffer text = {.max = RESPONSE_BYTES};
	struct bc_overview_options options;
	enum bc_figure figure;
	int64_t class = -1;

	if (read_picture(r, &options) && read_integer(r, "class", 0, BC_PAGE_CLASSES - 1, &class) &&
		read_figure(r, &figure, false))
		respond_data(r, figure == BC_FIGURE_NONE ? JSON_TYPE : SVG_TYPE, &text,
			bc_web_data_overview(r->server->options.data, &r->client, &options, figure,
				class >= 0 ? 1u << class : BC_FIGURE_ALL, &text));
	else
		refuse(r);
}

static void get_events(struct request *r)
{
	struct bc_byte_buffer text = {.max = RESPONSE_BYTES};
	int64_t from_ns, to_ns;

	if (read_times(r, &from_ns, &to_ns))
		respond_data(r, JSON_TYPE, &text,
			bc_web_data_events(
				r->server->options.data, &r->client, from_ns, to_ns, &text));
	else
		refuse(r);
}

static void get_files(struct request *r)
{
	respond(r, 200, JSON_TYPE, bc_web_data_files(r->server->options.data));
}

static void get_find(struct request *r)
{
	struct bc_byte_buffer text = {.max = RESPONSE_BYTES};
	atomic_uint *searches = &r->server->searches;

	if (!read_search(r, &r->search)) {
		refuse(r);
		return;
	}
	if (atomic_fetch_add(searches, 1) < SEARCHES) {
		int rc = bc_web_data_find(r->server->options.data, &r->client, &r->search, &text);
		respond_data(r, LINES_TYPE, &text, rc);
	} else {
		respond_error(r, 503, "too many searches at a time; try again");
	}
	atomic_fetch_sub(searches, 1);
}

static void get_locality(struct request *r)
{
	struct bc_byte_buffer text = {.max = RESPONSE_BYTES};
	enum bc_figure figure;

	if (read_search(r, &r->search) && read_figure(r, &figure, true))
		respond_data(r, figure == BC_FIGURE_NONE ? JSON_TYPE : SVG_TYPE, &text,
			bc_web_data_locality(r->server->options.data, &r->client, &r->search.filter,
				param(r, "recording"), figure, &text));
	else
		refuse(r);
}

static void get_live(struct request *r)
{
	int64_t since = 0;

	if (read_integer(r, "since", 0, INT64_MAX, &since))
		respond(r, 200, JSON_TYPE,
			bc_web_feed_write(r->server->options.feed, (uint64_t)since));
	else
		refuse(r);
}

/* Passes on the daemon's history, which has less than 512 KiB. */
static void get_history(struct request *r)
{
	const struct bc_web_server_options *o = &r->server->options;
	struct bc_response response;
	struct bc_client *client;

	if (bc_client_open(&client, o->console, o->socket) != BC_EXIT_OK) {
		respond(r, 500, JSON_TYPE, NULL);
		return;
	}
	bc_client_set_timeout(client, HISTORY_MS);
	enum bc_exit code = bc_client_call(client, "GET", "/v1/history", NULL, &response);
	if (code == BC_EXIT_OK) {
		respond(r, 200, JSON_TYPE, response.text);
		response.text = NULL;
	} else {
		snprintf(r->err, sizeof(r->err), "%s%s%s",
			code == BC_EXIT_UNREACHABLE ? bc_client_path(client) : "",
			code == BC_EXIT_UNREACHABLE ? ": " : "", bc_client_error(client));
		respond_error(r, 503, r->err);
	}
	bc_response_free(&response);
	bc_client_close(client);
}

static const char *const no_params[] = {NULL};
static const char *const picture_params[] = {"from", "to", "place_from", "place_to", "columns",
	"rows", "by_processor", "figure", "class", NULL};
static const char *const time_params[] = {"from", "to", NULL};
static const char *const search_params[] = {"addr", "type", "proc", "port", "region", "records",
	"from", "to", "first", "last", "context", "count", NULL};
static const char *const locality_params[] = {"addr", "type", "proc", "port", "region", "records",
	"from", "to", "recording", "figure", NULL};
static const char *const live_params[] = {"since", NULL};

static const struct path {
	const char *path;
	void (*get)(struct request *r);
	const char *const *params; /* allowed ones, besides the token */
} paths[] = {
	{"/", get_page, no_params},
	{"/data/overview", get_overview, picture_params},
	{"/data/events", get_events, time_params},
	{"/data/files", get_files, no_params},
	{"/data/find", get_find, search_params},
	{"/data/locality", get_locality, locality_params},
	{"/data/live", get_live, live_params},
	{"/data/history", get_history, no_params},
};

/* ---- requests */

static bool check_params(struct request *r, const struct path *path)
{
	if (r->has_too_many || r->is_repeated)
		return bc_fail(r->err, sizeof(r->err), "%s",
			r->has_too_many ? "too many query parameters"
					: "query parameter given twice");
	for (unsigned i = 0; i < r->count; i++) {
		unsigned n = 0;
		while (path->params[n] != NULL && strcmp(path->params[n], r->params[i].name) != 0)
			n++;
		if (path->params[n] == NULL)
			return bc_fail(r->err, sizeof(r->err), "%.100s: unknown query parameter",
				r->params[i].name);
	}
	return true;
}

/* Sets r->get; or responds with an error and returns false. */
static bool check_request(struct request *r)
{
	const struct path *path = paths;
	const struct path *end = paths + sizeof(paths) / sizeof(paths[0]);

	while (path < end && strcmp(path->path, bc_request_path(r->http)) != 0)
		path++;
	r->get = path < end ? path->get : NULL;
	if (!bc_web_guard_allows(&r->server->options.guard, &r->credentials))
		respond(r, 403, TEXT_TYPE, strdup("open the link that buscap web printed\n"));
	else if (strcmp(bc_request_method(r->http), "GET") != 0)
		respond_error(r, 405, "only GET is allowed");
	else if (path == end)
		respond_error(r, 404, "no such path");
	else if (!check_params(r, path))
		refuse(r);
	else
		return true;
	return false;
}

/* Sets a value that a request must have only once: otherwise two readers may see different ones. */
static void set_once(const char **to, const char *value)
{
	*to = *to == NULL ? value : ""; /* which is refused */
}

static bool on_header(void *context, const char *name, const char *value)
{
	struct bc_web_credentials *c = context;

	if (strcasecmp(name, "Host") == 0)
		set_once(&c->host, value);
	else if (strcasecmp(name, "Origin") == 0)
		set_once(&c->origin, value);
	else if (strcasecmp(name, "Sec-Fetch-Site") == 0)
		set_once(&c->fetch_site, value);
	else if (strcasecmp(name, "Sec-Fetch-Dest") == 0)
		set_once(&c->fetch_dest, value);
	return true;
}

static bool on_param(void *context, const char *name, const char *value)
{
	struct request *r = context;

	if (strcmp(name, "token") == 0) {
		set_once(&r->credentials.token, value);
	} else if (r->count == PARAMS_MAX) {
		r->has_too_many = true;
	} else {
		r->is_repeated = r->is_repeated || param(r, name) != NULL;
		r->params[r->count].name = name;
		r->params[r->count++].value = value;
	}
	return true;
}

static void end_request(struct request *r)
{
	bc_request_respond(r->http, r->status, r->type, r->text,
		r->status == 405                         ? method_headers
		: r->get == get_page && r->status == 200 ? page_headers
							 : data_headers);
	free(r);
}

static void *work_on_request(void *context)
{
	struct request *r = context;
	struct bc_web_server *server = r->server;
	uint64_t one = 1;

	r->get(r);
	pthread_mutex_lock(&server->lock);
	r->next = server->ended;
	server->ended = r;
	(void)!write(server->ended_fd, &one, sizeof(one));
	pthread_mutex_unlock(&server->lock);
	return NULL;
}

static void on_request(void *context, struct bc_request *http)
{
	struct bc_web_server *server = context;
	struct request *r = calloc(1, sizeof(*r));

	if (r == NULL) {
		bc_request_respond(http, 500, JSON_TYPE, NULL, NULL);
		return;
	}
	r->server = server;
	r->http = http;
	r->client = (struct bc_web_client){.fd = bc_request_fd(http),
		.until_ns = bc_now_ns() + READ_S * UINT64_C(1000000000),
		.is_ending = &server->is_ending};
	bc_request_each_header(http, &r->credentials, on_header);
	bc_request_each_query(http, r, on_param);
	if (check_request(r)) {
		if (r->get == get_page) {
			get_page(r);
		} else if (pthread_create(&r->thread, NULL, work_on_request, r) == 0) {
			server->working++;
			return;
		} else {
			respond(r, 500, JSON_TYPE, NULL);
		}
	}
	end_request(r);
}

/* Responds to the requests whose threads have ended. */
static void end_requests(struct bc_web_server *server)
{
	uint64_t count;

	pthread_mutex_lock(&server->lock);
	struct request *r = server->ended;
	server->ended = NULL;
	(void)!read(server->ended_fd, &count, sizeof(count));
	pthread_mutex_unlock(&server->lock);
	while (r != NULL) {
		struct request *next = r->next;
		pthread_join(r->thread, NULL);
		server->working--;
		end_request(r);
		r = next;
	}
}

/* ---- the server */

void bc_web_server_run(struct bc_web_server *server, int interrupt_fd)
{
	struct pollfd fds[] = {{.fd = interrupt_fd, .events = POLLIN},
		{.fd = server->ended_fd, .events = POLLIN},
		{.fd = bc_server_fd(server->http), .events = POLLIN}};

	for (;;) {
		int n = poll(fds, 3, -1);
		if (n > 0 && fds[0].revents != 0)
			return;
		if (n > 0 && fds[1].revents != 0)
			end_requests(server);
		if (n > 0 && fds[2].revents != 0)
			bc_server_run(server->http);
	}
}

int bc_web_server_start(
	struct bc_web_server **out, int listen_fd, const struct bc_web_server_options *options)
{
	struct bc_web_server *server = calloc(1, sizeof(*server));
	const struct bc_server_options http = {
		.listen_fd = listen_fd,
		.ignores_bodies = true,
		.connections_max = CONNECTIONS,
		.head_s = HEAD_S,
		.long_bytes_max = RESPONSES_BYTES,
		.context = server,
		.request = on_request,
	};

	if (server == NULL)
		return -ENOMEM;
	server->options = *options;
	atomic_init(&server->is_ending, false);
	atomic_init(&server->searches, 0);
	server->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int rc = server->ended_fd >= 0 ? bc_server_start(&server->http, &http) : -errno;
	if (rc != 0) {
		if (server->ended_fd >= 0)
			close(server->ended_fd);
		free(server);
		return rc;
	}
	pthread_mutex_init(&server->lock, NULL);
	*out = server;
	return 0;
}

void bc_web_server_close(struct bc_web_server *server)
{
	struct pollfd ended = {.fd = server->ended_fd, .events = POLLIN};

	atomic_store(&server->is_ending, true);
	while (server->working != 0)
		if (poll(&ended, 1, -1) > 0)
			end_requests(server);
	bc_server_close(server->http);
	close(server->ended_fd);
	pthread_mutex_destroy(&server->lock);
	free(server);
}
