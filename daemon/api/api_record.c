#include "daemon/api/api_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/api_params.h"
#include "daemon/http/permissions.h"
#include "formats/base/json.h"

/* Recordings */

/* An answer that comes later. */
struct later {
	struct bc_api *api;
	struct bc_request *request;
	unsigned status;
};

/* Returns NULL when memory ran out. */
static struct later *answer_later(struct bc_call *call, unsigned status)
{
	struct later *later = malloc(sizeof(*later));

	if (later != NULL)
		*later = (struct later){call->api, call->request, status};
	return later;
}

/* What `later` waits for has been asked of the recorder. */
static void settle(struct bc_call *call, struct later *later, enum bc_refusal refusal)
{
	if (refusal == BC_GRANTED)
		return;
	free(later);
	bc_call_refuse(call, refusal);
}

static bool is_text(const json_t *object, const char *name, const char *text)
{
	const char *value = json_string_value(json_object_get(object, name));

	return value != NULL && strcmp(value, text) == 0;
}

/* What the recorder knows better than the directory: what isn't sealed, wasn't when the directory
 * was read, or goes on although all that there is of it just now is sealed. NULL: nothing. */
static json_t *known_better(struct bc_recorder *recorder, const json_t *row)
{
	const char *id = json_string_value(json_object_get(row, "id"));
	json_t *known = id != NULL ? bc_recorder_known_json(recorder, id) : NULL;

	if (is_text(row, "state", "torn") || json_is_null(json_object_get(known, "ended")))
		return known;
	json_decref(known);
	return NULL;
}

/* Returns false when memory ran out. */
static bool put_known(struct bc_recorder *recorder, json_t *rows)
{
	json_t *current = bc_recorder_recording_json(recorder);
	const json_t *id = json_object_get(current, "id");
	bool is_listed = current == NULL;
	bool ok = true;
	size_t i;
	json_t *row;

	json_array_foreach(rows, i, row)
	{
		is_listed = is_listed || json_equal(json_object_get(row, "id"), id);
		json_t *known = known_better(recorder, row);
		if (known != NULL)
			ok = json_array_set_new(rows, i, known) == 0 && ok;
	}
	if (!is_listed)
		return json_array_append_new(rows, current) == 0 && ok;
	json_decref(current);
	return ok;
}

static void on_listed(void *context, json_t *rows)
{
	struct later *later = context;

	if (rows == NULL) {
		bc_call_error(later->request, 500,
			"the directory can't be read; the log of buscapd says why", NULL);
	} else {
		bool ok = put_known(later->api->recorder, rows);
		json_t *root = json_pack("{s:o, s:o}", "left_out",
			bc_json_u64(bc_catalog_omitted(later->api->catalog)), "recordings", rows);
		if (!ok) {
			json_decref(root);
			root = NULL;
		}
		bc_call_respond_object(later->request, 200, root, NULL);
	}
	free(later);
}

void bc_api_list_recordings(struct bc_call *call)
{
	struct later *later = answer_later(call, 200);

	if (later != NULL && bc_catalog_list(call->api->catalog, later, on_listed) == 0)
		return;
	free(later);
	bc_request_respond(call->request, 500, BC_JSON_TYPE, NULL, NULL);
}

/* What a body asks for is read into memory of its own, and then done. */
typedef bool (*read_asked)(
	struct bc_api_params *asked, const char *body, size_t bytes, char *err, size_t errlen);
typedef enum bc_refusal (*do_asked)(struct bc_call *call, const struct bc_api_params *asked);

/* What it asks for may want more rights than its path; it has been answered then. */
static bool has_rights(struct bc_call *call, const struct bc_api_params *asked)
{
	return asked->start.triggers_count == 0 ||
	       bc_call_check_permissions(call, bc_permission_bit(BC_PERMISSION_TRIGGER));
}

/* Returns whether it is done; else the request has been answered. */
static bool do_as_asked(struct bc_call *call, read_asked read, do_asked act)
{
	size_t bytes;
	const char *body = bc_request_body(call->request, &bytes);
	struct bc_api_params *asked = calloc(1, sizeof(*asked));
	enum bc_refusal refusal = BC_FAILED;

	snprintf(call->err, sizeof(call->err), "memory ran out");
	if (asked != NULL && !read(asked, body, bytes, call->err, sizeof(call->err))) {
		refusal = BC_BAD_VALUE;
	} else if (asked != NULL && !has_rights(call, asked)) {
		free(asked);
		return false;
	} else if (asked != NULL) {
		refusal = act(call, asked);
	}
	free(asked);
	if (refusal != BC_GRANTED)
		bc_call_refuse(call, refusal);
	return refusal == BC_GRANTED;
}

static void answer_current(struct bc_call *call, unsigned status)
{
	bc_call_respond(call->request, status, "recording",
		bc_recorder_recording_json(call->api->recorder));
}

static enum bc_refusal start(struct bc_call *call, const struct bc_api_params *asked)
{
	return bc_recorder_start(call->api->recorder, &asked->start, call->err, sizeof(call->err));
}

void bc_api_start_recording(struct bc_call *call)
{
	if (do_as_asked(call, bc_api_params_start, start))
		answer_current(call, 201);
}

static void on_sealed(void *context, const struct bc_recording *ended)
{
	struct later *later = context;

	bc_call_respond(later->request, later->status, "recording",
		bc_recorder_ended_json(later->api->recorder, ended));
	free(later);
}

static enum bc_refusal snapshot(struct bc_call *call, const struct bc_api_params *asked)
{
	return bc_recorder_snapshot(
		call->api->recorder, &asked->start, call->err, sizeof(call->err));
}

/* One that goes on is answered as it begins, one that is whole when it is sealed. */
void bc_api_snapshot(struct bc_call *call)
{
	if (!do_as_asked(call, bc_api_params_snapshot, snapshot))
		return;
	struct later *later = answer_later(call, 201);
	if (later != NULL && bc_recorder_await_sealing(call->api->recorder, later, on_sealed))
		return;
	free(later);
	answer_current(call, 201);
}

void bc_api_get_recording(struct bc_call *call)
{
	json_t *current = bc_recorder_recording_json(call->api->recorder);

	if (current != NULL)
		bc_call_respond(call->request, 200, "recording", current);
	else
		bc_call_error(call->request, 404, "nothing is being recorded", NULL);
}

static enum bc_refusal note(struct bc_call *call, const struct bc_api_params *asked)
{
	return bc_recorder_note(call->api->recorder, asked->metadata, call->err, sizeof(call->err));
}

void bc_api_add_note(struct bc_call *call)
{
	if (do_as_asked(call, bc_api_params_note, note))
		answer_current(call, 200);
}

void bc_api_stop_recording(struct bc_call *call)
{
	struct later *later = answer_later(call, 200);

	if (later == NULL)
		bc_request_respond(call->request, 500, BC_JSON_TYPE, NULL, NULL);
	else
		settle(call, later,
			bc_recorder_stop(call->api->recorder, call->err, sizeof(call->err), later,
				on_sealed));
}

void bc_api_rotate(struct bc_call *call)
{
	size_t bytes;
	const char *body = bc_request_body(call->request, &bytes);
	enum bc_refusal refusal = BC_BAD_VALUE;

	if (bc_api_params_nothing(body, bytes, call->err, sizeof(call->err)))
		refusal = bc_recorder_rotate(call->api->recorder, call->err, sizeof(call->err));
	if (refusal == BC_GRANTED)
		answer_current(call, 200);
	else
		bc_call_refuse(call, refusal);
}

static enum bc_refusal mark(struct bc_call *call, const struct bc_api_params *asked)
{
	struct bc_mark set;
	enum bc_refusal refusal = bc_recorder_mark(
		call->api->recorder, asked->mark, &set, call->err, sizeof(call->err));

	if (refusal == BC_GRANTED)
		bc_call_respond(call->request, 201, "mark", bc_recorder_mark_json(&set));
	return refusal;
}

void bc_api_set_mark(struct bc_call *call)
{
	(void)do_as_asked(call, bc_api_params_mark, mark);
}

/* Triggers */

void bc_api_list_triggers(struct bc_call *call)
{
	bc_call_respond(
		call->request, 200, "triggers", bc_recorder_triggers_json(call->api->recorder));
}

/* Answers with the trigger of that name, if there is one. */
static void answer_trigger(struct bc_call *call, unsigned status, const char *name)
{
	json_t *one = bc_recorder_trigger_json(call->api->recorder, name);

	if (one != NULL)
		bc_call_respond(call->request, status, "trigger", one);
	else
		bc_call_error(call->request, 404, "no trigger of that name is armed", NULL);
}

void bc_api_get_trigger(struct bc_call *call)
{
	answer_trigger(call, 200, call->name);
}

static enum bc_refusal arm(struct bc_call *call, const struct bc_api_params *asked)
{
	const struct bc_trigger *trigger = &asked->triggers[0];
	enum bc_refusal refusal = bc_recorder_arm(
		call->api->recorder, trigger, call->err, sizeof(call->err));

	if (refusal == BC_GRANTED)
		answer_trigger(call, 201, trigger->name);
	return refusal;
}

void bc_api_arm_trigger(struct bc_call *call)
{
	(void)do_as_asked(call, bc_api_params_trigger, arm);
}

/* The answer is how it stood. */
void bc_api_disarm_trigger(struct bc_call *call)
{
	json_t *one = bc_recorder_trigger_json(call->api->recorder, call->name);
	enum bc_refusal refusal = bc_recorder_disarm(
		call->api->recorder, call->name, call->err, sizeof(call->err));
	if (refusal == BC_GRANTED) {
		bc_call_respond(call->request, 200, "trigger", one);
		return;
	}
	json_decref(one);
	bc_call_refuse(call, refusal);
}

/* Replays */

void bc_api_list_replays(struct bc_call *call)
{
	bc_call_respond(
		call->request, 200, "replays", bc_recorder_replays_json(call->api->recorder));
}

static void answer_replay(struct bc_call *call, unsigned status, const char *id)
{
	json_t *one = bc_recorder_replay_json(call->api->recorder, id);

	if (one != NULL)
		bc_call_respond(call->request, status, "replay", one);
	else
		bc_call_error(call->request, 404,
			strcmp(id, "current") == 0 ? "nothing is being replayed"
						   : "no replay of this run has that id",
			NULL);
}

void bc_api_get_replay(struct bc_call *call)
{
	answer_replay(call, 200, call->name);
}

static enum bc_refusal replay(struct bc_call *call, const struct bc_api_params *asked)
{
	return bc_recorder_replay(
		call->api->recorder, &asked->replay, call->err, sizeof(call->err));
}

void bc_api_start_replay(struct bc_call *call)
{
	if (do_as_asked(call, bc_api_params_replay, replay))
		answer_replay(call, 201, "current");
}

static void on_cancelled(void *context, const struct bc_recording *ended)
{
	struct later *later = context;

	bc_call_respond(later->request, later->status, "replay",
		bc_recorder_ended_replay_json(later->api->recorder, ended));
	free(later);
}

void bc_api_cancel_replay(struct bc_call *call)
{
	struct later *later = answer_later(call, 200);

	if (later == NULL)
		bc_request_respond(call->request, 500, BC_JSON_TYPE, NULL, NULL);
	else
		settle(call, later,
			bc_recorder_cancel(call->api->recorder, call->name, call->err,
				sizeof(call->err), later, on_cancelled));
}
