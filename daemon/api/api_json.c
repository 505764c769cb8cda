/* Recordings, marks and live events as JSON: the only place with the names of events and their
 * members, see docs/api.md. Unknown numbers are UINT64_MAX in the daemon and null here. */
#include "daemon/api/api_json.h"

#include <stdio.h>

#include "daemon/ingest/trigger_engine.h"
#include "formats/base/json.h"
#include "formats/segment/segment_header.h"

static json_t *count_or_null(uint64_t count)
{
	return bc_json_u64_or_null(count != UINT64_MAX, count);
}

static const char *state_name(const struct bc_recording *r)
{
	switch (r->state) {
	case BC_RECORDING_RUNNING:
		return "recording";
	case BC_RECORDING_DRAINING:
		return "draining";
	case BC_RECORDING_ENDED:
		return r->totals.left_open != 0 ? "open" : "sealed";
	}
	return "";
}

static json_t *path_json(const char *dir, const char *file, bool is_open)
{
	char path[4096 + BC_SEGMENT_NAME_MAX + sizeof(BC_PARTIAL_SUFFIX)];

	snprintf(path, sizeof(path), "%s/%s%s", dir, file, is_open ? BC_PARTIAL_SUFFIX : "");
	return bc_json_text(file[0] != '\0' ? path : NULL);
}

/* As a request gives them. */
static json_t *limits_json(const struct bc_stop_rules *limits)
{
	struct bc_json_member members[4] = {{NULL, NULL}};
	unsigned n = 0;

	if (limits->duration_ns != 0)
		members[n++] = (struct bc_json_member){
			"duration", bc_json_double((double)limits->duration_ns / 1e9)};
	if (limits->records != 0)
		members[n++] = (struct bc_json_member){"records", bc_json_u64(limits->records)};
	if (limits->file_bytes != 0)
		members[n++] = (struct bc_json_member){"filesize", bc_json_u64(limits->file_bytes)};
	return bc_json_object(members);
}

json_t *bc_recording_json(const struct bc_recording *r, const struct bc_recording_now *now)
{
	const struct bc_segment_header *header = &r->info.header;
	const struct bc_writer_notice *totals = &r->totals;
	bool has_ended = r->state == BC_RECORDING_ENDED;
	const char *file = has_ended ? totals->file : now->file;

	return bc_json_merge(
		BC_JSON_OBJECT({"id", bc_json_text(header->recording)},
			{"label", bc_json_text_or_null(header->label)},
			{"host", bc_json_text_or_null(header->host)},
			{"started", bc_json_time(r->info.started_ns)},
			{"ended", has_ended ? bc_json_time(r->info.end.ended_ns) : json_null()},
			{"state", bc_json_text(state_name(r))},
			{"segments", bc_json_u64(has_ended ? totals->segments : now->segments)},
			{"records", bc_json_u64(has_ended ? totals->records : now->records)},
			{"bytes", bc_json_u64(has_ended ? totals->bytes : now->bytes)},
			{"metadata", bc_metadata_parse(header->metadata)},
			{"limits", limits_json(&r->limits)},
			{"path", path_json(now->dir, file, !has_ended && now->is_open)},
			{"reason", bc_json_text(bc_recording_reason_name(r->reason))}),
		bc_loss_json(&now->loss));
}

json_t *bc_mark_json(const struct bc_mark *mark)
{
	return BC_JSON_OBJECT({"text", bc_json_text(mark->text)},
		{"record", count_or_null(mark->record)}, {"tick", bc_json_u64(mark->tick)},
		{"epoch", bc_json_u64(mark->epoch)});
}

/* Events */

static json_t *segment_json(const char *dir, const struct bc_writer_notice *n)
{
	bool is_sealed = n->kind == BC_NOTICE_SEALED;
	json_t *object = BC_JSON_OBJECT({"recording", bc_json_text(n->recording->header.recording)},
		{"segment", bc_json_u64(n->segment)},
		{"path", path_json(dir, n->file, !is_sealed)});

	if (!is_sealed)
		return object;
	object = bc_json_merge(object, bc_loss_json(&n->loss));
	return bc_json_merge(
		object, BC_JSON_OBJECT({"records", bc_json_u64(n->records)},
				{"bytes", bc_json_u64(n->bytes)},
				{"chunks", bc_json_u64(n->chunks)}, {"hash", bc_json_text(n->hash)},
				{"first_record", bc_json_u64(n->first_record)},
				{"started", bc_json_time(n->wall_ns)}));
}

static json_t *match_json(const struct bc_trigger_match *match, uint64_t record)
{
	return BC_JSON_OBJECT({"name", bc_json_text(match->trigger->name)},
		{"action", bc_json_text(bc_trigger_action_name(match->trigger->action))},
		{"record", count_or_null(record)}, {"tick", bc_json_u64(match->tick)},
		{"epoch", bc_json_u64(match->epoch)});
}

static const char *event_name(const struct bc_live_event *e)
{
	static const char *const names[] = {
		[BC_LIVE_STATE] = "state",
		[BC_LIVE_RECORDING_STARTED] = "recording-started",
		[BC_LIVE_RECORDING_ENDED] = "recording-ended",
		[BC_LIVE_SEGMENT] = "segment-started",
		[BC_LIVE_MARK] = "mark",
		[BC_LIVE_NOTE] = "note",
		[BC_LIVE_TRIGGER] = "trigger",
		[BC_LIVE_TRIGGER_ARMED] = "trigger-armed",
		[BC_LIVE_TRIGGER_DISARMED] = "trigger-disarmed",
		[BC_LIVE_GAP] = "gap",
		[BC_LIVE_DISK] = "disk",
		[BC_LIVE_DISK_LOW] = "disk-low",
		[BC_LIVE_HANG] = "hang",
		[BC_LIVE_BOARD] = "board",
		[BC_LIVE_CLOCK] = "clock",
		[BC_LIVE_COMMAND_FAILED] = "command-failed",
		[BC_LIVE_RELOAD] = "reload",
		[BC_LIVE_STOPPING] = "stopping",
	};
	bool is_sealed = e->kind == BC_LIVE_SEGMENT && e->segment.notice->kind == BC_NOTICE_SEALED;

	return is_sealed ? "segment-sealed" : names[e->kind];
}

json_t *bc_live_event_json(const struct bc_live_event *e, const char **name)
{
	*name = event_name(e);
	switch (e->kind) {
	case BC_LIVE_STATE:
		return json_pack("{s:s, s:s}", "from", e->state.from, "to", e->state.to);
	case BC_LIVE_RECORDING_STARTED:
	case BC_LIVE_RECORDING_ENDED:
		return json_pack("{s:o}", "recording",
			bc_recording_json(e->recording.recording, &e->recording.now));
	case BC_LIVE_SEGMENT:
		return segment_json(e->segment.dir, e->segment.notice);
	case BC_LIVE_MARK:
		return json_pack("{s:o}", "mark", bc_mark_json(e->mark));
	case BC_LIVE_NOTE:
		return json_pack("{s:o, s:o}", "recording",
			bc_json_text(e->note.recording->info.header.recording), "metadata",
			bc_metadata_parse(e->note.metadata));
	case BC_LIVE_TRIGGER:
		return match_json(e->trigger.match, e->trigger.record);
	case BC_LIVE_TRIGGER_ARMED:
		return json_pack("{s:o}", "trigger", bc_trigger_json(e->armed));
	case BC_LIVE_TRIGGER_DISARMED:
		return json_pack("{s:o}", "name", bc_json_text(e->disarmed));
	case BC_LIVE_GAP:
		return json_pack("{s:s, s:o, s:o, s:b, s:o}", "cause",
			bc_gap_cause_name(e->gap.cause), "gaps", bc_json_u64(e->gap.gaps), "lost",
			bc_json_u64(e->gap.lost), "exact", e->gap.is_exact, "activity",
			bc_json_text_or_null(e->gap.activity));
	case BC_LIVE_DISK:
		return json_pack("{s:b, s:o}", "stuck", e->disk.is_stuck, "error",
			bc_json_text(e->disk.error));
	case BC_LIVE_DISK_LOW:
		return json_pack("{s:b, s:o}", "low", e->disk_low.is_low, "time_left_seconds",
			count_or_null(e->disk_low.seconds_left));
	case BC_LIVE_HANG:
		return json_pack("{s:o}", "error", bc_json_text(e->hang));
	case BC_LIVE_BOARD:
		return json_pack("{s:s, s:o, s:o}", "state", e->board.state, "error",
			bc_json_text_or_null(e->board.last_error), "unplugs",
			bc_json_u64(e->board.unplugs));
	case BC_LIVE_CLOCK:
		return json_pack("{s:s, s:f}", "reason", e->clock.reason, "moved_seconds",
			(double)e->clock.moved_ns * 1e-9);
	case BC_LIVE_COMMAND_FAILED:
		return json_pack("{s:o, s:o, s:o}", "path", bc_json_text(e->command_failed.path),
			"exit_code",
			e->command_failed.exit_code >= 0 ? json_integer(e->command_failed.exit_code)
							 : json_null(),
			"error", bc_json_text(e->command_failed.error));
	case BC_LIVE_RELOAD:
		return json_object();
	case BC_LIVE_STOPPING:
		return json_pack("{s:s}", "signal", e->signal);
	}
	return NULL;
}
