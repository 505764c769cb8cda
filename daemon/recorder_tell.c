#include "daemon/recorder_parts.h"

#include <stdio.h>
#include <string.h>

#include "capture/board.h"
#include "daemon/rfc3339.h"
#include "formats/json.h"
#include "formats/metadata.h"

static bool is_draining(const struct bc_recorder *r)
{
	for (const struct bc_take *t = r->takes; t != NULL; t = t->next)
		if (t->state == BC_TAKE_DRAINING)
			return true;
	return false;
}

static const char *state_of(const struct bc_recorder *r)
{
	const struct bc_take *take = r->live.take;

	if (r->replay.take != NULL)
		return "replaying";
	if (r->live.session != NULL && !r->live.is_over &&
		bc_session_is_draining(r->live.session) && (take != NULL || is_draining(r)))
		return "draining";
	if (take != NULL) {
		const struct bc_source *source = bc_session_source(r->live.session);
		if (source->board != NULL && source->board->state != BC_BOARD_STREAMING)
			return "waiting";
		return source->is_replay ? "replaying" : "recording";
	}
	if (is_draining(r))
		return "draining";
	return r->live.is_over && r->outcome.has_failed ? "failed" : "idle";
}

bool bc_recorder_is_over(const struct bc_recorder *r)
{
	return r->live.is_over;
}

/* What of a take that has not ended is known. */
static struct bc_take_now now_of(struct bc_recorder *r, const struct bc_take *take)
{
	const struct bc_writer_report *report = bc_pipeline_report(r->pipeline);
	const struct bc_counts *c = take->has_after ? &take->counts_after
						    : bc_pipeline_counts(r->pipeline);
	const struct bc_counts *b = &take->counts_before;
	bool is_at_it = report->recording_tag == take->recording.tag;
	bool has_begun = report->file[0] != '\0' || report->recording_records != 0;

	return (struct bc_take_now){
		.records = is_at_it ? report->recording_records : 0,
		.bytes = is_at_it ? report->recording_bytes : 0,
		.segments = is_at_it && has_begun ? report->segment + 1 : 0,
		.lost = c->dropped_buffer - b->dropped_buffer + c->dropped_disk - b->dropped_disk +
			c->board_lost - b->board_lost,
		.file = is_at_it ? report->file : "",
		.is_open = is_at_it && report->is_open,
	};
}

bool bc_recorder_is_heard(struct bc_recorder *r)
{
	return r->options.has_listeners(r->options.context);
}

static void tell(struct bc_recorder *r, const char *name, json_t *object)
{
	r->options.on_event(r->options.context, name, object);
}

static json_t *take_json(struct bc_recorder *r, const struct bc_take *take)
{
	struct bc_take_now now = now_of(r, take);

	return bc_take_json(take, &now, bc_recorder_config(r)->dir);
}

static json_t *replay_json(struct bc_recorder *r, const struct bc_take *take)
{
	struct bc_take_now now = now_of(r, take);

	return bc_take_replay_json(take, &now, bc_recorder_config(r)->dir);
}

void bc_recorder_tell_take(struct bc_recorder *r, const char *event, const struct bc_take *take)
{
	if (bc_recorder_is_heard(r))
		tell(r, event, json_pack("{s:o}", "recording", take_json(r, take)));
}

void bc_recorder_tell_replay(struct bc_recorder *r, const char *event, const struct bc_take *take)
{
	if (bc_recorder_is_heard(r))
		tell(r, event, json_pack("{s:o}", "replay", replay_json(r, take)));
}

/* The state is always told before anything that it is seen in. */
void bc_recorder_tell_state(struct bc_recorder *r)
{
	const char *now = state_of(r);

	if (strcmp(now, r->state) == 0)
		return;
	if (bc_recorder_is_heard(r))
		tell(r, "state", json_pack("{s:s, s:s}", "from", r->state, "to", now));
	r->state = now;
}

static void tell_disk(struct bc_recorder *r)
{
	const struct bc_writer_report *report = bc_pipeline_report(r->pipeline);

	bool is_new = strcmp(report->error, r->disk_error) != 0;
	if (report->is_stuck == r->is_stuck && !is_new)
		return;
	r->is_stuck = report->is_stuck;
	memcpy(r->disk_error, report->error, sizeof(r->disk_error));
	if (bc_recorder_is_heard(r))
		tell(r, "disk",
			json_pack("{s:b, s:o}", "stuck", report->is_stuck, "error",
				bc_json_text(report->is_stuck || is_new ? report->error : NULL)));
}

static void tell_board(struct bc_recorder *r)
{
	const struct bc_board *board = r->live.session != NULL
					       ? bc_session_source(r->live.session)->board
					       : NULL;

	if (board == NULL || (int)board->state == r->board_state)
		return;
	r->board_state = (int)board->state;
	if (bc_recorder_is_heard(r))
		tell(r, "board",
			json_pack("{s:s, s:o}", "state", bc_board_state_name(board->state), "error",
				bc_json_text_or_null(board->last_error)));
}

static void tell_gaps_of(struct bc_recorder *r, struct bc_part *part)
{
	struct bc_gap_sum sums[BC_GAP_CAUSES];

	if (part->session == NULL)
		return;
	bc_lane_take_gaps(bc_session_lane(part->session), sums);
	for (unsigned cause = 0; cause < BC_GAP_CAUSES; cause++) {
		const struct bc_gap_sum *sum = &sums[cause];
		if ((sum->gaps == 0 && sum->lost == 0) || !bc_recorder_is_heard(r))
			continue;
		tell(r, "gap",
			json_pack("{s:s, s:o, s:o, s:b}", "cause", bc_gap_cause_name(cause), "gaps",
				bc_json_u64(sum->gaps), "lost", bc_json_u64(sum->lost), "exact",
				!sum->is_inexact));
	}
}

void bc_recorder_tell_gaps(struct bc_recorder *r)
{
	tell_gaps_of(r, &r->live);
	tell_gaps_of(r, &r->replay);
}

void bc_recorder_tell_changes(struct bc_recorder *r)
{
	bc_recorder_tell_gaps(r);
	tell_board(r);
	tell_disk(r);
	bc_recorder_tell_state(r);
}

void bc_recorder_tell_armed(struct bc_recorder *r, const struct bc_trigger *trigger)
{
	if (bc_recorder_is_heard(r))
		tell(r, "trigger-armed", json_pack("{s:o}", "trigger", bc_trigger_json(trigger)));
}

void bc_recorder_tell_disarmed(struct bc_recorder *r, const char *name)
{
	if (bc_recorder_is_heard(r))
		tell(r, "trigger-disarmed", json_pack("{s:o}", "name", bc_json_text(name)));
}

void bc_recorder_tell_segment(struct bc_recorder *r, const struct bc_writer_news *news)
{
	bool is_sealed = news->kind != BC_NEWS_BEGUN;
	char path[4096 + BC_SEGMENT_NAME_MAX + sizeof(BC_PARTIAL_SUFFIX)];
	char started[BC_RFC3339_BYTES];

	if (!bc_recorder_is_heard(r))
		return;
	snprintf(path, sizeof(path), "%s/%s%s", bc_recorder_config(r)->dir, news->file,
		is_sealed ? "" : BC_PARTIAL_SUFFIX);
	bc_rfc3339_write(started, news->wall_ns);
	json_t *object = bc_json_object((struct bc_json_member[]){
		{"recording", bc_json_text(news->recording->header.recording)},
		{"segment", bc_json_u64(news->segment)},
		{"path", bc_json_text(path)},
		{NULL, NULL},
	});
	if (is_sealed)
		json_object_update_new(
			object, bc_json_object((struct bc_json_member[]){
					{"records", bc_json_u64(news->records)},
					{"bytes", bc_json_u64(news->bytes)},
					{"chunks", bc_json_u64(news->chunks)},
					{"gaps", bc_json_u64(news->gaps)},
					{"lost", bc_json_u64(news->lost)},
					{"hash", bc_json_text(news->hash)},
					{"first_record", bc_json_u64(news->first_record)},
					{"started", bc_json_text(started)},
					{NULL, NULL},
				}));
	tell(r,
		news->kind == BC_NEWS_BEGUN    ? "segment-begun"
		: news->kind == BC_NEWS_SEALED ? "segment-sealed"
					       : "capture-sealed",
		object);
}

/* Null where nothing is recorded: of a mark in what the flight recorder holds. */
static json_t *record_json(uint64_t record)
{
	return record != UINT64_MAX ? bc_json_u64(record) : json_null();
}

json_t *bc_recorder_mark_json(const struct bc_mark *mark)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "text", bc_json_text(mark->text), "record",
		record_json(mark->record), "tick", bc_json_u64(mark->tick), "epoch",
		bc_json_u64(mark->epoch));
}

void bc_recorder_tell_mark(struct bc_recorder *r, const struct bc_mark *mark)
{
	if (bc_recorder_is_heard(r))
		tell(r, "mark", json_pack("{s:o}", "mark", bc_recorder_mark_json(mark)));
}

void bc_recorder_tell_note(struct bc_recorder *r, const struct bc_take *take, const char *note)
{
	if (bc_recorder_is_heard(r))
		tell(r, "note",
			json_pack("{s:o, s:o}", "recording",
				bc_json_text(take->recording.header.recording), "metadata",
				bc_metadata_parse(note)));
}

void bc_recorder_tell_hit(struct bc_recorder *r, const struct bc_hit *hit, uint64_t record)
{
	if (!bc_recorder_is_heard(r))
		return;
	tell(r, "trigger",
		bc_json_object((struct bc_json_member[]){
			{"name", bc_json_text(hit->trigger->name)},
			{"action", bc_json_text(bc_trigger_action_name(hit->trigger->action))},
			{"record", record_json(record)},
			{"tick", bc_json_u64(hit->tick)},
			{"epoch", bc_json_u64(hit->epoch)},
			{NULL, NULL},
		}));
}

/* Objects */

/* The recording that the status shows: the one under way or being sealed; of --once also when it
 * has ended. */
static const struct bc_take *shown_take(struct bc_recorder *r)
{
	const struct bc_part *part = bc_recorder_part(r);

	if (part != NULL)
		return part->take;
	if (r->takes == NULL || (r->takes->state == BC_TAKE_ENDED && !r->options.is_once))
		return NULL;
	return r->takes;
}

json_t *bc_recorder_take_json(struct bc_recorder *r)
{
	const struct bc_take *take = shown_take(r);

	return take != NULL && take->state != BC_TAKE_ENDED ? take_json(r, take) : NULL;
}

json_t *bc_recorder_known_json(struct bc_recorder *r, const char *id)
{
	const struct bc_take *take = r->takes;

	while (take != NULL && strcmp(take->recording.header.recording, id) != 0)
		take = take->next;
	return take != NULL ? take_json(r, take) : NULL;
}

json_t *bc_recorder_ended_json(struct bc_recorder *r, const struct bc_take *take)
{
	return take_json(r, take);
}

json_t *bc_recorder_ended_replay_json(struct bc_recorder *r, const struct bc_take *take)
{
	return replay_json(r, take);
}

json_t *bc_recorder_replay_json(struct bc_recorder *r, const char *id)
{
	const struct bc_take *take = bc_recorder_find_replay(r, id);

	return take != NULL ? replay_json(r, take) : NULL;
}

json_t *bc_recorder_replays_json(struct bc_recorder *r)
{
	json_t *array = json_array();

	for (const struct bc_take *t = r->takes; t != NULL; t = t->next)
		if (t->is_replay)
			json_array_append_new(array, replay_json(r, t));
	return array;
}

json_t *bc_recorder_triggers_json(struct bc_recorder *r)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < r->live.watch.count; i++)
		json_array_append_new(array, bc_trigger_json(&r->live.watch.armed[i].trigger));
	return array;
}

json_t *bc_recorder_trigger_json(struct bc_recorder *r, const char *name)
{
	const struct bc_trigger *trigger = bc_watch_find(&r->live.watch, name);

	return trigger != NULL ? bc_trigger_json(trigger) : NULL;
}

const struct bc_writer_report *bc_recorder_report(const struct bc_recorder *r)
{
	return bc_pipeline_report(r->pipeline);
}

struct bc_counts *bc_recorder_counts(struct bc_recorder *r)
{
	return bc_pipeline_counts(r->pipeline);
}

static const struct bc_status_flight *flight_of(struct bc_recorder *r)
{
	if (!bc_recorder_is_flight(r) || r->live.is_over)
		return NULL;
	struct bc_flight_state held = bc_lane_flight(bc_session_lane(r->live.session));
	r->flight_status = (struct bc_status_flight){
		.seconds = (double)held.ns * 1e-9,
		.bytes = held.records * BC_RECORD_BYTES,
		.records = held.records,
		.chunks = held.chunks,
		.limit_seconds = (double)r->flight.ns * 1e-9,
		.limit_bytes = r->flight.bytes,
	};
	return &r->flight_status;
}

struct bc_status bc_recorder_status(struct bc_recorder *r)
{
	const struct bc_source *source = bc_session_source(r->live.session);

	bc_recorder_tell_changes(r);
	const struct bc_take *take = shown_take(r);
	bool is_replay = take != NULL && take->is_replay;
	return (struct bc_status){
		.state = r->state,
		.source_kind = source->kind,
		.source_name = source->name,
		.clock_hz = source->clock_hz,
		.board = source->board,
		.recording = take != NULL ? &take->recording : NULL,
		.metadata = take != NULL ? take->recording.header.metadata : NULL,
		.dir = bc_recorder_config(r)->dir,
		.counts = bc_pipeline_counts(r->pipeline),
		.report = bc_pipeline_report(r->pipeline),
		.buffer = bc_pipeline_buffer(r->pipeline),
		.damages = bc_session_outcome(r->live.session)->damages,
		.mode = bc_record_mode_name(bc_recorder_config(r)->recording.mode),
		.flight = flight_of(r),
		.replay_id = is_replay ? take->recording.header.recording : NULL,
		.replay_path = is_replay ? take->path : NULL,
		.triggers = r->live.watch.count,
		.sealed_segments = r->sealed,
	};
}
