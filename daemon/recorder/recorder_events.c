#include "daemon/recorder/recorder_events.h"

#include <stdio.h>
#include <string.h>

#include "capture/usb/board.h"
#include "daemon/ingest/channel.h"
#include "daemon/ingest/trigger_engine.h"
#include "daemon/recorder/recording.h"
#include "formats/base/json.h"
#include "formats/segment/metadata.h"

static bool has_listeners(const struct bc_recorder_events *e)
{
	return e->has_listeners(e->context);
}

static void emit_event(struct bc_recorder_events *e, const char *name, json_t *object)
{
	e->on_event(e->context, name, object);
}

void bc_recorder_events_recording(struct bc_recorder_events *e, const char *event,
	const struct bc_recording *recording, const struct bc_recording_now *now)
{
	if (has_listeners(e))
		emit_event(e, event,
			json_pack("{s:o}", "recording", bc_recording_json(recording, now)));
}

void bc_recorder_events_state(struct bc_recorder_events *e, const char *now)
{
	if (strcmp(now, e->state) == 0)
		return;
	if (has_listeners(e))
		emit_event(e, "state", json_pack("{s:s, s:s}", "from", e->state, "to", now));
	e->state = now;
}

void bc_recorder_events_disk(struct bc_recorder_events *e, const struct bc_writer_stats *stats)
{
	bool is_new = strcmp(stats->error, e->disk_error) != 0;

	if (stats->is_stuck == e->is_stuck && !is_new)
		return;
	e->is_stuck = stats->is_stuck;
	memcpy(e->disk_error, stats->error, sizeof(e->disk_error));
	if (has_listeners(e))
		emit_event(e, "disk",
			json_pack("{s:b, s:o}", "stuck", stats->is_stuck, "error",
				bc_json_text(stats->is_stuck || is_new ? stats->error : NULL)));
}

void bc_recorder_events_board(struct bc_recorder_events *e, const struct bc_board *board)
{
	if (board == NULL ||
		((int)board->state == e->board_state && board->unplugs == e->board_unplugs))
		return;
	e->board_state = (int)board->state;
	e->board_unplugs = board->unplugs;
	if (has_listeners(e))
		emit_event(e, "board",
			json_pack("{s:s, s:o, s:o}", "state", bc_board_state_name(board->state),
				"error", bc_json_text_or_null(board->last_error), "unplugs",
				bc_json_u64(board->unplugs)));
}

bool bc_recorder_events_gaps(struct bc_recorder_events *e, const struct bc_losses *losses)
{
	const struct bc_losses since = bc_losses_since(losses, &e->losses);
	bool has_gaps = false;

	e->losses = *losses;
	for (unsigned cause = 1; cause < BC_GAP_CAUSES; cause++) {
		if (since.gaps[cause] == 0 && since.lost[cause] == 0)
			continue;
		has_gaps = true;
		if (!has_listeners(e))
			continue;
		emit_event(e, "gap",
			json_pack("{s:s, s:o, s:o, s:b}", "cause", bc_gap_cause_name(cause), "gaps",
				bc_json_u64(since.gaps[cause]), "lost",
				bc_json_u64(since.lost[cause]), "exact",
				since.inexact[cause] == 0));
	}
	return has_gaps;
}

void bc_recorder_events_armed(struct bc_recorder_events *e, const struct bc_trigger *trigger)
{
	if (has_listeners(e))
		emit_event(e, "trigger-armed",
			json_pack("{s:o}", "trigger", bc_trigger_json(trigger)));
}

void bc_recorder_events_disarmed(struct bc_recorder_events *e, const char *name)
{
	if (has_listeners(e))
		emit_event(e, "trigger-disarmed", json_pack("{s:o}", "name", bc_json_text(name)));
}

void bc_recorder_events_segment(struct bc_recorder_events *e, const struct bc_writer_notice *notice)
{
	bool is_sealed = notice->kind == BC_NOTICE_SEALED;
	char path[4096 + BC_SEGMENT_NAME_MAX + sizeof(BC_PARTIAL_SUFFIX)];

	if (!has_listeners(e))
		return;
	snprintf(path, sizeof(path), "%s/%s%s", e->dir, notice->file,
		is_sealed ? "" : BC_PARTIAL_SUFFIX);
	json_t *object = bc_json_object((struct bc_json_member[]){
		{"recording", bc_json_text(notice->recording->header.recording)},
		{"segment", bc_json_u64(notice->segment)},
		{"path", bc_json_text(path)},
		{NULL, NULL},
	});
	if (is_sealed)
		json_object_update_new(
			object, bc_json_object((struct bc_json_member[]){
					{"records", bc_json_u64(notice->records)},
					{"bytes", bc_json_u64(notice->bytes)},
					{"chunks", bc_json_u64(notice->chunks)},
					{"gaps", bc_json_u64(notice->gaps)},
					{"lost", bc_json_u64(notice->lost)},
					{"hash", bc_json_text(notice->hash)},
					{"first_record", bc_json_u64(notice->first_record)},
					{"started", bc_json_time(notice->wall_ns)},
					{NULL, NULL},
				}));
	emit_event(e, is_sealed ? "segment-sealed" : "segment-started", object);
}

void bc_recorder_events_mark(struct bc_recorder_events *e, const struct bc_mark *mark)
{
	if (has_listeners(e))
		emit_event(e, "mark", json_pack("{s:o}", "mark", bc_mark_json(mark)));
}

void bc_recorder_events_note(
	struct bc_recorder_events *e, const struct bc_recording *recording, const char *note)
{
	if (has_listeners(e))
		emit_event(e, "note",
			json_pack("{s:o, s:o}", "recording",
				bc_json_text(recording->info.header.recording), "metadata",
				bc_metadata_parse(note)));
}

void bc_recorder_events_match(
	struct bc_recorder_events *e, const struct bc_trigger_match *match, uint64_t record)
{
	if (!has_listeners(e))
		return;
	emit_event(e, "trigger",
		bc_json_object((struct bc_json_member[]){
			{"name", bc_json_text(match->trigger->name)},
			{"action", bc_json_text(bc_trigger_action_name(match->trigger->action))},
			{"record", record != UINT64_MAX ? bc_json_u64(record) : json_null()},
			{"tick", bc_json_u64(match->tick)},
			{"epoch", bc_json_u64(match->epoch)},
			{NULL, NULL},
		}));
}
