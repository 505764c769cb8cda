#include "daemon/recorder_events.h"

#include <stdio.h>
#include <string.h>

#include "capture/board.h"
#include "daemon/lane.h"
#include "daemon/rfc3339.h"
#include "daemon/take.h"
#include "daemon/watch.h"
#include "formats/json.h"

/* {NAME: value}, of which it takes the value. */
static cJSON *wrap(const char *name, cJSON *value)
{
	cJSON *object = cJSON_CreateObject();

	if (object != NULL && value != NULL && cJSON_AddItemToObject(object, name, value))
		return object;
	cJSON_Delete(object);
	cJSON_Delete(value);
	return NULL;
}

bool bc_recorder_events_are_heard(const struct bc_recorder_events *e)
{
	return e->has_listeners(e->context);
}

static void emit(struct bc_recorder_events *e, const char *name, cJSON *object)
{
	e->on_event(e->context, name, object);
}

void bc_recorder_events_take(struct bc_recorder_events *e, const char *event,
	const struct bc_take *take, const struct bc_take_now *now)
{
	if (bc_recorder_events_are_heard(e))
		emit(e, event, wrap("recording", bc_take_json(take, now, e->dir)));
}

void bc_recorder_events_replay(struct bc_recorder_events *e, const char *event,
	const struct bc_take *take, const struct bc_take_now *now)
{
	if (bc_recorder_events_are_heard(e))
		emit(e, event, wrap("replay", bc_take_replay_json(take, now, e->dir)));
}

void bc_recorder_events_state(struct bc_recorder_events *e, const char *now)
{
	cJSON *object;

	if (strcmp(now, e->state) == 0)
		return;
	object = bc_recorder_events_are_heard(e) ? cJSON_CreateObject() : NULL;
	if (object != NULL) {
		bc_json_add_text(object, "from", e->state);
		bc_json_add_text(object, "to", now);
		emit(e, "state", object);
	}
	e->state = now;
}

void bc_recorder_events_disk(struct bc_recorder_events *e, const struct bc_writer_report *report)
{
	cJSON *object;

	bool is_new = strcmp(report->error, e->disk_error) != 0;
	if (report->is_stuck == e->is_stuck && !is_new)
		return;
	e->is_stuck = report->is_stuck;
	memcpy(e->disk_error, report->error, sizeof(e->disk_error));
	object = bc_recorder_events_are_heard(e) ? cJSON_CreateObject() : NULL;
	if (object == NULL)
		return;
	cJSON_AddBoolToObject(object, "stuck", report->is_stuck);
	bc_json_add_text(object, "error", report->is_stuck || is_new ? report->error : NULL);
	emit(e, "disk", object);
}

void bc_recorder_events_board(struct bc_recorder_events *e, const struct bc_board *board)
{
	cJSON *object;

	if (board == NULL || (int)board->state == e->board_state)
		return;
	e->board_state = (int)board->state;
	object = bc_recorder_events_are_heard(e) ? cJSON_CreateObject() : NULL;
	if (object == NULL)
		return;
	bc_json_add_text(object, "state", bc_board_state_name(board->state));
	bc_json_add_text(object, "error", board->last_error[0] != '\0' ? board->last_error : NULL);
	emit(e, "board", object);
}

void bc_recorder_events_gaps(struct bc_recorder_events *e, const struct bc_gap_sum *sums)
{
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		const struct bc_gap_sum *sum = &sums[cause];
		cJSON *object = (sum->gaps != 0 || sum->lost != 0) &&
						bc_recorder_events_are_heard(e)
					? cJSON_CreateObject()
					: NULL;
		if (object == NULL)
			continue;
		bc_json_add_text(object, "cause", bc_gap_cause_name(cause));
		bc_json_add_u64(object, "gaps", sum->gaps);
		bc_json_add_u64(object, "lost", sum->lost);
		cJSON_AddBoolToObject(object, "exact", !sum->is_inexact);
		emit(e, "gap", object);
	}
}

void bc_recorder_events_armed(struct bc_recorder_events *e, const struct bc_trigger *trigger)
{
	if (bc_recorder_events_are_heard(e))
		emit(e, "trigger-armed", wrap("trigger", bc_trigger_json(trigger)));
}

void bc_recorder_events_disarmed(struct bc_recorder_events *e, const char *name)
{
	if (bc_recorder_events_are_heard(e))
		emit(e, "trigger-disarmed", wrap("name", cJSON_CreateString(name)));
}

void bc_recorder_events_segment(struct bc_recorder_events *e, const struct bc_writer_news *news)
{
	bool is_sealed = news->kind != BC_NEWS_BEGUN;
	cJSON *o = bc_recorder_events_are_heard(e) ? cJSON_CreateObject() : NULL;
	char path[4096 + BC_SEGMENT_NAME_MAX + sizeof(BC_PARTIAL_SUFFIX)];
	char started[BC_RFC3339_BYTES];

	if (o == NULL)
		return;
	snprintf(path, sizeof(path), "%s/%s%s", e->dir, news->file,
		is_sealed ? "" : BC_PARTIAL_SUFFIX);
	bc_rfc3339_write(started, news->wall_ns);
	bc_json_add_text(o, "recording", news->recording->header.recording);
	bc_json_add_u64(o, "segment", news->segment);
	bc_json_add_text(o, "path", path);
	if (is_sealed) {
		bc_json_add_u64(o, "records", news->records);
		bc_json_add_u64(o, "bytes", news->bytes);
		bc_json_add_u64(o, "chunks", news->chunks);
		bc_json_add_u64(o, "gaps", news->gaps);
		bc_json_add_u64(o, "lost", news->lost);
		bc_json_add_text(o, "hash", news->hash);
		bc_json_add_u64(o, "first_record", news->first_record);
		bc_json_add_text(o, "started", started);
	}
	emit(e,
		news->kind == BC_NEWS_BEGUN    ? "segment-begun"
		: news->kind == BC_NEWS_SEALED ? "segment-sealed"
					       : "capture-sealed",
		o);
}

static bool add_record(cJSON *object, uint64_t record)
{
	if (record == UINT64_MAX)
		return cJSON_AddNullToObject(object, "record") != NULL;
	return bc_json_add_u64(object, "record", record);
}

void bc_recorder_events_mark(
	struct bc_recorder_events *e, const char *text, const struct bc_place *place)
{
	cJSON *object = bc_recorder_events_are_heard(e) ? cJSON_CreateObject() : NULL;

	if (object == NULL)
		return;
	bc_json_add_text(object, "text", text);
	add_record(object, place->record);
	bc_json_add_u64(object, "tick", place->tick);
	bc_json_add_u64(object, "epoch", place->epoch);
	emit(e, "mark", wrap("mark", object));
}

void bc_recorder_events_note(
	struct bc_recorder_events *e, const struct bc_take *take, const char *note)
{
	cJSON *object = bc_recorder_events_are_heard(e) ? cJSON_CreateObject() : NULL;

	if (object == NULL)
		return;
	bc_json_add_text(object, "recording", take->recording.header.recording);
	cJSON_AddItemToObject(
		object, "metadata", note[0] != '\0' ? cJSON_Parse(note) : cJSON_CreateObject());
	emit(e, "note", object);
}

void bc_recorder_events_hit(struct bc_recorder_events *e, const struct bc_hit *hit, uint64_t record)
{
	cJSON *object = bc_recorder_events_are_heard(e) ? cJSON_CreateObject() : NULL;

	if (object == NULL)
		return;
	bc_json_add_text(object, "name", hit->trigger->name);
	bc_json_add_text(object, "action", bc_trigger_action_name(hit->trigger->action));
	add_record(object, record);
	bc_json_add_u64(object, "tick", hit->tick);
	bc_json_add_u64(object, "epoch", hit->epoch);
	emit(e, "trigger", object);
}
