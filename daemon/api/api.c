/* The HTTP API. A route has a handler, which responds to the request or returns why it is refused.
 * Handlers whose request has a body get its parameters (api_params), ask the recorder, and respond
 * with what it has now. Some respond later: struct deferred.
 *
 * Invariant: each request gets exactly one response. A handler that returns BC_GRANTED has
 * responded or will; otherwise call->err has the message for the response. */
#include "daemon/api/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/api_params.h"
#include "daemon/api/metrics.h"
#include "daemon/base/permissions.h"
#include "formats/base/clock.h"
#include "formats/base/embed.h"
#include "formats/base/json.h"
#include "formats/base/suggest.h"
#include "formats/base/tcp_address.h"
#include "formats/base/text.h"
#include "formats/trace/filter_parse.h"

#define JSON_TYPE "application/json"

struct call {
	struct bc_api *api;
	struct bc_request *request;
	const struct bc_api_params *params; /* of the body, if the route has any */
	char name[256];                     /* the variable part of the path, or empty */
	char err[BC_REFUSAL_MAX];
};

/* Responses */

/* Responds with a text and takes ownership of it. NULL means out of memory and sends a 500. Returns
 * BC_GRANTED, like all of these, for a handler to return. */
static enum bc_refusal respond(
	struct bc_request *request, unsigned status, const char *type, char *text)
{
	bc_request_respond(request, status, type, text, NULL);
	return BC_GRANTED;
}

/* Responds with an object; otherwise the same. */
static enum bc_refusal respond_object(struct bc_request *request, unsigned status, json_t *object)
{
	char *line = bc_json_print_line(object);

	json_decref(object);
	return respond(request, status, JSON_TYPE, line);
}

/* Responds with {"NAME": VALUE}; otherwise the same. */
static enum bc_refusal respond_member(
	struct bc_request *request, unsigned status, const char *name, json_t *value)
{
	return respond_object(request, status, json_pack("{s:o}", name, value));
}

/* Responds with {"error": MESSAGE}. */
static enum bc_refusal respond_error(
	struct bc_request *request, unsigned status, const char *message)
{
	return respond_member(request, status, "error", bc_json_text(message));
}

/* A result of bc_event_broadcast_add() or bc_taps_add(). */
static enum bc_refusal end_stream_request(struct call *call, int rc, const char *busy)
{
	if (rc == -EBUSY)
		return respond_error(call->request, 503, busy);
	return rc != 0 ? respond_object(call->request, 500, NULL) : BC_GRANTED;
}

/* A response that is sent when an operation is complete. */
struct deferred {
	struct bc_api *api;
	struct bc_request *request;
	unsigned status;
	bool is_last_page; /* of the recordings: with the current one */
};

/* Returns NULL if out of memory. */
static struct deferred *defer_response(struct call *call, unsigned status)
{
	struct deferred *deferred = malloc(sizeof(*deferred));

	if (deferred != NULL)
		*deferred = (struct deferred){call->api, call->request, status, false};
	return deferred;
}

static enum bc_refusal refuse(struct call *call, enum bc_refusal refusal, const char *message)
{
	snprintf(call->err, sizeof(call->err), "%s", message);
	return refusal;
}

static enum bc_refusal fail_memory(struct call *call)
{
	return refuse(call, BC_FAILED, "out of memory");
}

/* Status */

static enum bc_refusal get_status(struct call *call)
{
	struct bc_status status = call->api->status(call->api->context);

	return respond(call->request, 200, JSON_TYPE, bc_status_write(&status));
}

extern const char bc_openapi_json[];
extern const size_t bc_openapi_json_bytes;
BC_EMBED(bc_openapi_json, "docs/openapi.json");

static enum bc_refusal get_metrics(struct call *call)
{
	struct bc_status status = call->api->status(call->api->context);

	return respond(call->request, 200, BC_METRICS_TYPE, bc_metrics_write(&status));
}

static enum bc_refusal get_description(struct call *call)
{
	return respond(
		call->request, 200, JSON_TYPE, strndup(bc_openapi_json, bc_openapi_json_bytes));
}

static enum bc_refusal get_mix(struct call *call)
{
	return respond_object(call->request, 200, bc_page_sampler_json(call->api->sampler));
}

static enum bc_refusal get_history(struct call *call)
{
	return respond(call->request, 200, JSON_TYPE,
		bc_history_write(call->api->history, bc_boot_ns(), bc_wall_ns()));
}

/* Streams */

static enum bc_refusal stream_events(struct call *call)
{
	struct bc_status status = call->api->status(call->api->context);
	json_t *first = json_pack("{s:o}", "status", bc_status_json(&status));

	return end_stream_request(call,
		bc_event_broadcast_add(call->api->broadcast, call->request, first),
		"too many clients read events: the limit is 64, or 56 other than the owner");
}

static const char *const records_query[] = {
	"limit", "addr", "type", "proc", "port", "region", NULL};

static bool parse_filter(struct call *call, struct bc_filter *filter, uint64_t *limit)
{
	const char *value = bc_request_query(call->request, "limit");

	bc_filter_init(filter);
	*limit = 0;
	if (value != NULL && (!bc_number_read(limit, value) || *limit == 0))
		return bc_fail(call->err, sizeof(call->err), "limit: must be an integer above 0");
	for (const char *const *name = records_query + 1; *name != NULL; name++) {
		value = bc_request_query(call->request, *name);
		if (value != NULL && !bc_filter_parse_condition(filter, call->api->names, *name,
					     value, call->err, sizeof(call->err)))
			return false;
	}
	return true;
}

static enum bc_refusal stream_records(struct call *call)
{
	struct bc_filter *filter = malloc(sizeof(*filter));
	uint64_t limit;

	if (filter == NULL)
		return fail_memory(call);
	if (!parse_filter(call, filter, &limit)) {
		free(filter);
		return BC_BAD_VALUE;
	}
	int rc = bc_taps_add(call->api->taps, call->request, filter, limit);
	free(filter);
	return end_stream_request(call, rc,
		"too many clients read live records: the limit is 8, or 6 other than the owner");
}

/* The list of recordings */

/* True if the directory's description of a recording is out of date: the recording was not sealed
 * when the directory was read, or it is in progress but all of its segments so far are sealed. */
static bool is_outdated(const json_t *row, const struct bc_recording *known)
{
	return bc_json_member_is(row, "state", "open") ||
	       bc_json_member_is(row, "state", "recording") || known->state != BC_RECORDING_ENDED;
}

/* Replaces outdated rows, and adds the current recording to the last page if it is missing. Returns
 * false if out of memory. */
static bool update_rows(const struct bc_recorder *recorder, json_t *rows, bool is_last_page)
{
	const struct bc_recording *current = is_last_page ? bc_recorder_current(recorder) : NULL;
	bool is_listed = current == NULL;
	bool ok = true;
	size_t i;
	json_t *row;

	json_array_foreach(rows, i, row)
	{
		const char *id = json_string_value(json_object_get(row, "id"));
		const struct bc_recording *known = id != NULL ? bc_recorder_find(recorder, id)
							      : NULL;
		is_listed = is_listed || known == current;
		if (known != NULL && is_outdated(row, known))
			ok = json_array_set_new(rows, i, bc_recorder_json(recorder, known)) == 0 &&
			     ok;
	}
	if (!is_listed)
		ok = json_array_append_new(rows, bc_recorder_json(recorder, current)) == 0 && ok;
	return ok;
}

static void on_page_read(void *context, json_t *rows, uint64_t omitted)
{
	struct deferred *deferred = context;

	if (rows == NULL) {
		respond_error(deferred->request, 500,
			"can't list the recordings; see the log of buscapd");
	} else {
		bool ok = update_rows(deferred->api->recorder, rows, deferred->is_last_page);
		json_t *root = json_pack(
			"{s:o, s:o}", "omitted", bc_json_u64(omitted), "recordings", rows);
		if (!ok) {
			json_decref(root);
			root = NULL;
		}
		respond_object(deferred->request, 200, root);
	}
	free(deferred);
}

static const char *const page_query[] = {"before", "limit", NULL};

static bool parse_page(struct call *call, struct bc_page *page)
{
	const char *before = bc_request_query(call->request, "before");
	const char *limit = bc_request_query(call->request, "limit");
	uint64_t number = BC_PAGE_RECORDINGS;

	if (limit != NULL &&
		(!bc_number_read(&number, limit) || number == 0 || number > BC_PAGE_RECORDINGS_MAX))
		return bc_fail(call->err, sizeof(call->err),
			"limit: must be an integer from 1 to %u", BC_PAGE_RECORDINGS_MAX);
	if (before != NULL && (before[0] == '\0' || strlen(before) >= sizeof(page->before)))
		return bc_fail(
			call->err, sizeof(call->err), "before: must be the id of a recording");
	*page = (struct bc_page){.limit = (uint32_t)number};
	if (before != NULL)
		memcpy(page->before, before, strlen(before) + 1);
	return true;
}

static enum bc_refusal list_recordings(struct call *call)
{
	struct bc_page page = {.limit = 0};

	if (!parse_page(call, &page))
		return BC_BAD_VALUE;
	struct deferred *deferred = defer_response(call, 200);
	if (deferred == NULL)
		return fail_memory(call);
	deferred->is_last_page = page.before[0] == '\0';
	if (bc_listing_page(call->api->listing, &page, deferred, on_page_read) == 0)
		return BC_GRANTED;
	free(deferred);
	return fail_memory(call);
}

/* The current recording */

/* The end of a handler that changes the current recording. */
static enum bc_refusal end_change(struct call *call, enum bc_refusal refusal, unsigned status)
{
	const struct bc_recorder *recorder = call->api->recorder;
	const struct bc_recording *current = bc_recorder_current(recorder);

	if (refusal != BC_GRANTED)
		return refusal;
	return respond_member(call->request, status, "recording",
		current != NULL ? bc_recorder_json(recorder, current) : NULL);
}

static enum bc_refusal start_recording(struct call *call)
{
	return end_change(
		call, bc_recorder_start(call->api->recorder, &call->params->start, call->err), 201);
}

static void on_sealed(void *context, const struct bc_recording *ended)
{
	struct deferred *deferred = context;

	respond_member(deferred->request, deferred->status, "recording",
		bc_recorder_json(deferred->api->recorder, ended));
	free(deferred);
}

/* Responds when the snapshot is sealed or, if recording continues after it, immediately. */
static enum bc_refusal take_snapshot(struct call *call)
{
	enum bc_refusal refusal = bc_recorder_snapshot(
		call->api->recorder, &call->params->start, call->err);

	if (refusal != BC_GRANTED)
		return refusal;
	struct deferred *deferred = defer_response(call, 201);
	if (deferred != NULL && bc_recorder_await_sealing(call->api->recorder, deferred, on_sealed))
		return BC_GRANTED;
	free(deferred);
	return end_change(call, BC_GRANTED, 201);
}

static enum bc_refusal get_recording(struct call *call)
{
	return bc_recorder_current(call->api->recorder) != NULL
		       ? end_change(call, BC_GRANTED, 200)
		       : refuse(call, BC_NOT_FOUND, "no recording is in progress");
}

static enum bc_refusal add_note(struct call *call)
{
	return end_change(call,
		bc_recorder_note(call->api->recorder, call->params->metadata, call->err), 200);
}

static enum bc_refusal stop_recording(struct call *call)
{
	struct deferred *deferred = defer_response(call, 200);

	if (deferred == NULL)
		return fail_memory(call);
	enum bc_refusal refusal = bc_recorder_stop(
		call->api->recorder, call->err, deferred, on_sealed);
	if (refusal != BC_GRANTED)
		free(deferred);
	return refusal;
}

static enum bc_refusal rotate_recording(struct call *call)
{
	return end_change(call, bc_recorder_rotate(call->api->recorder, call->err), 200);
}

static enum bc_refusal set_mark(struct call *call)
{
	json_t *mark;
	enum bc_refusal refusal = bc_recorder_mark(
		call->api->recorder, call->params->mark, &mark, call->err);

	return refusal == BC_GRANTED ? respond_member(call->request, 201, "mark", mark) : refusal;
}

/* Triggers */

static enum bc_refusal list_triggers(struct call *call)
{
	const struct bc_trigger_engine *engine = bc_recorder_triggers(call->api->recorder);
	json_t *array = json_array();

	for (unsigned i = 0; i < engine->count; i++)
		array = bc_json_append(array, bc_trigger_json(&engine->armed[i].trigger));
	return respond_member(call->request, 200, "triggers", array);
}

static enum bc_refusal respond_trigger(struct call *call, unsigned status, const char *name)
{
	const struct bc_trigger *trigger = bc_trigger_engine_find(
		bc_recorder_triggers(call->api->recorder), name);

	if (trigger == NULL) {
		bc_message(call->err, sizeof(call->err), "trigger %.64s: not armed", name);
		return BC_NOT_FOUND;
	}
	return respond_member(call->request, status, "trigger", bc_trigger_json(trigger));
}

static enum bc_refusal get_trigger(struct call *call)
{
	return respond_trigger(call, 200, call->name);
}

static enum bc_refusal arm_trigger(struct call *call)
{
	const struct bc_trigger *trigger = &call->params->triggers[0];
	enum bc_refusal refusal = bc_recorder_arm(call->api->recorder, trigger, call->err);

	return refusal == BC_GRANTED ? respond_trigger(call, 201, trigger->name) : refusal;
}

/* Responds with the trigger's last state. */
static enum bc_refusal disarm_trigger(struct call *call)
{
	const struct bc_trigger *trigger = bc_trigger_engine_find(
		bc_recorder_triggers(call->api->recorder), call->name);
	json_t *last = trigger != NULL ? bc_trigger_json(trigger) : NULL;
	enum bc_refusal refusal = bc_recorder_disarm(call->api->recorder, call->name, call->err);

	if (refusal == BC_GRANTED)
		return respond_member(call->request, 200, "trigger", last);
	json_decref(last);
	return refusal;
}

/* Routes */

struct route {
	const char *method;
	const char *path; /* a '*' at its end is in the place of a name */
	enum bc_refusal (*handle)(struct call *call);
	uint32_t permissions;           /* required */
	enum bc_api_params_kind params; /* of the body; BC_PARAMS_NONE: no body */
	const char *const *query;       /* the allowed parameters, ending with NULL; NULL: none */
	bool is_stream;                 /* no HEAD */
};

#define PERMISSION(name) (UINT32_C(1) << BC_PERMISSION_##name)

static const struct route routes[] = {
	{"GET", "/v1/status", .handle = get_status},
	{"GET", "/v1/events", .handle = stream_events, .is_stream = true},
	{"GET", "/v1/mix", .handle = get_mix},
	{"GET", "/v1/history", .handle = get_history},
	{"GET", "/v1/recordings", .handle = list_recordings, .query = page_query},
	{"POST", "/v1/recordings", .handle = start_recording, .permissions = PERMISSION(RECORD),
		.params = BC_PARAMS_START},
	{"GET", "/v1/recordings/current", .handle = get_recording},
	{"PATCH", "/v1/recordings/current", .handle = add_note, .permissions = PERMISSION(NOTE),
		.params = BC_PARAMS_NOTE},
	{"DELETE", "/v1/recordings/current", .handle = stop_recording,
		.permissions = PERMISSION(RECORD)},
	{"POST", "/v1/rotate", .handle = rotate_recording, .permissions = PERMISSION(ROTATE),
		.params = BC_PARAMS_ROTATE},
	{"POST", "/v1/marks", .handle = set_mark, .permissions = PERMISSION(MARK),
		.params = BC_PARAMS_MARK},
	{"POST", "/v1/snapshot", .handle = take_snapshot, .permissions = PERMISSION(SNAPSHOT),
		.params = BC_PARAMS_SNAPSHOT},
	{"GET", "/v1/triggers", .handle = list_triggers},
	{"POST", "/v1/triggers", .handle = arm_trigger, .permissions = PERMISSION(TRIGGER),
		.params = BC_PARAMS_TRIGGER},
	{"GET", "/v1/triggers/*", .handle = get_trigger},
	{"DELETE", "/v1/triggers/*", .handle = disarm_trigger, .permissions = PERMISSION(TRIGGER)},
	{"GET", "/v1/records", .handle = stream_records, .query = records_query, .is_stream = true},
	{"GET", "/v1/openapi.json", .handle = get_description},
	{"GET", "/metrics", .handle = get_metrics},
};

#define ROUTES (sizeof(routes) / sizeof(routes[0]))

/* Returns whether a route matches a path. Copies its variable part to `name`; "" if it has none. */
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

static bool route_has_head(const struct route *route)
{
	return !route->is_stream && strcmp(route->method, "GET") == 0;
}

/* Names the path that is most like the one of the request. */
static void respond_unknown_path(struct bc_request *request, const char *path)
{
	struct bc_suggestion s = bc_suggestion_start(path);
	char err[160];

	for (size_t i = 0; i < ROUTES; i++)
		bc_suggestion_add(&s, routes[i].path, routes[i].path);
	if (s.nearest != NULL)
		bc_message(err, sizeof(err), "no such path; did you mean %s?", s.nearest);
	else
		bc_message(err, sizeof(err), "no such path; try GET /v1/status");
	respond_error(request, 404, err);
}

/* Finds the route for the request. If no route matches, sends a 404 or 405 and returns NULL. */
static const struct route *find_route(struct call *call)
{
	const char *path = bc_request_path(call->request);
	const char *method = bc_request_method(call->request);
	char allow[64] = "";
	size_t n = 0;

	for (size_t i = 0; i < ROUTES; i++) {
		const struct route *route = &routes[i];
		if (!route_has_path(route, path, call->name, sizeof(call->name)))
			continue;
		if (strcmp(route->method, method) == 0 ||
			(route_has_head(route) && strcmp(method, "HEAD") == 0))
			return route;
		n += (size_t)snprintf(allow + n, sizeof(allow) - n, "%s%s%s", n == 0 ? "" : ", ",
			route->method, route_has_head(route) ? ", HEAD" : "");
	}
	if (n == 0) {
		respond_unknown_path(call->request, path);
		return NULL;
	}
	json_t *error = json_sprintf("method not allowed; this path accepts %s", allow);
	json_t *root = json_pack("{s:o}", "error", error);
	const char *const headers[] = {"Allow", allow, NULL};
	bc_request_respond(call->request, 405, JSON_TYPE, bc_json_print_line(root), headers);
	json_decref(root);
	return NULL;
}

/* Returns whether the client has all of these permissions, a set of bc_permission_bit(). If not, it
 * has been sent a 403. */
static bool check_permissions(struct call *call, uint32_t permissions)
{
	uint32_t missing = permissions & call->api->reserved;
	enum bc_permission permission = 0;

	if (missing == 0 || bc_request_is_owner(call->request))
		return true;
	while ((missing & bc_permission_bit(permission)) == 0)
		permission++;
	snprintf(call->err, sizeof(call->err),
		"%s: reserved by the configuration for root and the user that buscapd runs as",
		bc_permission_name(permission));
	respond_error(call->request, 403, call->err);
	return false;
}

/* The query */

struct query {
	struct call *call;
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

static enum bc_refusal check_query(struct call *call, const struct route *route)
{
	static const char *const none[] = {NULL};
	struct query query = {
		.call = call, .names = route->query != NULL ? route->query : none, .is_ok = true};

	bc_request_each_query(call->request, &query, check_query_param);
	return query.is_ok ? BC_GRANTED : BC_BAD_VALUE;
}

/* The body */

static bool is_json_type(const char *type)
{
	const size_t n = strlen(JSON_TYPE);

	return type != NULL && strncasecmp(type, JSON_TYPE, n) == 0 &&
	       (type[n] == '\0' || strchr("; \t", type[n]) != NULL);
}

/* Parses the body and calls the handler. A recording's triggers need a permission of their own. */
static enum bc_refusal handle_with_params(struct call *call, const struct route *route)
{
	size_t bytes;
	const char *body = bc_request_body(call->request, &bytes);
	struct bc_api_params *params = calloc(1, sizeof(*params));
	enum bc_refusal refusal = BC_BAD_VALUE;

	if (params == NULL)
		return fail_memory(call);
	params->names = call->api->names;
	call->params = params;
	if (bc_api_params_parse(params, route->params, body, bytes, call->err, sizeof(call->err)))
		refusal = params->start.triggers_count == 0 ||
					  check_permissions(call, PERMISSION(TRIGGER))
				  ? route->handle(call)
				  : BC_GRANTED;
	free(params);
	return refusal;
}

static enum bc_refusal handle_request(struct call *call, const struct route *route)
{
	size_t bytes;

	if (!check_permissions(call, route->permissions))
		return BC_GRANTED;
	if (check_query(call, route) != BC_GRANTED)
		return BC_BAD_VALUE;
	bc_request_body(call->request, &bytes);
	if (bytes != 0 && route->params == BC_PARAMS_NONE) {
		snprintf(call->err, sizeof(call->err), "%s requests have no body", route->method);
		return BC_BAD_VALUE;
	}
	if (bytes != 0 && !is_json_type(bc_request_header(call->request, "Content-Type")))
		return respond_error(
			call->request, 415, "the body must be JSON; send Content-Type: " JSON_TYPE);
	return route->params != BC_PARAMS_NONE ? handle_with_params(call, route)
					       : route->handle(call);
}

void bc_api_request(void *api, struct bc_request *request)
{
	static const unsigned statuses[] = {
		[BC_BAD_VALUE] = 400,
		[BC_NOT_FOUND] = 404,
		[BC_NOT_NOW] = 409,
		[BC_FAILED] = 500,
	};
	struct call call = {.api = api, .request = request};
	const struct route *route = find_route(&call);
	enum bc_refusal refusal = route != NULL ? handle_request(&call, route) : BC_GRANTED;

	if (refusal != BC_GRANTED)
		respond_error(request, statuses[refusal], call.err);
}

/* A web page can make the browser of a local user send requests here under the page's own host
 * name, which resolves to this address (DNS rebinding). */
void bc_api_metrics_only(void *api, struct bc_request *request)
{
	const char *host = bc_request_header(request, "Host");

	if (host != NULL && !bc_tcp_host_is_loopback(host))
		respond_error(request, 421,
			"Host: must be localhost or a loopback address, as in metrics_listen");
	else if (strcmp(bc_request_path(request), "/metrics") == 0)
		bc_api_request(api, request);
	else
		respond_error(request, 404, "no such path; only /metrics is served here");
}
