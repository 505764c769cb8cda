#include "daemon/api/api_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/api_params.h"
#include "formats/base/json.h"
#include "formats/base/text.h"

/* Running an operation with the parameters in the body */

typedef enum bc_refusal (*run_params)(struct bc_call *call, const struct bc_api_params *params);

/* Returns whether the operation succeeded; if not, has responded. */
static bool run_request(struct bc_call *call, enum bc_api_params_kind kind, run_params run)
{
	size_t bytes;
	const char *body = bc_request_body(call->request, &bytes);
	struct bc_api_params *params = calloc(1, sizeof(*params));
	enum bc_refusal refusal = BC_FAILED;

	snprintf(call->err, sizeof(call->err), "out of memory");
	if (params != NULL)
		params->names = call->api->names;
	if (params != NULL &&
		!bc_api_params_parse(params, kind, body, bytes, call->err, sizeof(call->err))) {
		refusal = BC_BAD_VALUE;
	} else if (params != NULL && !bc_call_may_arm(call, params->start.triggers_count)) {
		free(params);
		return false;
	} else if (params != NULL) {
		refusal = run(call, params);
	}
	free(params);
	if (refusal != BC_GRANTED)
		bc_call_refuse(call, refusal);
	return refusal == BC_GRANTED;
}

/* A response that is sent when an operation is complete. */
struct deferred {
	struct bc_api *api;
	struct bc_request *request;
	unsigned status;
	bool is_last_page; /* of the recordings: with the current one */
};

/* Returns NULL if out of memory. */
static struct deferred *defer_response(struct bc_call *call, unsigned status)
{
	struct deferred *deferred = malloc(sizeof(*deferred));

	if (deferred != NULL)
		*deferred = (struct deferred){call->api, call->request, status, false};
	return deferred;
}

/* Returns NULL if out of memory. */
static json_t *recording_json(
	const struct bc_recorder *recorder, const struct bc_recording *recording)
{
	const struct bc_recording_now now = bc_recorder_progress(recorder, recording);

	return bc_recording_json(recording, &now);
}

/* The list of recordings */

/* Whether the directory's description of a recording is out of date: the recording was not sealed
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
			ok = json_array_set_new(rows, i, recording_json(recorder, known)) == 0 &&
			     ok;
	}
	if (!is_listed)
		ok = json_array_append_new(rows, recording_json(recorder, current)) == 0 && ok;
	return ok;
}

static void on_page(void *context, json_t *rows, uint64_t omitted)
{
	struct deferred *deferred = context;

	if (rows == NULL) {
		bc_call_error(deferred->request, 500,
			"cannot list the recordings; see the log of buscapd", NULL);
	} else {
		bool ok = update_rows(deferred->api->recorder, rows, deferred->is_last_page);
		json_t *root = json_pack(
			"{s:o, s:o}", "omitted", bc_json_u64(omitted), "recordings", rows);
		if (!ok) {
			json_decref(root);
			root = NULL;
		}
		bc_call_respond_object(deferred->request, 200, root, NULL);
	}
	free(deferred);
}

const char *const bc_api_page_query[] = {"before", "limit", NULL};

static bool parse_page(struct bc_call *call, struct bc_page *page)
{
	const char *before = bc_request_query(call->request, "before");
	const char *limit = bc_request_query(call->request, "limit");
	uint64_t number = BC_PAGE_RECORDINGS;

	if (limit != NULL && (!bc_number_read(&number, limit) || number == 0 ||
				     number > BC_PAGE_RECORDINGS_MAX)) {
		snprintf(call->err, sizeof(call->err), "limit: must be an integer from 1 to %u",
			BC_PAGE_RECORDINGS_MAX);
		return false;
	}
	if (before != NULL && (before[0] == '\0' || strlen(before) >= sizeof(page->before))) {
		snprintf(call->err, sizeof(call->err), "before: must be the id of a recording");
		return false;
	}
	*page = (struct bc_page){.limit = (uint32_t)number};
	if (before != NULL)
		memcpy(page->before, before, strlen(before) + 1);
	return true;
}

void bc_api_list_recordings(struct bc_call *call)
{
	struct bc_page page;

	if (!parse_page(call, &page)) {
		bc_call_refuse(call, BC_BAD_VALUE);
		return;
	}
	struct deferred *deferred = defer_response(call, 200);
	if (deferred != NULL)
		deferred->is_last_page = page.before[0] == '\0';
	if (deferred != NULL && bc_listing_page(call->api->listing, &page, deferred, on_page) == 0)
		return;
	free(deferred);
	bc_call_respond_object(call->request, 500, NULL, NULL);
}

/* The current recording */

static void respond_recording(struct bc_call *call, unsigned status)
{
	const struct bc_recorder *recorder = call->api->recorder;
	const struct bc_recording *current = bc_recorder_current(recorder);

	bc_call_respond(call->request, status, "recording",
		current != NULL ? recording_json(recorder, current) : NULL);
}

static enum bc_refusal run_start(struct bc_call *call, const struct bc_api_params *params)
{
	return bc_recorder_start(call->api->recorder, &params->start, call->err, sizeof(call->err));
}

void bc_api_start_recording(struct bc_call *call)
{
	if (run_request(call, BC_PARAMS_START, run_start))
		respond_recording(call, 201);
}

static void on_sealed(void *context, const struct bc_recording *ended)
{
	struct deferred *deferred = context;

	bc_call_respond(deferred->request, deferred->status, "recording",
		recording_json(deferred->api->recorder, ended));
	free(deferred);
}

static enum bc_refusal run_snapshot(struct bc_call *call, const struct bc_api_params *params)
{
	return bc_recorder_snapshot(
		call->api->recorder, &params->start, call->err, sizeof(call->err));
}

/* Responds when the snapshot is sealed or, if recording continues after it, immediately. */
void bc_api_snapshot(struct bc_call *call)
{
	if (!run_request(call, BC_PARAMS_SNAPSHOT, run_snapshot))
		return;
	struct deferred *deferred = defer_response(call, 201);
	if (deferred != NULL && bc_recorder_await_sealing(call->api->recorder, deferred, on_sealed))
		return;
	free(deferred);
	respond_recording(call, 201);
}

void bc_api_get_recording(struct bc_call *call)
{
	if (bc_recorder_current(call->api->recorder) != NULL)
		respond_recording(call, 200);
	else
		bc_call_error(call->request, 404, "nothing is being recorded", NULL);
}

static enum bc_refusal run_note(struct bc_call *call, const struct bc_api_params *params)
{
	return bc_recorder_note(
		call->api->recorder, params->metadata, call->err, sizeof(call->err));
}

void bc_api_add_note(struct bc_call *call)
{
	if (run_request(call, BC_PARAMS_NOTE, run_note))
		respond_recording(call, 200);
}

void bc_api_stop_recording(struct bc_call *call)
{
	struct deferred *deferred = defer_response(call, 200);

	if (deferred == NULL) {
		bc_call_respond_object(call->request, 500, NULL, NULL);
		return;
	}
	enum bc_refusal refusal = bc_recorder_stop(
		call->api->recorder, call->err, sizeof(call->err), deferred, on_sealed);
	if (refusal != BC_GRANTED) {
		free(deferred);
		bc_call_refuse(call, refusal);
	}
}

static enum bc_refusal run_rotate(struct bc_call *call, const struct bc_api_params *params)
{
	(void)params;
	return bc_recorder_rotate(call->api->recorder, call->err, sizeof(call->err));
}

void bc_api_rotate(struct bc_call *call)
{
	if (run_request(call, BC_PARAMS_ROTATE, run_rotate))
		respond_recording(call, 200);
}

static enum bc_refusal run_mark(struct bc_call *call, const struct bc_api_params *params)
{
	struct bc_mark mark;
	enum bc_refusal refusal = bc_recorder_mark(
		call->api->recorder, params->mark, &mark, call->err, sizeof(call->err));

	if (refusal == BC_GRANTED)
		bc_call_respond(call->request, 201, "mark", bc_mark_json(&mark));
	return refusal;
}

void bc_api_set_mark(struct bc_call *call)
{
	(void)run_request(call, BC_PARAMS_MARK, run_mark);
}

/* Triggers */

void bc_api_list_triggers(struct bc_call *call)
{
	const struct bc_trigger_engine *engine = bc_recorder_triggers(call->api->recorder);
	json_t *array = json_array();

	for (unsigned i = 0; i < engine->count; i++)
		json_array_append_new(array, bc_trigger_json(&engine->armed[i].trigger));
	bc_call_respond(call->request, 200, "triggers", array);
}

/* NULL: no trigger of this name is armed, or out of memory. */
static json_t *find_trigger(const struct bc_call *call, const char *name)
{
	const struct bc_trigger *trigger = bc_trigger_engine_find(
		bc_recorder_triggers(call->api->recorder), name);

	return trigger != NULL ? bc_trigger_json(trigger) : NULL;
}

static void respond_trigger(struct bc_call *call, unsigned status, const char *name)
{
	json_t *trigger = find_trigger(call, name);

	if (trigger != NULL)
		bc_call_respond(call->request, status, "trigger", trigger);
	else
		bc_call_error(call->request, 404, "no trigger of this name is armed", NULL);
}

void bc_api_get_trigger(struct bc_call *call)
{
	respond_trigger(call, 200, call->name);
}

static enum bc_refusal run_arm(struct bc_call *call, const struct bc_api_params *params)
{
	const struct bc_trigger *trigger = &params->triggers[0];
	enum bc_refusal refusal = bc_recorder_arm(
		call->api->recorder, trigger, call->err, sizeof(call->err));

	if (refusal == BC_GRANTED)
		respond_trigger(call, 201, trigger->name);
	return refusal;
}

void bc_api_arm_trigger(struct bc_call *call)
{
	(void)run_request(call, BC_PARAMS_TRIGGER, run_arm);
}

/* Responds with the trigger's last state. */
void bc_api_disarm_trigger(struct bc_call *call)
{
	json_t *trigger = find_trigger(call, call->name);
	enum bc_refusal refusal = bc_recorder_disarm(
		call->api->recorder, call->name, call->err, sizeof(call->err));
	if (refusal == BC_GRANTED) {
		bc_call_respond(call->request, 200, "trigger", trigger);
		return;
	}
	json_decref(trigger);
	bc_call_refuse(call, refusal);
}
