#include "daemon/api/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/api_params.h"
#include "daemon/api/api_record.h"
#include "daemon/api/metrics.h"
#include "daemon/base/permissions.h"
#include "formats/base/clock.h"
#include "formats/base/tcp_address.h"
#include "formats/base/text.h"
#include "formats/trace/filter_parse.h"

/* Status */

static void get_status(struct bc_call *call)
{
	struct bc_status status = call->api->status(call->api->context);

	bc_request_respond(call->request, 200, BC_JSON_TYPE, bc_status_write(&status), NULL);
}

static void get_metrics(struct bc_call *call)
{
	struct bc_status status = call->api->status(call->api->context);

	bc_request_respond(call->request, 200, BC_METRICS_TYPE, bc_metrics_write(&status), NULL);
}

static void get_mix(struct bc_call *call)
{
	bc_call_respond_object(call->request, 200, bc_page_sampler_json(call->api->sampler), NULL);
}

static void get_history(struct bc_call *call)
{
	char *line = bc_history_write(call->api->history, bc_boot_ns(), bc_wall_ns());

	bc_request_respond(call->request, 200, BC_JSON_TYPE, line, NULL);
}

/* Streams */

static void stream_events(struct bc_call *call)
{
	struct bc_status status = call->api->status(call->api->context);
	json_t *first = json_pack("{s:o}", "status", bc_status_json(&status));
	int rc = bc_event_broadcast_add(call->api->broadcast, call->request, first);

	if (rc == -EBUSY)
		bc_call_error(call->request, 503,
			"too many clients read events: the limit is 64, or 56 other than the owner",
			NULL);
	else if (rc != 0)
		bc_call_respond_object(call->request, 500, NULL, NULL);
}

static const char *const records_query[] = {
	"limit", "addr", "type", "proc", "port", "region", NULL};

static bool parse_filter(struct bc_call *call, struct bc_filter *filter, uint64_t *limit)
{
	const char *value = bc_request_query(call->request, "limit");

	bc_filter_init(filter);
	*limit = 0;
	if (value != NULL && (!bc_number_read(limit, value) || *limit == 0)) {
		snprintf(call->err, sizeof(call->err), "limit: must be an integer above 0");
		return false;
	}
	for (const char *const *name = records_query + 1; *name != NULL; name++) {
		value = bc_request_query(call->request, *name);
		if (value != NULL && !bc_filter_parse_condition(filter, call->api->names, *name,
					     value, call->err, sizeof(call->err)))
			return false;
	}
	return true;
}

static void stream_records(struct bc_call *call)
{
	struct bc_filter *filter = malloc(sizeof(*filter));
	uint64_t limit;
	int rc = -ENOMEM;

	if (filter != NULL && !parse_filter(call, filter, &limit)) {
		bc_call_refuse(call, BC_BAD_VALUE);
		rc = 0;
	} else if (filter != NULL) {
		rc = bc_taps_add(call->api->taps, call->request, filter, limit);
	}
	free(filter);
	if (rc == -EBUSY)
		bc_call_error(call->request, 503,
			"too many clients read live records: the limit is 8, or 6 other than the "
			"owner",
			NULL);
	else if (rc != 0)
		bc_call_respond_object(call->request, 500, NULL, NULL);
}

/* Routes */

struct route {
	const char *method;
	const char *path; /* a '*' at its end is in the place of a name */
	void (*respond)(struct bc_call *call);
	uint32_t permissions;     /* required */
	bool is_stream;           /* no HEAD */
	const char *const *query; /* the allowed parameters, ending with NULL; NULL: none */
};

#define PERMISSION(name) (UINT32_C(1) << BC_PERMISSION_##name)

static const struct route routes[] = {
	{"GET", "/v1/status", get_status, 0, false, NULL},
	{"GET", "/v1/events", stream_events, 0, true, NULL},
	{"GET", "/v1/mix", get_mix, 0, false, NULL},
	{"GET", "/v1/history", get_history, 0, false, NULL},
	{"GET", "/v1/recordings", bc_api_list_recordings, 0, false, bc_api_page_query},
	{"POST", "/v1/recordings", bc_api_start_recording, PERMISSION(RECORD), false, NULL},
	{"GET", "/v1/recordings/current", bc_api_get_recording, 0, false, NULL},
	{"PATCH", "/v1/recordings/current", bc_api_add_note, PERMISSION(NOTE), false, NULL},
	{"DELETE", "/v1/recordings/current", bc_api_stop_recording, PERMISSION(RECORD), false,
		NULL},
	{"POST", "/v1/rotate", bc_api_rotate, PERMISSION(ROTATE), false, NULL},
	{"POST", "/v1/marks", bc_api_set_mark, PERMISSION(MARK), false, NULL},
	{"POST", "/v1/snapshot", bc_api_snapshot, PERMISSION(SNAPSHOT), false, NULL},
	{"GET", "/v1/triggers", bc_api_list_triggers, 0, false, NULL},
	{"POST", "/v1/triggers", bc_api_arm_trigger, PERMISSION(TRIGGER), false, NULL},
	{"GET", "/v1/triggers/*", bc_api_get_trigger, 0, false, NULL},
	{"DELETE", "/v1/triggers/*", bc_api_disarm_trigger, PERMISSION(TRIGGER), false, NULL},
	{"GET", "/v1/records", stream_records, 0, true, records_query},
	{"GET", "/metrics", get_metrics, 0, false, NULL},
};

#define ROUTES (sizeof(routes) / sizeof(routes[0]))

/* Returns whether a route matches a path. Copies the variable part of the path to `name`, which
 * gets empty if there is none. */
static bool route_has_path(const struct route *route, const char *path, char *name, size_t namelen)
{
	size_t n = strcspn(route->path, "*");

	name[0] = '\0';
	if (route->path[n] == '\0')
		return strcmp(route->path, path) == 0;
	if (strncmp(route->path, path, n) != 0)
		return false;
	size_t bytes = strlen(path + n);
	if (bytes == 0 || bytes >= namelen || strchr(path + n, '/') != NULL)
		return false;
	memcpy(name, path + n, bytes + 1);
	return true;
}

static bool route_has_method(const struct route *route, const char *method)
{
	return strcmp(route->method, method) == 0 ||
	       (!route->is_stream && strcmp(route->method, "GET") == 0 &&
		       strcmp(method, "HEAD") == 0);
}

/* Finds the route for the request. If there is none, sends a 404 or 405 and returns NULL. */
static const struct route *find_route(struct bc_call *call)
{
	const char *path = bc_request_path(call->request);
	const char *method = bc_request_method(call->request);
	char allow[64] = "";
	size_t n = 0;

	for (size_t i = 0; i < ROUTES; i++) {
		if (!route_has_path(&routes[i], path, call->name, sizeof(call->name)))
			continue;
		if (route_has_method(&routes[i], method))
			return &routes[i];
		bool has_head = !routes[i].is_stream && strcmp(routes[i].method, "GET") == 0;
		n += (size_t)snprintf(allow + n, sizeof(allow) - n, "%s%s%s", n == 0 ? "" : ", ",
			routes[i].method, has_head ? ", HEAD" : "");
	}
	if (n == 0) {
		bc_call_error(call->request, 404, "no such path; try GET /v1/status", NULL);
	} else {
		snprintf(call->err, sizeof(call->err), "method not allowed; this path accepts %s",
			allow);
		bc_call_error(call->request, 405, call->err, allow);
	}
	return NULL;
}

/* The query */

struct query {
	struct bc_call *call;
	const char *const *names;
	uint32_t seen; /* one bit per name */
	bool is_ok;
};

static bool check_query_param(void *context, const char *name, const char *value)
{
	struct query *query = context;
	unsigned i = 0;

	(void)value;
	while (query->names[i] != NULL && strcmp(query->names[i], name) != 0)
		i++;
	query->is_ok = query->names[i] != NULL && (query->seen >> i & 1) == 0;
	query->seen |= UINT32_C(1) << i;
	if (!query->is_ok)
		snprintf(query->call->err, sizeof(query->call->err), "%.100s: %s", name,
			query->names[i] != NULL ? "query parameter given twice"
						: "unknown query parameter");
	return query->is_ok;
}

static bool check_query(struct bc_call *call, const struct route *route)
{
	static const char *const none[] = {NULL};
	struct query query = {
		.call = call, .names = route->query != NULL ? route->query : none, .is_ok = true};

	bc_request_each_query(call->request, &query, check_query_param);
	if (!query.is_ok)
		bc_call_refuse(call, BC_BAD_VALUE);
	return query.is_ok;
}

/* Checks that a body is allowed, and that its Content-Type is JSON. */
static bool check_body(struct bc_call *call, const struct route *route)
{
	const char *type = bc_request_header(call->request, "Content-Type");
	const size_t n = strlen(BC_JSON_TYPE);
	size_t bytes;

	bc_request_body(call->request, &bytes);
	if (bytes == 0)
		return true;
	if (route->method[0] != 'P') {
		snprintf(call->err, sizeof(call->err), "%s requests have no body", route->method);
		bc_call_refuse(call, BC_BAD_VALUE);
		return false;
	}
	if (type != NULL && strncasecmp(type, BC_JSON_TYPE, n) == 0 &&
		(type[n] == '\0' || strchr("; \t", type[n]) != NULL))
		return true;
	bc_call_error(call->request, 415, "the body must be JSON; send Content-Type: " BC_JSON_TYPE,
		NULL);
	return false;
}

void bc_api_request(void *api, struct bc_request *request)
{
	struct bc_call call = {.api = api, .request = request};
	const struct route *route = find_route(&call);

	if (route != NULL && bc_call_check_permissions(&call, route->permissions) &&
		check_query(&call, route) && check_body(&call, route))
		route->respond(&call);
}

/* A web page can make the browser of a local user send requests here under the page's own host
 * name, which resolves to this address (DNS rebinding). */
void bc_api_metrics_only(void *api, struct bc_request *request)
{
	struct bc_call call = {.api = api, .request = request};
	const char *host = bc_request_header(request, "Host");

	if (host != NULL && !bc_tcp_host_is_loopback(host))
		bc_call_error(call.request, 421,
			"Host: must be localhost or a loopback address, as in metrics_listen",
			NULL);
	else if (strcmp(bc_request_path(request), "/metrics") == 0)
		bc_api_request(api, request);
	else
		bc_call_error(
			call.request, 404, "no such path; only /metrics is served here", NULL);
}
