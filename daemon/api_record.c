#include "daemon/api_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api_asked.h"
#include "daemon/rights.h"
#include "formats/json.h"

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

static const char *text_of(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

	return text != NULL ? text : "";
}

/* What the recorder knows better than the directory: what isn't sealed, wasn't when the directory
 * was read, or goes on although all that there is of it just now is sealed. NULL: nothing. */
static cJSON *known_better(struct bc_recorder *recorder, const cJSON *row)
{
	cJSON *known = bc_recorder_known_json(recorder, text_of(row, "id"));
	bool is_better = strcmp(text_of(row, "state"), "torn") == 0 ||
			 cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(known, "ended"));

	if (known != NULL && is_better)
		return known;
	cJSON_Delete(known);
	return NULL;
}

/* Returns false when memory ran out. */
static bool put_known(struct bc_recorder *recorder, cJSON *rows)
{
	cJSON *current = bc_recorder_take_json(recorder);
	cJSON *next;
	bool is_listed = current == NULL;

	for (cJSON *row = rows->child; row != NULL; row = next) {
		next = row->next;
		is_listed = is_listed || strcmp(text_of(row, "id"), text_of(current, "id")) == 0;
		cJSON *known = known_better(recorder, row);
		if (known != NULL && !cJSON_ReplaceItemViaPointer(rows, row, known)) {
			cJSON_Delete(known);
			cJSON_Delete(current);
			return false;
		}
	}
	if (!is_listed)
		return cJSON_AddItemToArray(rows, current);
	cJSON_Delete(current);
	return true;
}

static void on_listed(void *context, cJSON *rows)
{
	struct later *later = context;
	cJSON *root = rows != NULL ? cJSON_CreateObject() : NULL;

	if (rows == NULL) {
		bc_call_error(later->request, 500,
			"the directory can't be read; the log of buscapd says why", NULL);
	} else if (root == NULL || !put_known(later->api->recorder, rows) ||
		   !bc_json_add_u64(root, "left_out", bc_catalog_left_out(later->api->catalog)) ||
		   !cJSON_AddItemToObject(root, "recordings", rows)) {
		cJSON_Delete(root);
		cJSON_Delete(rows);
		bc_call_answer_object(later->request, 500, NULL, NULL);
	} else {
		bc_call_answer_object(later->request, 200, root, NULL);
	}
	free(later);
}

void bc_api_list_recordings(struct bc_call *call)
{
	struct later *later = answer_later(call, 200);

	if (later != NULL && bc_catalog_list(call->api->catalog, later, on_listed) == 0)
		return;
	free(later);
	bc_request_answer(call->request, 500, BC_JSON_TYPE, NULL, NULL);
}

/* What a body asks for is read into memory of its own, and then done. */
typedef bool (*read_asked)(
	struct bc_asked *asked, const char *body, size_t bytes, char *why, size_t room);
typedef enum bc_refusal (*do_asked)(struct bc_call *call, const struct bc_asked *asked);

/* What it asks for may want more rights than its path; it has been answered then. */
static bool has_rights(struct bc_call *call, const struct bc_asked *asked)
{
	return asked->start.triggers_count == 0 ||
	       bc_call_may(call, bc_right_bit(BC_RIGHT_TRIGGER));
}

/* Returns whether it is done; else the request has been answered. */
static bool do_as_asked(struct bc_call *call, read_asked read, do_asked act)
{
	size_t bytes;
	const char *body = bc_request_body(call->request, &bytes);
	struct bc_asked *asked = calloc(1, sizeof(*asked));
	enum bc_refusal refusal = BC_FAILED;

	snprintf(call->why, sizeof(call->why), "memory ran out");
	if (asked != NULL && !read(asked, body, bytes, call->why, sizeof(call->why))) {
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
	bc_call_answer(
		call->request, status, "recording", bc_recorder_take_json(call->api->recorder));
}

static enum bc_refusal start(struct bc_call *call, const struct bc_asked *asked)
{
	return bc_recorder_start(call->api->recorder, &asked->start, call->why, sizeof(call->why));
}

void bc_api_start_recording(struct bc_call *call)
{
	if (do_as_asked(call, bc_asked_start, start))
		answer_current(call, 201);
}

static void on_sealed(void *context, const struct bc_take *ended)
{
	struct later *later = context;

	bc_call_answer(later->request, later->status, "recording",
		bc_recorder_ended_json(later->api->recorder, ended));
	free(later);
}

static enum bc_refusal snapshot(struct bc_call *call, const struct bc_asked *asked)
{
	return bc_recorder_snapshot(
		call->api->recorder, &asked->start, call->why, sizeof(call->why));
}

/* One that goes on is answered as it begins, one that is whole when it is sealed. */
void bc_api_take_snapshot(struct bc_call *call)
{
	if (!do_as_asked(call, bc_asked_snapshot, snapshot))
		return;
	struct later *later = answer_later(call, 201);
	if (later != NULL && bc_recorder_await_sealing(call->api->recorder, later, on_sealed))
		return;
	free(later);
	answer_current(call, 201);
}

void bc_api_get_current(struct bc_call *call)
{
	cJSON *current = bc_recorder_take_json(call->api->recorder);

	if (current != NULL)
		bc_call_answer(call->request, 200, "recording", current);
	else
		bc_call_error(call->request, 404, "nothing is being recorded", NULL);
}

static enum bc_refusal note(struct bc_call *call, const struct bc_asked *asked)
{
	return bc_recorder_note(call->api->recorder, asked->metadata, call->why, sizeof(call->why));
}

void bc_api_note_on_current(struct bc_call *call)
{
	if (do_as_asked(call, bc_asked_note, note))
		answer_current(call, 200);
}

void bc_api_stop_current(struct bc_call *call)
{
	struct later *later = answer_later(call, 200);

	if (later == NULL)
		bc_request_answer(call->request, 500, BC_JSON_TYPE, NULL, NULL);
	else
		settle(call, later,
			bc_recorder_stop(call->api->recorder, call->why, sizeof(call->why), later,
				on_sealed));
}

void bc_api_rotate(struct bc_call *call)
{
	size_t bytes;
	const char *body = bc_request_body(call->request, &bytes);
	enum bc_refusal refusal = BC_BAD_VALUE;

	if (bc_asked_nothing(body, bytes, call->why, sizeof(call->why)))
		refusal = bc_recorder_rotate(call->api->recorder, call->why, sizeof(call->why));
	if (refusal == BC_GRANTED)
		answer_current(call, 200);
	else
		bc_call_refuse(call, refusal);
}

/* Null where nothing is recorded: a mark among what the flight recorder holds. */
static bool add_record(cJSON *object, uint64_t record)
{
	if (record == UINT64_MAX)
		return cJSON_AddNullToObject(object, "record") != NULL;
	return bc_json_add_u64(object, "record", record);
}

static cJSON *mark_json(const struct bc_mark *mark)
{
	cJSON *object = cJSON_CreateObject();

	if (object != NULL && bc_json_add_text(object, "text", mark->text) &&
		add_record(object, mark->record) && bc_json_add_u64(object, "tick", mark->tick) &&
		bc_json_add_u64(object, "epoch", mark->epoch))
		return object;
	cJSON_Delete(object);
	return NULL;
}

static enum bc_refusal mark(struct bc_call *call, const struct bc_asked *asked)
{
	struct bc_mark set;
	enum bc_refusal refusal = bc_recorder_mark(
		call->api->recorder, asked->mark, &set, call->why, sizeof(call->why));

	if (refusal == BC_GRANTED)
		bc_call_answer(call->request, 201, "mark", mark_json(&set));
	return refusal;
}

void bc_api_set_mark(struct bc_call *call)
{
	(void)do_as_asked(call, bc_asked_mark, mark);
}

/* Triggers */

void bc_api_list_triggers(struct bc_call *call)
{
	bc_call_answer(
		call->request, 200, "triggers", bc_recorder_triggers_json(call->api->recorder));
}

/* Answers with the trigger of that name, if there is one. */
static void answer_trigger(struct bc_call *call, unsigned status, const char *name)
{
	cJSON *one = bc_recorder_trigger_json(call->api->recorder, name);

	if (one != NULL)
		bc_call_answer(call->request, status, "trigger", one);
	else
		bc_call_error(call->request, 404, "no trigger of that name is armed", NULL);
}

void bc_api_get_trigger(struct bc_call *call)
{
	answer_trigger(call, 200, call->name);
}

static enum bc_refusal arm(struct bc_call *call, const struct bc_asked *asked)
{
	const struct bc_trigger *trigger = &asked->triggers[0];
	enum bc_refusal refusal = bc_recorder_arm(
		call->api->recorder, trigger, call->why, sizeof(call->why));

	if (refusal == BC_GRANTED)
		answer_trigger(call, 201, trigger->name);
	return refusal;
}

void bc_api_arm_trigger(struct bc_call *call)
{
	(void)do_as_asked(call, bc_asked_trigger, arm);
}

/* The answer is how it stood. */
void bc_api_disarm_trigger(struct bc_call *call)
{
	cJSON *one = bc_recorder_trigger_json(call->api->recorder, call->name);
	enum bc_refusal refusal = bc_recorder_disarm(
		call->api->recorder, call->name, call->why, sizeof(call->why));
	if (refusal == BC_GRANTED) {
		bc_call_answer(call->request, 200, "trigger", one);
		return;
	}
	cJSON_Delete(one);
	bc_call_refuse(call, refusal);
}

/* Replays */

void bc_api_list_replays(struct bc_call *call)
{
	bc_call_answer(
		call->request, 200, "replays", bc_recorder_replays_json(call->api->recorder));
}

static void answer_replay(struct bc_call *call, unsigned status, const char *id)
{
	cJSON *one = bc_recorder_replay_json(call->api->recorder, id);

	if (one != NULL)
		bc_call_answer(call->request, status, "replay", one);
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

static enum bc_refusal replay(struct bc_call *call, const struct bc_asked *asked)
{
	return bc_recorder_replay(
		call->api->recorder, &asked->replay, call->why, sizeof(call->why));
}

void bc_api_start_replay(struct bc_call *call)
{
	if (do_as_asked(call, bc_asked_replay, replay))
		answer_replay(call, 201, "current");
}

static void on_cancelled(void *context, const struct bc_take *ended)
{
	struct later *later = context;

	bc_call_answer(later->request, later->status, "replay",
		bc_recorder_ended_replay_json(later->api->recorder, ended));
	free(later);
}

void bc_api_cancel_replay(struct bc_call *call)
{
	struct later *later = answer_later(call, 200);

	if (later == NULL)
		bc_request_answer(call->request, 500, BC_JSON_TYPE, NULL, NULL);
	else
		settle(call, later,
			bc_recorder_cancel(call->api->recorder, call->name, call->why,
				sizeof(call->why), later, on_cancelled));
}
