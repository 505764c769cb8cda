#include "daemon/recorder_parts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/file_source.h"
#include "daemon/log.h"
#include "formats/json.h"
#include "formats/metadata.h"

static enum bc_refusal refuse(char *why, size_t room, enum bc_refusal refusal, const char *format,
	...) __attribute__((format(printf, 4, 5)));

static enum bc_refusal refuse(
	char *why, size_t room, enum bc_refusal refusal, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, room, format, args);
	va_end(args);
	return refusal;
}

/* Whether anything can be begun now, and if not, why. */
static enum bc_refusal check_free(struct bc_recorder *r, char *why, size_t room)
{
	if (r->is_ending)
		return refuse(why, room, BC_NOT_NOW, "buscapd is being stopped");
	if (r->replay.session != NULL && r->replay.take == NULL)
		return refuse(
			why, room, BC_NOT_NOW, "a replay is being sealed; ask again in a moment");
	if (r->replay.take != NULL)
		return refuse(why, room, BC_NOT_NOW,
			"a replay is under way, %s: one recording is made at a time; wait for its "
			"end or cancel it",
			r->replay.take->recording.header.recording);
	if (r->live.take != NULL)
		return refuse(why, room, BC_NOT_NOW, "a recording is under way, %s: stop it first",
			r->live.take->recording.header.recording);
	return BC_GRANTED;
}

static enum bc_refusal check_triggers(
	struct bc_watch *watch, const struct bc_start *start, char *why, size_t room)
{
	for (unsigned i = 0; i < start->triggers_count; i++) {
		const struct bc_trigger *trigger = &start->triggers[i];
		if (trigger->action != BC_ACTION_MARK && trigger->action != BC_ACTION_STOP)
			return refuse(why, room, BC_BAD_VALUE,
				"triggers: %s: those of a recording mark or stop it",
				trigger->name);
		bool is_twice = bc_watch_find(watch, trigger->name) != NULL;
		for (unsigned j = 0; j < i; j++)
			is_twice = is_twice || strcmp(start->triggers[j].name, trigger->name) == 0;
		if (is_twice)
			return refuse(why, room, BC_BAD_VALUE,
				"triggers: %s: there is one of that name already", trigger->name);
	}
	if (start->triggers_count > BC_TAKE_TRIGGERS)
		return refuse(
			why, room, BC_BAD_VALUE, "triggers: %u are the most", BC_TAKE_TRIGGERS);
	return BC_GRANTED;
}

static enum bc_refusal check_start(
	const struct bc_recorder *r, const struct bc_start *start, char *why, size_t room)
{
	char metadata[BC_METADATA_MAX];
	char what[200];

	if (!bc_recorder_metadata(r, start, metadata, what, sizeof(what)))
		return refuse(why, room, BC_BAD_VALUE, "metadata: %s", what);
	if (start->label != NULL && start->label[0] != '\0' && !bc_label_is_valid(start->label))
		return refuse(why, room, BC_BAD_VALUE,
			"label: up to 64 letters, digits, points, underscores and dashes");
	return BC_GRANTED;
}

/* Begins a recording of the live source, with the record at *at, which is then where that is. */
enum bc_refusal bc_recorder_start_live(
	struct bc_recorder *r, const struct bc_start *start, uint32_t *at, char *why, size_t room)
{
	enum bc_refusal refusal = check_start(r, start, why, room);

	if (refusal == BC_GRANTED)
		refusal = check_triggers(&r->live.watch, start, why, room);
	if (refusal == BC_GRANTED)
		refusal = check_free(r, why, room);
	if (refusal != BC_GRANTED)
		return refusal;
	if (r->live.is_over || bc_session_is_draining(r->live.session))
		return refuse(why, room, BC_NOT_NOW,
			"the source is over: there is nothing to record but replays");
	if (!bc_lane_is_ready(bc_session_lane(r->live.session)))
		return refuse(why, room, BC_NOT_NOW,
			"the recording before is not handed on yet; ask again in a moment");
	struct bc_take *take = bc_recorder_new_take(r, &r->live, start);
	if (take == NULL)
		return refuse(why, room, BC_FAILED, "memory ran out");
	if (r->is_first)
		snprintf(take->recording.header.continues, sizeof(take->recording.header.continues),
			"%s", r->options.before);
	r->is_first = false;
	*at = bc_recorder_begin(r, &r->live, take, start, *at);
	return BC_GRANTED;
}

enum bc_refusal bc_recorder_start(
	struct bc_recorder *r, const struct bc_start *start, char *why, size_t room)
{
	if (start->pre.unit != BC_LENGTH_NONE && !bc_recorder_is_flight(r))
		return refuse(why, room, BC_NOT_NOW,
			"pre: nothing is held from before: that wants record = flight in the "
			"configuration");
	uint32_t at = BC_LANE_NOW;
	bc_recorder_disarm_ended(r);
	return bc_recorder_start_live(r, start, &at, why, room);
}

enum bc_refusal bc_recorder_snapshot(
	struct bc_recorder *r, const struct bc_start *start, char *why, size_t room)
{
	struct bc_start all = *start;
	uint32_t at = BC_LANE_NOW;

	if (!bc_recorder_is_flight(r))
		return refuse(why, room, BC_NOT_NOW,
			"there is no flight recorder: that wants record = flight in the "
			"configuration");
	if (all.pre.unit == BC_LENGTH_NONE)
		all.pre.unit = BC_LENGTH_ALL;
	if (r->live.take == NULL && !r->live.is_over && !all.go_on &&
		all.post.unit == BC_LENGTH_NONE &&
		bc_lane_flight(bc_session_lane(r->live.session)).records == 0)
		return refuse(why, room, BC_NOT_NOW, "the flight recorder holds nothing yet");
	enum bc_refusal refusal = bc_recorder_start_live(r, &all, &at, why, room);
	if (refusal != BC_GRANTED || all.go_on)
		return refusal;
	if (all.post.unit == BC_LENGTH_NONE)
		bc_recorder_finish(r, &r->live, BC_TAKE_LIMIT, BC_LANE_NOW);
	else
		bc_session_set_rest(r->live.session, BC_LANE_NOW, &all.post);
	return BC_GRANTED;
}

static enum bc_refusal no_recording(char *why, size_t room)
{
	return refuse(why, room, BC_NOT_NOW, "nothing is being recorded: start a recording first");
}

bool bc_recorder_await_sealing(struct bc_recorder *r, void *context,
	void (*done)(void *context, const struct bc_take *ended))
{
	return r->takes != NULL && r->takes->state == BC_TAKE_DRAINING &&
	       bc_take_wait(r->takes, context, done) == 0;
}

enum bc_refusal bc_recorder_stop(struct bc_recorder *r, char *why, size_t room, void *context,
	void (*done)(void *context, const struct bc_take *ended))
{
	struct bc_part *part = bc_recorder_part(r);

	if (part == NULL)
		return no_recording(why, room);
	if (done != NULL && bc_take_wait(part->take, context, done) != 0)
		return refuse(why, room, BC_FAILED, "memory ran out");
	if (part == &r->replay || bc_session_ends_with_recording(part->session)) {
		part->take->is_cancelled = true;
		bc_session_stop(part->session);
		bc_recorder_tell_state(r);
	} else {
		bc_recorder_finish(r, part, BC_TAKE_REQUEST, BC_LANE_NOW);
	}
	return BC_GRANTED;
}

enum bc_refusal bc_recorder_rotate(struct bc_recorder *r, char *why, size_t room)
{
	struct bc_part *part = bc_recorder_part(r);

	if (part == NULL)
		return no_recording(why, room);
	bc_lane_cut(bc_session_lane(part->session));
	return BC_GRANTED;
}

enum bc_refusal bc_recorder_mark(
	struct bc_recorder *r, const char *text, struct bc_mark *set, char *why, size_t room)
{
	struct bc_part *part = bc_recorder_part(r);
	size_t bytes = strlen(text);

	if (bytes == 0 || bytes > BC_MARK_TEXT_MAX)
		return refuse(why, room, BC_BAD_VALUE, "text: a mark has 1 to %u bytes",
			BC_MARK_TEXT_MAX);
	if (part == NULL && bc_recorder_is_flight(r) && !r->live.is_over)
		part = &r->live;
	if (part == NULL)
		return no_recording(why, room);
	struct bc_lane *lane = bc_session_lane(part->session);
	if (!bc_lane_has_begun(lane))
		return refuse(why, room, BC_NOT_NOW,
			"nothing has come from the source yet: there is no place for a mark");
	struct bc_place place = bc_lane_place(lane, BC_LANE_NOW);
	struct bc_event event = {.kind = BC_EVENT_MARK, .text_bytes = (uint16_t)bytes};
	if (!bc_lane_mark(lane, &event, text, BC_LANE_NOW))
		return refuse(why, room, BC_NOT_NOW,
			"the buffer is full: there is no place for a mark now");
	memcpy(set->text, text, bytes + 1);
	set->record = place.record;
	set->tick = place.tick;
	set->epoch = place.epoch;
	bc_recorder_tell_mark(r, set);
	return BC_GRANTED;
}

enum bc_refusal bc_recorder_note(
	struct bc_recorder *r, const char *metadata, char *why, size_t room)
{
	struct bc_part *part = bc_recorder_part(r);
	char note[BC_METADATA_MAX];
	char what[200];

	if (part == NULL)
		return no_recording(why, room);
	struct bc_take *take = part->take;
	if (!bc_recording_note(&take->recording, metadata, note, what, sizeof(what)))
		return refuse(why, room, BC_BAD_VALUE, "metadata: %s", what);
	struct bc_event event = {
		.kind = BC_EVENT_NOTE,
		.text_bytes = (uint16_t)strlen(note),
	};
	/* Where there is no room for it now, it is in the headers to come all the same; before
	 * anything has come it is in all of them. */
	if (event.text_bytes != 0 && bc_lane_has_begun(bc_session_lane(part->session)) &&
		!bc_lane_mark(bc_session_lane(part->session), &event, note, BC_LANE_NOW))
		bc_log_limited(&r->limits, BC_LOG_WARNING,
			"%s: the buffer is full: what was noted is in its later segments only",
			take->recording.header.recording);
	bc_recorder_tell_note(r, take, note);
	return BC_GRANTED;
}

/* Replays */

static enum bc_refusal check_path(const char *path, char *why, size_t room)
{
	struct stat st;

	if (path[0] != '/' || strlen(path) >= sizeof(((struct bc_take *)0)->path))
		return refuse(why, room, BC_BAD_VALUE,
			"path: an absolute path on the daemon's host is wanted");
	if (stat(path, &st) != 0)
		return refuse(why, room, errno == ENOENT ? BC_NOT_FOUND : BC_NOT_NOW,
			"path: the daemon can't read it: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(why, room, BC_BAD_VALUE, "path: it is no regular file");
	return BC_GRANTED;
}

static int start_replay_session(struct bc_recorder *r, const struct bc_replay_request *request)
{
	struct bc_file_options file = {
		.path = request->path,
		.format = request->format,
		.clock_hz = request->clock_hz,
	};
	struct bc_session_options options = {
		.loop = r->options.loop,
		.pipeline = r->pipeline,
		.mapping = &r->mapping,
		.lane =
			{
				.flush_ns = bc_recorder_config(r)->flush_ns,
				.sift = &bc_recorder_config(r)->sift,
				.viewer = r->options.viewer,
				.watch = &r->replay.watch,
				.context = &r->replay,
				.on_hit = bc_recorder_on_hit,
			},
		.speed = request->speed,
		.ends_with_recording = true,
		.context = &r->replay,
		.on_limit = bc_recorder_on_limit,
		.on_done = bc_recorder_on_session_done,
	};
	int rc = bc_file_source_open(&options.source, r->options.loop, &file);

	if (rc == 0)
		rc = bc_session_start(&r->replay.session, &options);
	return rc;
}

enum bc_refusal bc_recorder_replay(
	struct bc_recorder *r, const struct bc_replay_request *request, char *why, size_t room)
{
	enum bc_refusal refusal = check_start(r, &request->start, why, room);

	if (refusal == BC_GRANTED)
		refusal = check_triggers(&r->replay.watch, &request->start, why, room);
	if (refusal == BC_GRANTED)
		refusal = check_path(request->path, why, room);
	if (refusal == BC_GRANTED)
		refusal = check_free(r, why, room);
	if (refusal != BC_GRANTED)
		return refusal;
	int rc = start_replay_session(r, request);
	if (rc != 0) {
		bc_recorder_forget_replay(r);
		return refuse(
			why, room, BC_NOT_NOW, "path: the daemon can't read it: %s", strerror(-rc));
	}
	struct bc_take *take = bc_recorder_new_take(r, &r->replay, &request->start);
	if (take == NULL) {
		bc_session_close(r->replay.session);
		bc_recorder_forget_replay(r);
		return refuse(why, room, BC_FAILED, "memory ran out");
	}
	take->is_replay = true;
	bc_recorder_allow_triggers(r);
	snprintf(take->path, sizeof(take->path), "%s", request->path);
	bc_recorder_begin(r, &r->replay, take, &request->start, BC_LANE_NOW);
	return BC_GRANTED;
}

enum bc_refusal bc_recorder_cancel(struct bc_recorder *r, const char *id, char *why, size_t room,
	void *context, void (*done)(void *context, const struct bc_take *ended))
{
	struct bc_take *take = bc_recorder_find_replay(r, id);

	if (take == NULL)
		return strcmp(id, "current") == 0
			       ? refuse(why, room, BC_NOT_FOUND, "no replay is under way")
			       : refuse(why, room, BC_NOT_FOUND,
					 "there is no replay of that id in this run");
	if (take != r->replay.take || bc_session_is_draining(r->replay.session))
		return refuse(why, room, BC_NOT_NOW, "that replay has ended already");
	if (bc_take_wait(take, context, done) != 0)
		return refuse(why, room, BC_FAILED, "memory ran out");
	take->is_cancelled = true;
	bc_session_stop(r->replay.session);
	return BC_GRANTED;
}

/* Triggers */

enum bc_refusal bc_recorder_arm(
	struct bc_recorder *r, const struct bc_trigger *trigger, char *why, size_t room)
{
	bool wants_flight = trigger->action == BC_ACTION_SNAPSHOT ||
			    trigger->pre.unit != BC_LENGTH_NONE;

	if (wants_flight && !bc_recorder_is_flight(r))
		return refuse(why, room, BC_NOT_NOW,
			"%s: pre and snapshot want the flight recorder: record = flight in the "
			"configuration",
			trigger->name);
	switch (bc_watch_add(&r->live.watch, trigger)) {
	case 0:
		bc_recorder_tell_armed(r, trigger);
		return BC_GRANTED;
	case -EEXIST:
		return refuse(why, room, BC_NOT_NOW, "%s: a trigger of that name is armed",
			trigger->name);
	default:
		return refuse(why, room, BC_NOT_NOW, "%u triggers by request are the most",
			BC_TRIGGERS_REQUESTED);
	}
}

enum bc_refusal bc_recorder_disarm(struct bc_recorder *r, const char *name, char *why, size_t room)
{
	if (bc_watch_remove(&r->live.watch, name) == 0) {
		bc_recorder_disarmed(r, name);
		return BC_GRANTED;
	}
	return refuse(why, room, BC_NOT_FOUND, "%.64s: no trigger of that name is armed", name);
}
