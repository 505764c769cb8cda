/* Owns the pipeline, the session of the source, the recordings of this run and their triggers.
 *
 * States: no recording; RUNNING: one receives; any number DRAINING: ended, being sealed, also while
 * the next is RUNNING; the source is over, after which none starts; ending.
 *
 * Invariant: at most one recording receives, and it is the newest. A recording is described
 * completely before its first chunk is sent, and its end before its last, because the writer's
 * thread reads the description. on_over() is called once, after the last recording is sealed.
 *
 * A recording has four phases: start_recording(), end_recording(), on_session_ending(), which the
 * session calls, and on_recording_ended(), when it is sealed. If the source ends, so does the
 * session: end_recording() is not called, and the counts are those when it is sealed. */
#include "daemon/recorder/recorder.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/usb/board.h"
#include "daemon/base/log.h"
#include "daemon/base/log_limit.h"
#include "daemon/base/thread_health.h"
#include "daemon/ingest/pipeline.h"
#include "daemon/ingest/trigger_engine.h"
#include "daemon/recorder/loss_report.h"
#include "daemon/recorder/session.h"
#include "daemon/store/catalogue.h"
#include "formats/base/clock.h"
#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/segment/segment_header.h"

/* Chunks of the pool reserved for encoding while the flight recorder is full. */
#define CHUNKS_IN_PIPELINE 4u

/* Gaps come in bursts: an event sums up the gaps of this time. */
#define GAPS_NS UINT64_C(1000000000)

/* A loss is blamed on a thread that has been in one call for at least this long. */
#define BUSY_NS UINT64_C(100000000)

/* The disk is stuck if one call takes this long. */
#define STUCK_NS UINT64_C(5000000000)

struct bc_recorder {
	struct bc_recorder_options options;
	struct bc_mapping mapping;
	struct bc_pipeline *pipeline;
	struct bc_source *source;       /* closed by the session */
	struct bc_session *session;     /* of the source, for the whole run */
	struct bc_channel *channel;     /* the session's */
	bool ends_with_recording;       /* the session does */
	struct bc_recording *recording; /* RUNNING; NULL: none */
	struct bc_recordings recordings;
	struct bc_trigger_engine triggers;
	struct bc_overwrite_ring_limits flight; /* chunks 0: no flight recorder */
	uint64_t checked_ns;                    /* last check for silence */
	uint64_t away_ns;  /* when the board was last seen not to stream; 0: never */
	bool is_stopped;   /* a request has ended the source with its recording */
	bool is_ending;    /* by bc_recorder_end() */
	bool is_over;      /* the source has ended and everything is sealed */
	bool has_reported; /* that, by on_over() */
	uv_timer_t report; /* calls on_over(), outside of any callback */
	bool is_first;     /* no recording has been started in this run */
	uint64_t sequence; /* of the latest recording in the directory */

	struct bc_session_outcome outcome; /* of all recordings */
	bool has_lost;

	/* As last emitted. */
	struct {
		const char *state; /* initially "idle" */
		bool is_stuck;
		char busy[BC_THREAD_HEALTH_TEXT_MAX]; /* the thread for which it is; or "" */
		char disk_error[sizeof(((struct bc_writer_stats *)0)->error)];
		int board_state; /* initially -1 */
		uint64_t board_unplugs;
		struct bc_losses losses;
		uint64_t losses_at_ns;                    /* the next ones at the earliest */
		char activity[BC_THREAD_HEALTH_TEXT_MAX]; /* at the last buffer or disk loss */
	} emitted;
};

static bool has_flight(const struct bc_recorder *r)
{
	return r->flight.chunks != 0;
}

/* True if no other recording can start. A source that ends with its recording has only one. */
static bool has_source_ended(const struct bc_recorder *r)
{
	return bc_session_is_draining(r->session) ||
	       (r->ends_with_recording && !r->is_first && r->recording == NULL);
}

const struct bc_recording *bc_recorder_current(const struct bc_recorder *r)
{
	const struct bc_recording *newest = r->recordings.newest;

	return newest != NULL && newest->state != BC_RECORDING_ENDED ? newest : NULL;
}

/* Events */

static const char *state_of(const struct bc_recorder *r)
{
	const struct bc_source *source = r->source;

	if (bc_recorder_current(r) == NULL)
		return r->is_over && r->outcome.has_failed ? "failed" : "idle";
	if (r->recording == NULL || bc_session_is_draining(r->session))
		return "draining";
	if (source->board != NULL && source->board->state != BC_BOARD_STREAMING)
		return "waiting";
	return source->is_replay ? "replaying" : "recording";
}

static struct bc_losses losses_of(const struct bc_recorder *r, const struct bc_recording *recording)
{
	return recording->has_after ? recording->losses : bc_channel_losses(r->channel);
}

json_t *bc_recorder_json(const struct bc_recorder *r, const struct bc_recording *recording)
{
	const struct bc_writer_stats *stats = bc_pipeline_stats(r->pipeline);
	const struct bc_losses losses = losses_of(r, recording);
	struct bc_writer_notice now = recording->totals;
	bool is_open = now.kind == BC_NOTICE_WRITTEN;

	if (now.kind == BC_NOTICE_OPENED && stats->recording_tag == recording->info.tag) {
		bool has_started = stats->file[0] != '\0' || stats->recording_records != 0;
		now.records = stats->recording_records;
		now.bytes = stats->recording_bytes;
		now.segments = has_started ? stats->segment + 1 : 0;
		memcpy(now.file, stats->file, sizeof(now.file));
		is_open = stats->is_open;
	}
	return bc_recording_json(
		recording, &now, bc_losses_sum(&losses), r->options.config->dir, is_open);
}

static void emit(const struct bc_recorder *r, const char *name, json_t *members)
{
	r->options.on_event(r->options.context, name, members);
}

static void emit_recording(
	const struct bc_recorder *r, const struct bc_recording *recording, const char *name)
{
	emit(r, name, json_pack("{s:o}", "recording", bc_recorder_json(r, recording)));
}

static void emit_disarmed(const struct bc_recorder *r, const char *name)
{
	emit(r, "trigger-disarmed", json_pack("{s:o}", "name", bc_json_text(name)));
}

static void emit_armed(const struct bc_recorder *r, const struct bc_trigger *trigger)
{
	emit(r, "trigger-armed", json_pack("{s:o}", "trigger", bc_trigger_json(trigger)));
}

/* Call it before any event that shows the state. */
static void emit_state(struct bc_recorder *r)
{
	const char *before = r->emitted.state;

	r->emitted.state = state_of(r);
	if (strcmp(before, r->emitted.state) != 0)
		emit(r, "state", json_pack("{s:s, s:s}", "from", before, "to", r->emitted.state));
}

/* Emits what has been lost since the last call, by cause. */
static void emit_gaps(struct bc_recorder *r)
{
	const struct bc_losses *losses = &bc_pipeline_counts(r->pipeline)->losses;
	const struct bc_losses since = bc_losses_since(losses, &r->emitted.losses);

	r->emitted.losses = *losses;
	for (unsigned cause = 1; cause < BC_GAP_CAUSES; cause++) {
		if (since.gaps[cause] == 0 && since.lost[cause] == 0)
			continue;
		bool is_ours = cause == BC_GAP_BUFFER || cause == BC_GAP_DISK;
		struct bc_thread_health_seen busy = bc_recorder_longest_activity(r);
		if (is_ours)
			bc_thread_health_text(r->emitted.activity, &busy, BUSY_NS);
		r->emitted.losses_at_ns = uv_hrtime() + GAPS_NS;
		emit(r, "gap",
			json_pack("{s:s, s:o, s:o, s:b, s:o}", "cause", bc_gap_cause_name(cause),
				"gaps", bc_json_u64(since.gaps[cause]), "lost",
				bc_json_u64(since.lost[cause]), "exact", since.inexact[cause] == 0,
				"activity",
				bc_json_text_or_null(is_ours ? r->emitted.activity : "")));
	}
}

static void emit_board(struct bc_recorder *r)
{
	const struct bc_board *board = r->source->board;

	if (board == NULL || ((int)board->state == r->emitted.board_state &&
				     board->unplugs == r->emitted.board_unplugs))
		return;
	r->emitted.board_state = (int)board->state;
	r->emitted.board_unplugs = board->unplugs;
	emit(r, "board",
		json_pack("{s:s, s:o, s:o}", "state", bc_board_state_name(board->state), "error",
			bc_json_text_or_null(board->last_error), "unplugs",
			bc_json_u64(board->unplugs)));
}

/* The clocks of the host and of the bus no longer relate as before. */
static void on_clock(void *context, enum bc_clock_map_news news, int64_t ns)
{
	struct bc_recorder *r = context;

	if (news == BC_CLOCK_RATE_WRONG && r->source->may_stand_still)
		return;
	if (news == BC_CLOCK_WAS_SET)
		bc_log_limited(r->options.limits, BC_LOG_WARNING,
			"the time of day moved by %+.3f s: the clock was set, or the machine slept",
			(double)ns * 1e-9);
	else
		bc_log_limited(r->options.limits, BC_LOG_WARNING,
			"the bus clock does not keep its rate: times of day were %.3f s %s; is "
			"clock_hz=%" PRIu64 " right?",
			(double)(ns < 0 ? -ns : ns) * 1e-9, ns < 0 ? "late" : "early",
			r->source->clock_hz);
	emit(r, "clock",
		json_pack("{s:s, s:f}", "reason", news == BC_CLOCK_WAS_SET ? "set" : "rate",
			"moved_seconds", (double)ns * 1e-9));
}

static void emit_disk(struct bc_recorder *r)
{
	const struct bc_writer_stats *stats = bc_pipeline_stats(r->pipeline);
	struct bc_thread_health_seen longest = bc_recorder_longest_activity(r);
	const char *busy = bc_thread_health_text(r->emitted.busy, &longest, STUCK_NS);
	bool is_stuck = stats->is_stuck || busy[0] != '\0';
	bool is_new = strcmp(stats->error, r->emitted.disk_error) != 0;

	if (is_stuck == r->emitted.is_stuck && !is_new)
		return;
	r->emitted.is_stuck = is_stuck;
	memcpy(r->emitted.disk_error, stats->error, sizeof(r->emitted.disk_error));
	if (stats->is_stuck || !is_stuck)
		busy = is_stuck || is_new ? stats->error : NULL;
	emit(r, "disk", json_pack("{s:b, s:o}", "stuck", is_stuck, "error", bc_json_text(busy)));
}

/* Emits events for everything that changes by itself, except gaps. */
static void emit_changes(struct bc_recorder *r)
{
	emit_board(r);
	emit_disk(r);
	emit_state(r);
}

/* A recording's own triggers */

/* Lets triggers start recordings unless the run is ending or has only one. */
static void allow_triggers(struct bc_recorder *r)
{
	bc_channel_allow_triggers(r->channel, !r->is_ending && !r->options.is_once);
}

/* Arms the own triggers of a recording; check_triggers() has found that there is room. */
static void arm_for(
	struct bc_recorder *r, const struct bc_recording *recording, const struct bc_start *start)
{
	for (unsigned i = 0; i < start->triggers_count; i++) {
		struct bc_trigger own = start->triggers[i];
		own.recording_tag = recording->info.tag;
		if (bc_trigger_engine_add(&r->triggers, &own) == 0)
			emit_armed(r, &own);
	}
}

/* Disarms the own triggers of an ended recording. */
static void disarm_of(struct bc_recorder *r, const struct bc_recording *recording)
{
	unsigned i = 0;

	while (i < r->triggers.count) {
		const struct bc_trigger *own = &r->triggers.armed[i].trigger;
		char name[BC_TRIGGER_NAME_MAX + 1];
		if (own->recording_tag != recording->info.tag) {
			i++;
			continue;
		}
		memcpy(name, own->name, sizeof(name));
		bc_trigger_engine_remove(&r->triggers, name);
		emit_disarmed(r, name);
	}
}

/* Disarms the triggers of all ended recordings. They no longer act, but their names are still
 * taken. Must not be called during a trigger search. */
static void disarm_ended(struct bc_recorder *r)
{
	for (struct bc_recording *rec = r->recordings.newest; rec != NULL; rec = rec->next)
		if (rec->state == BC_RECORDING_DRAINING)
			disarm_of(r, rec);
}

/* Recordings */

static struct bc_recording_moment moment_of(const struct bc_recorder *r)
{
	const struct bc_session_outcome *outcome = bc_session_outcome(r->session);

	return (struct bc_recording_moment){
		.counts = *bc_pipeline_counts(r->pipeline),
		.damages = outcome->damages,
		.breaks = outcome->breaks,
	};
}

/* Above all others: files copied into the directory since the start may have a higher one. */
static uint64_t next_sequence(struct bc_recorder *r)
{
	uint64_t highest = bc_catalogue_sums(r->options.catalogue).highest;

	r->sequence = highest > r->sequence ? highest : r->sequence;
	return ++r->sequence;
}

/* Adds a recording that starts at *at, which becomes its position; NULL if out of memory. */
static struct bc_recording *add_recording(
	struct bc_recorder *r, const struct bc_start *start, uint32_t *at)
{
	const struct bc_config *config = r->options.config;
	const char *label = start->label != NULL && start->label[0] != '\0' ? start->label
									    : config->label;
	int64_t started_ns;

	*at = bc_channel_trim(r->channel, &start->pre, *at, &started_ns);
	struct bc_recording *recording = bc_recordings_add(
		&r->recordings, started_ns, label, r->source, config->host);

	if (recording == NULL)
		return NULL;
	struct bc_segment_header *header = &recording->info.header;
	header->sequence = next_sequence(r);
	bc_level_write(header->compression, config->compression);
	if (r->options.boot_id != NULL)
		memcpy(header->boot_id, r->options.boot_id, BC_BOOT_ID_BYTES);
	recording->before = moment_of(r);
	if (r->is_first)
		snprintf(header->continues, sizeof(header->continues), "%s", r->options.before);
	r->is_first = false;
	r->recording = recording;
	return recording;
}

static void start_recording(
	struct bc_recorder *r, struct bc_recording *recording, const struct bc_start *start)
{
	const struct bc_config *config = r->options.config;
	const struct bc_stop_rules *own = &start->limits;
	bool has_own = own->duration_ns != 0 || own->records != 0 || own->file_bytes != 0;
	recording->limits = has_own ? *own : config->stop;
	recording->info.stop_bytes = recording->limits.file_bytes;
	arm_for(r, recording, start);
	bc_log_set_recording(recording->info.header.recording);
	bc_session_start_recording(
		r->session, &recording->info, &config->rotation, &recording->limits);
	emit_recording(r, recording, "recording-started");
	emit_state(r);
}

/* The recording stops receiving now. */
static void set_after(const struct bc_recorder *r, struct bc_recording *recording)
{
	recording->losses = losses_of(r, recording);
	recording->has_after = true;
	recording->after = moment_of(r);
}

/* Ends the running recording before position `at`. */
static void end_recording(struct bc_recorder *r, enum bc_recording_reason reason, uint32_t at)
{
	struct bc_recording *recording = r->recording;

	recording->reason = reason;
	bc_session_finish_recording(r->session, at);
	set_after(r, recording);
	emit_state(r);
}

static enum bc_recording_reason end_reason(const struct bc_recorder *r)
{
	if (bc_session_outcome(r->session)->has_failed)
		return BC_RECORDING_FAILED;
	if (r->is_ending)
		return BC_RECORDING_SIGNAL;
	if (r->is_stopped)
		return BC_RECORDING_REQUEST;
	return bc_session_hit_limit(r->session) ? BC_RECORDING_LIMIT : BC_RECORDING_SOURCE;
}

/* The last chunk of the recording is about to be sent: describes the end for its files. */
static void on_session_ending(void *context)
{
	struct bc_recorder *r = context;
	struct bc_recording *recording = r->recording;
	struct bc_recording_end *end = &recording->info.end;

	r->recording = NULL;
	recording->state = BC_RECORDING_DRAINING;
	if (recording->reason == BC_RECORDING_ONGOING)
		recording->reason = end_reason(r);
	snprintf(end->reason, sizeof(end->reason), "%s",
		bc_recording_reason_name(recording->reason));
	end->ended_ns = bc_wall_ns();
	memcpy(end->boot_id, recording->info.header.boot_id, sizeof(end->boot_id));
}

/* A recording is sealed or abandoned. */
static void on_recording_ended(struct bc_recorder *r, struct bc_recording *recording,
	const struct bc_writer_notice *notice)
{
	if (!recording->has_after)
		set_after(r, recording);
	recording->losses = bc_losses_since(&recording->losses, &notice->discarded);
	recording->losses.gaps[BC_GAP_DISK] += notice->abandoned != 0;
	recording->losses.lost[BC_GAP_DISK] += notice->abandoned;
	r->outcome.damages += recording->after.damages - recording->before.damages;
	r->outcome.breaks += recording->after.breaks - recording->before.breaks;
	r->has_lost = r->has_lost || bc_losses_has_any(&recording->losses);
	bc_log_set_recording(recording->info.header.recording);
	bc_loss_report_summary(
		recording, r->ends_with_recording, notice, bc_session_outcome(r->session));
	disarm_of(r, recording);
	emit_gaps(r);
	bc_recording_end(recording, notice);
	const struct bc_recording *current = bc_recorder_current(r);
	bc_log_set_recording(current != NULL ? current->info.header.recording : "");
	emit_recording(r, recording, "recording-ended");
	bc_session_on_ended(r->session);
	emit_state(r);
}

/* Starting a recording */

static enum bc_refusal refuse(char err[BC_REFUSAL_MAX], enum bc_refusal refusal, const char *format,
	...) __attribute__((format(printf, 3, 4)));

static enum bc_refusal refuse(
	char err[BC_REFUSAL_MAX], enum bc_refusal refusal, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	bc_vmessage(err, BC_REFUSAL_MAX, format, args);
	va_end(args);
	return refusal;
}

/* Checks that a recording can start: none is in progress, and the source has not ended. */
static enum bc_refusal check_idle(const struct bc_recorder *r, char err[BC_REFUSAL_MAX])
{
	if (r->is_ending || r->has_reported)
		return refuse(err, BC_NOT_NOW, "buscapd is stopping");
	if (r->recording != NULL)
		return refuse(err, BC_NOT_NOW, "recording %s is in progress; stop it first",
			r->recording->info.header.recording);
	if (has_source_ended(r))
		return refuse(err, BC_NOT_NOW, "the source has ended");
	if (!bc_channel_is_ready(r->channel))
		return refuse(err, BC_NOT_NOW,
			"the end of the previous recording is still waiting for the disk; try "
			"again shortly");
	return BC_GRANTED;
}

/* Checks that the recording's own triggers can be armed. */
static enum bc_refusal check_triggers(
	const struct bc_recorder *r, const struct bc_start *start, char err[BC_REFUSAL_MAX])
{
	const struct bc_trigger_engine *engine = &r->triggers;
	unsigned requested = start->triggers_count;

	for (unsigned i = 0; i < start->triggers_count; i++)
		if (bc_trigger_engine_find(engine, start->triggers[i].name) != NULL)
			return refuse(err, BC_BAD_VALUE, "trigger %s: already armed",
				start->triggers[i].name);
	for (unsigned i = 0; i < engine->count; i++)
		requested += engine->armed[i].trigger.is_requested;
	if (requested > BC_TRIGGERS_REQUESTED)
		return refuse(err, BC_NOT_NOW,
			"too many triggers: at most %u by requests and recordings together",
			BC_TRIGGERS_REQUESTED);
	return BC_GRANTED;
}

/* Starts a recording with the record at *at, which becomes its new position. */
static enum bc_refusal try_start(
	struct bc_recorder *r, const struct bc_start *start, uint32_t *at, char err[BC_REFUSAL_MAX])
{
	enum bc_refusal refusal = BC_GRANTED;
	char metadata[BC_METADATA_MAX];
	char what[200];

	/* The request's metadata take precedence. */
	memcpy(metadata, r->options.config->recording.metadata, sizeof(metadata));
	if (start->metadata != NULL &&
		!bc_metadata_merge(metadata, start->metadata, what, sizeof(what)))
		refusal = refuse(err, BC_BAD_VALUE, "metadata: %s", what);
	if (refusal == BC_GRANTED)
		refusal = check_triggers(r, start, err);
	if (refusal == BC_GRANTED)
		refusal = check_idle(r, err);
	if (refusal != BC_GRANTED)
		return refusal;
	struct bc_recording *recording = add_recording(r, start, at);
	if (recording == NULL)
		return refuse(err, BC_FAILED, "out of memory");
	strcpy(recording->info.header.metadata, metadata);
	start_recording(r, recording, start);
	return BC_GRANTED;
}

/* Trigger actions */

static void start_by_trigger(struct bc_recorder *r, const struct bc_trigger *trigger, uint32_t at)
{
	struct bc_start start = {.pre = trigger->pre};
	bool is_snapshot = trigger->action == BC_ACTION_SNAPSHOT;
	uint32_t after;
	char err[BC_REFUSAL_MAX];

	if (is_snapshot && start.pre.unit == BC_TIME_OR_SIZE_NONE)
		start.pre.unit = BC_TIME_OR_SIZE_ALL;
	if (try_start(r, &start, &at, err) != BC_GRANTED) {
		bc_log_limited(r->options.limits, BC_LOG_WARNING,
			"trigger %s: matched, but can't start a recording: %s", trigger->name, err);
		return;
	}
	after = at == BC_CHANNEL_NOW ? at : at + 1;
	if (trigger->post.unit != BC_TIME_OR_SIZE_NONE)
		bc_session_end_after(r->session, after, &trigger->post);
	else if (is_snapshot)
		end_recording(r, BC_RECORDING_TRIGGER, after);
}

static void end_by_trigger(struct bc_recorder *r, uint32_t at)
{
	if (!r->ends_with_recording) {
		end_recording(r, BC_RECORDING_TRIGGER, at);
		return;
	}
	r->recording->reason = BC_RECORDING_TRIGGER;
	bc_session_end_at(r->session, at);
}

/* There may be hundreds a second. */
static void emit_match(
	const struct bc_recorder *r, const struct bc_trigger_match *match, uint64_t record)
{
	if (r->options.has_readers(r->options.context))
		emit(r, "trigger",
			BC_JSON_OBJECT({"name", bc_json_text(match->trigger->name)},
				{"action", bc_json_text(
						   bc_trigger_action_name(match->trigger->action))},
				{"record", bc_json_u64_or_null(record != UINT64_MAX, record)},
				{"tick", bc_json_u64(match->tick)},
				{"epoch", bc_json_u64(match->epoch)}));
}

/* `action` is never a toggle. Marks are logged as debug because there may be hundreds a second. */
static void log_match(struct bc_recorder *r, const struct bc_trigger *trigger,
	enum bc_trigger_action action, uint64_t record)
{
	char place[40] = "outside a recording";

	if (record != UINT64_MAX)
		snprintf(place, sizeof(place), "at record %" PRIu64, record);
	bc_log_limited(r->options.limits, action == BC_ACTION_MARK ? BC_LOG_DEBUG : BC_LOG_INFO,
		"trigger %s: matched %s: %s", trigger->name, place, bc_trigger_action_name(action));
}

/* Performs the action of a match. */
static void on_match(void *context, const struct bc_trigger_match *match)
{
	struct bc_recorder *r = context;
	const struct bc_trigger *trigger = match->trigger;
	uint32_t at = match->position;
	uint64_t record = bc_channel_place(r->channel, at).record;
	uint32_t after = at == BC_CHANNEL_NOW ? at : at + 1;
	enum bc_trigger_action action = trigger->action != BC_ACTION_TOGGLE ? trigger->action
					: r->recording == NULL              ? BC_ACTION_START
									    : BC_ACTION_STOP;

	emit_match(r, match, record);
	log_match(r, trigger, action, record);
	if (trigger->action == BC_ACTION_MARK)
		return;
	if (r->recording == NULL)
		start_by_trigger(r, trigger, at);
	else if (trigger->action == BC_ACTION_STOP && trigger->post.unit != BC_TIME_OR_SIZE_NONE)
		bc_session_end_after(r->session, after, &trigger->post);
	else
		end_by_trigger(r, after);
}

/* Checks idle triggers of a live source by the host's clock. The silence is counted up to the
 * previous check only: if the loop was held up since then, data that arrived in the meantime may
 * not have been read. A board that is away is a gap, not a silence. A recording without records
 * does not end: it waits for the bus. */
static void check_silence(struct bc_recorder *r)
{
	struct bc_channel *channel = r->channel;
	uint64_t now = uv_hrtime();
	uint64_t unknown_ns = now - r->checked_ns;
	struct bc_trigger_match match;

	r->checked_ns = now;
	if (bc_trigger_engine_is_empty(&r->triggers) || bc_session_is_draining(r->session))
		return;
	const struct bc_source *source = r->source;
	if (source->board != NULL && source->board->state != BC_BOARD_STREAMING)
		r->away_ns = now;
	if (!source->is_live || r->away_ns == now)
		return;
	for (;;) {
		bc_channel_limit_triggers(channel);
		if (bc_channel_state(channel) == BC_CHANNEL_RECORDING &&
			bc_channel_records(channel) == 0)
			r->triggers.actions &= ~(1u << BC_ACTION_STOP | 1u << BC_ACTION_TOGGLE);
		uint64_t last_ns = bc_channel_last_ns(channel);
		if (r->away_ns > last_ns)
			last_ns = r->away_ns;
		last_ns += unknown_ns;
		if (!bc_trigger_engine_check_silence(&r->triggers, now, last_ns, &match))
			return;
		match.position = BC_CHANNEL_NOW;
		bc_trigger_engine_fire(&r->triggers, &match);
		struct bc_event event = bc_trigger_match_event(&match);
		/* If the match starts a recording, that recording starts with the event. */
		bool is_outside = bc_channel_state(channel) == BC_CHANNEL_IDLE;
		if (is_outside)
			on_match(r, &match);
		if (bc_channel_state(channel) != BC_CHANNEL_IDLE &&
			!bc_channel_mark(channel, &event, bc_trigger_text(match.trigger)))
			match.trigger->missed++;
		if (!is_outside)
			on_match(r, &match);
	}
}

/* The session's callbacks */

static void on_report(uv_timer_t *timer)
{
	struct bc_recorder *r = timer->data;

	if (r->has_reported)
		return;
	r->has_reported = true;
	r->options.on_over(r->options.context);
}

/* If the run is over, reports it in the loop's next iteration. */
static void report_over(struct bc_recorder *r)
{
	if (r->is_over && (r->is_ending || r->options.is_once))
		uv_timer_start(&r->report, on_report, 0, 0);
}

static void on_session_done(void *context)
{
	struct bc_recorder *r = context;
	const struct bc_session_outcome *outcome = bc_session_outcome(r->session);

	r->is_over = true;
	r->outcome.has_failed = outcome->has_failed;
	r->outcome.has_no_device = outcome->has_no_device;
	if (!r->is_ending && !r->options.is_once)
		bc_log(BC_LOG_NOTICE, "%s: source ended; idle until buscapd is stopped",
			r->source->name);
	emit_state(r);
	report_over(r);
}

static void on_session_limit(void *context, uint32_t at)
{
	end_recording(context, BC_RECORDING_LIMIT, at);
}

/* Requests */

enum bc_refusal bc_recorder_start(
	struct bc_recorder *r, const struct bc_start *start, char err[BC_REFUSAL_MAX])
{
	if (start->pre.unit != BC_TIME_OR_SIZE_NONE && !has_flight(r))
		return refuse(err, BC_NOT_NOW,
			"pre: needs the flight recorder: set record = flight in the configuration");
	uint32_t at = BC_CHANNEL_NOW;
	disarm_ended(r);
	return try_start(r, start, &at, err);
}

enum bc_refusal bc_recorder_snapshot(
	struct bc_recorder *r, const struct bc_start *start, char err[BC_REFUSAL_MAX])
{
	struct bc_start all = *start;
	uint32_t at = BC_CHANNEL_NOW;

	if (!has_flight(r))
		return refuse(err, BC_NOT_NOW,
			"needs the flight recorder: set record = flight in the configuration");
	if (all.pre.unit == BC_TIME_OR_SIZE_NONE)
		all.pre.unit = BC_TIME_OR_SIZE_ALL;
	disarm_ended(r);
	if (r->recording == NULL && !r->is_over && !all.until_stopped &&
		all.post.unit == BC_TIME_OR_SIZE_NONE &&
		bc_channel_flight_state(r->channel).records == 0)
		return refuse(err, BC_NOT_NOW, "the flight recorder is empty");
	enum bc_refusal refusal = try_start(r, &all, &at, err);
	if (refusal != BC_GRANTED || all.until_stopped)
		return refusal;
	if (all.post.unit == BC_TIME_OR_SIZE_NONE)
		end_recording(r, BC_RECORDING_REQUEST, BC_CHANNEL_NOW);
	else
		bc_session_end_after(r->session, BC_CHANNEL_NOW, &all.post);
	return BC_GRANTED;
}

static enum bc_refusal no_recording(char err[BC_REFUSAL_MAX])
{
	return refuse(err, BC_NOT_NOW, "no recording is in progress");
}

bool bc_recorder_await_sealing(struct bc_recorder *r, void *context,
	void (*done)(void *context, const struct bc_recording *ended))
{
	return r->recordings.newest != NULL &&
	       r->recordings.newest->state == BC_RECORDING_DRAINING &&
	       bc_recording_wait(r->recordings.newest, context, done) == 0;
}

enum bc_refusal bc_recorder_stop(struct bc_recorder *r, char err[BC_REFUSAL_MAX], void *context,
	void (*done)(void *context, const struct bc_recording *ended))
{
	struct bc_recording *newest = r->recordings.newest;
	bool ends_source = r->ends_with_recording;
	/* The end of the source has ended it, and it is being sealed. */
	bool has_ended = ends_source && newest != NULL && newest->state == BC_RECORDING_DRAINING;

	if (r->recording == NULL && !has_ended)
		return no_recording(err);
	if (done != NULL && bc_recording_wait(newest, context, done) != 0)
		return refuse(err, BC_FAILED, "out of memory");
	if (has_ended)
		return BC_GRANTED;
	if (ends_source) {
		r->is_stopped = true;
		bc_session_stop(r->session);
		emit_state(r);
	} else {
		end_recording(r, BC_RECORDING_REQUEST, BC_CHANNEL_NOW);
	}
	return BC_GRANTED;
}

enum bc_refusal bc_recorder_rotate(struct bc_recorder *r, char err[BC_REFUSAL_MAX])
{
	if (r->recording == NULL)
		return no_recording(err);
	bc_channel_cut(r->channel);
	return BC_GRANTED;
}

enum bc_refusal bc_recorder_mark(
	struct bc_recorder *r, const char *text, json_t **mark, char err[BC_REFUSAL_MAX])
{
	bool has_ring = has_flight(r) && !bc_session_is_draining(r->session);
	size_t bytes = strlen(text);

	assert(bytes != 0 && bytes <= BC_MARK_TEXT_MAX);
	if (r->recording == NULL && !has_ring)
		return no_recording(err);
	struct bc_channel *channel = r->channel;
	if (!bc_channel_has_started(channel))
		return refuse(err, BC_NOT_NOW,
			"the source has not sent any data yet, so no mark can be set");
	struct bc_place place = bc_channel_place(channel, BC_CHANNEL_NOW);
	struct bc_event event = {.kind = BC_EVENT_MARK, .text_bytes = (uint16_t)bytes};
	if (!bc_channel_mark(channel, &event, text))
		return refuse(err, BC_NOT_NOW, "the buffer is full; the mark was not set");
	*mark = BC_JSON_OBJECT({"text", bc_json_text(text)},
		{"record", bc_json_u64_or_null(place.record != UINT64_MAX, place.record)},
		{"tick", bc_json_u64(place.tick)}, {"epoch", bc_json_u64(place.epoch)});
	emit(r, "mark", json_pack("{s:O}", "mark", *mark));
	return BC_GRANTED;
}

enum bc_refusal bc_recorder_note(
	struct bc_recorder *r, const char *metadata, char err[BC_REFUSAL_MAX])
{
	struct bc_recording *recording = r->recording;
	char note[BC_METADATA_MAX];
	char what[200];

	if (recording == NULL)
		return no_recording(err);
	if (!bc_recording_info_note(&recording->info, metadata, note, what, sizeof(what)))
		return refuse(err, BC_BAD_VALUE, "metadata: %s", what);
	struct bc_event event = {
		.kind = BC_EVENT_NOTE,
		.text_bytes = (uint16_t)strlen(note),
	};
	/* Without space for the event, later headers have the metadata; all, before data. */
	if (event.text_bytes != 0 && bc_channel_has_started(r->channel) &&
		!bc_channel_mark(r->channel, &event, note))
		bc_log_limited(r->options.limits, BC_LOG_WARNING,
			"%s: buffer full: the new metadata are in later segments only",
			recording->info.header.recording);
	emit(r, "note",
		json_pack("{s:o, s:o}", "recording", bc_json_text(recording->info.header.recording),
			"metadata", bc_metadata_parse(note)));
	return BC_GRANTED;
}

enum bc_refusal bc_recorder_arm(
	struct bc_recorder *r, const struct bc_trigger *trigger, char err[BC_REFUSAL_MAX])
{
	bool needs_flight = trigger->action == BC_ACTION_SNAPSHOT ||
			    trigger->pre.unit != BC_TIME_OR_SIZE_NONE;

	if (needs_flight && !has_flight(r))
		return refuse(err, BC_NOT_NOW,
			"%s: pre and snapshot need the flight recorder: set record = flight in "
			"the configuration",
			trigger->name);
	switch (bc_trigger_engine_add(&r->triggers, trigger)) {
	case 0:
		emit_armed(r, trigger);
		return BC_GRANTED;
	case -EEXIST:
		return refuse(err, BC_NOT_NOW, "trigger %s: already armed", trigger->name);
	default:
		return refuse(err, BC_NOT_NOW, "too many triggers: at most %u by request",
			BC_TRIGGERS_REQUESTED);
	}
}

enum bc_refusal bc_recorder_disarm(
	struct bc_recorder *r, const char *name, char err[BC_REFUSAL_MAX])
{
	if (bc_trigger_engine_remove(&r->triggers, name) == 0) {
		emit_disarmed(r, name);
		return BC_GRANTED;
	}
	return refuse(err, BC_NOT_FOUND, "trigger %.64s: not armed", name);
}

/* The pipeline's callbacks */

static void on_slot_free(void *context)
{
	struct bc_recorder *r = context;

	if (r->session != NULL && !r->is_over)
		bc_session_on_slot_free(r->session);
}

static void on_stats(void *context)
{
	struct bc_recorder *r = context;
	const struct bc_writer_stats *stats = bc_pipeline_stats(r->pipeline);

	/* Without an operator (--once), a directory that is gone will not come back: give up. */
	if (stats->is_hopeless && r->options.is_once && bc_recorder_current(r) != NULL &&
		!r->is_ending) {
		r->is_ending = true;
		bc_recorder_abandon(r);
		return;
	}
	if (r->recording != NULL)
		bc_session_on_stats(r->session);
}

static struct bc_recording *recording_of(
	struct bc_recorder *r, const struct bc_recording_info *info)
{
	struct bc_recording *recording = r->recordings.newest;

	while (recording != NULL && &recording->info != info)
		recording = recording->next;
	assert(recording != NULL);
	return recording;
}

static void on_notice(void *context, const struct bc_writer_notice *notice)
{
	struct bc_recorder *r = context;

	switch (notice->kind) {
	case BC_NOTICE_OPENED:
		emit(r, "segment-started", bc_segment_json(r->options.config->dir, notice));
		return;
	case BC_NOTICE_SEALED:
		r->options.on_sealed(r->options.context, notice);
		emit(r, "segment-sealed", bc_segment_json(r->options.config->dir, notice));
		return;
	case BC_NOTICE_WRITTEN:
		recording_of(r, notice->recording)->totals = *notice;
		return;
	case BC_NOTICE_ENDED:
		on_recording_ended(r, recording_of(r, notice->recording), notice);
		return;
	}
}

/* Status */

const struct bc_writer_stats *bc_recorder_stats(const struct bc_recorder *r)
{
	return bc_pipeline_stats(r->pipeline);
}

struct bc_buffer_state bc_recorder_buffer(struct bc_recorder *r)
{
	return bc_pipeline_buffer(r->pipeline);
}

struct bc_counts *bc_recorder_counts(struct bc_recorder *r)
{
	return bc_pipeline_counts(r->pipeline);
}

void bc_recorder_finish(struct bc_recorder *r)
{
	bc_pipeline_finish(r->pipeline);
}

struct bc_thread_health_seen bc_recorder_longest_activity(struct bc_recorder *r)
{
	struct bc_thread_health_seen longest = {.what = ""};

	bc_pipeline_poll(r->pipeline, &longest);
	return longest;
}

const char *bc_recorder_loss_activity(const struct bc_recorder *r)
{
	return r->emitted.activity;
}

/* Logs files that need attention. */
static void log_files(const struct bc_writer_stats *stats)
{
	if (stats->unsealed != 0)
		bc_log(BC_LOG_ERROR,
			"unsealed files: %u; the next start recovers those that are still .partial",
			stats->unsealed);
	if (stats->deleted != 0)
		bc_log(BC_LOG_ERROR,
			"files deleted while being written: %u; records lost in them: %s",
			stats->deleted, BC_GROUPED(stats->deleted_records));
}

enum bc_exit bc_recorder_exit(struct bc_recorder *r)
{
	const struct bc_writer_stats *stats = bc_pipeline_stats(r->pipeline);
	const struct bc_session_outcome *outcome = &r->outcome;
	bool is_replay = r->source->is_replay;

	log_files(stats);
	if (outcome->has_no_device)
		return BC_EXIT_NO_DEVICE;
	if (outcome->has_failed || stats->unsealed != 0)
		return BC_EXIT_FAILED;
	if (is_replay && outcome->damages != 0)
		return BC_EXIT_DAMAGED;
	bool is_whole = !r->has_lost && outcome->damages == 0 && stats->deleted == 0;
	return is_whole && (is_replay || outcome->breaks == 0) ? BC_EXIT_OK : BC_EXIT_LOST;
}

static struct bc_status_flight flight_of(const struct bc_recorder *r)
{
	struct bc_overwrite_ring_state held = bc_channel_flight_state(r->channel);

	return (struct bc_status_flight){
		.seconds = (double)held.ns * 1e-9,
		.bytes = held.records * BC_RECORD_BYTES,
		.records = held.records,
		.chunks = held.chunks,
		.limit_seconds = (double)r->flight.ns * 1e-9,
		.limit_bytes = r->flight.bytes,
	};
}

struct bc_status bc_recorder_status(struct bc_recorder *r)
{
	const struct bc_source *source = r->source;

	/* The events must agree with the status. */
	emit_gaps(r);
	emit_changes(r);
	/* With --once, the status at the end shows the recording. */
	const struct bc_recording *recording = r->options.is_once ? r->recordings.newest
								  : bc_recorder_current(r);
	return (struct bc_status){
		.state = r->emitted.state,
		.source_kind = source->kind,
		.source_name = source->name,
		.clock_hz = source->clock_hz,
		.board = source->board,
		.recording = recording != NULL ? &recording->info : NULL,
		.dir = r->options.config->dir,
		.counts = bc_pipeline_counts(r->pipeline),
		.stats = bc_pipeline_stats(r->pipeline),
		.buffer = bc_pipeline_buffer(r->pipeline),
		.rotation = r->options.config->rotation,
		.space = r->options.config->space,
		.damages = bc_session_outcome(r->session)->damages,
		.mode = bc_record_mode_name(r->options.config->recording.mode),
		.has_flight = has_flight(r) && !r->is_over,
		.flight = flight_of(r),
		.triggers = r->triggers.count,
		.busy = r->emitted.busy,
	};
}

/* What there is */

const struct bc_recording *bc_recorder_find(const struct bc_recorder *r, const char *id)
{
	return bc_recordings_find(&r->recordings, id);
}

const struct bc_trigger_engine *bc_recorder_triggers(const struct bc_recorder *r)
{
	return &r->triggers;
}

/* Open and close */

void bc_recorder_poll(struct bc_recorder *r)
{
	disarm_ended(r);
	check_silence(r);
	if (uv_hrtime() >= r->emitted.losses_at_ns)
		emit_gaps(r);
	emit_changes(r);
}

static bool has_same(const struct bc_trigger_engine *engine, const struct bc_trigger *trigger)
{
	for (unsigned i = 0; i < engine->count; i++)
		if (bc_trigger_equal(&engine->armed[i].trigger, trigger))
			return true;
	return false;
}

/* Applies the configuration's triggers and emits the changes. */
static void configure_triggers(struct bc_recorder *r)
{
	const struct bc_config *config = r->options.config;
	struct bc_trigger_engine *engine = &r->triggers;
	const struct bc_trigger_engine before = *engine;

	bc_trigger_engine_configure(engine, config->triggers, config->triggers_count);
	for (unsigned i = 0; i < before.count; i++)
		if (!has_same(engine, &before.armed[i].trigger))
			emit_disarmed(r, before.armed[i].trigger.name);
	for (unsigned i = 0; i < engine->count; i++)
		if (!has_same(&before, &engine->armed[i].trigger))
			emit_armed(r, &engine->armed[i].trigger);
}

static struct bc_writer_rules rules_of(const struct bc_config *config)
{
	return (struct bc_writer_rules){
		.rotation = config->rotation,
		.space = config->space,
		.sync_ns = config->sync_ns,
	};
}

void bc_recorder_reload(struct bc_recorder *r)
{
	const struct bc_config *config = r->options.config;
	const struct bc_writer_rules rules = rules_of(config);

	bc_pipeline_set_rules(r->pipeline, &rules);
	bc_channel_set_flush(r->channel, config->flush_ns);
	configure_triggers(r);
	if (r->recording != NULL)
		bc_session_set_rotation(r->session, &config->rotation);
}

void bc_recorder_end(struct bc_recorder *r)
{
	r->is_ending = true;
	allow_triggers(r);
	bc_session_stop(r->session);
	report_over(r);
	emit_state(r);
}

bool bc_recorder_is_finishing(const struct bc_recorder *r)
{
	return !r->is_over && bc_session_is_draining(r->session);
}

void bc_recorder_abandon(struct bc_recorder *r)
{
	const struct bc_recording *newest = bc_recorder_current(r);

	/* Abandoning a recording abandons all that precede it. */
	if (newest != NULL)
		bc_pipeline_abandon(r->pipeline, &newest->info);
	if (!r->is_over)
		bc_session_abandon(r->session);
}

static int open_pipeline(struct bc_recorder *r)
{
	const struct bc_config *config = r->options.config;
	struct bc_pipeline_options options = {
		.buffer_bytes = config->buffer_bytes,
		.workers = config->workers,
		.compression = config->compression,
		.dir = config->dir,
		.dir_fd = r->options.dir_fd,
		.catalogue = r->options.catalogue,
		.rules = rules_of(config),
		.context = r,
		.on_slot_free = on_slot_free,
		.on_stats = on_stats,
		.on_notice = on_notice,
	};

	return bc_pipeline_open(&r->pipeline, r->options.loop, &options);
}

static void set_flight_limits(struct bc_recorder *r)
{
	const struct bc_recording_settings *settings = &r->options.config->recording;
	unsigned chunks = bc_pipeline_buffer(r->pipeline).chunks;

	if (settings->mode != BC_RECORD_FLIGHT)
		return;
	r->flight = (struct bc_overwrite_ring_limits){
		.ns = settings->flight_ns,
		.bytes = settings->flight_bytes,
		.chunks = chunks > 2 * CHUNKS_IN_PIPELINE ? chunks - CHUNKS_IN_PIPELINE
							  : chunks / 2,
	};
}

static int start_session(struct bc_recorder *r)
{
	const struct bc_config *config = r->options.config;
	struct bc_session_options options = {
		.loop = r->options.loop,
		.pipeline = r->pipeline,
		.source = r->source,
		.mapping = &r->mapping,
		.channel =
			{
				.flush_ns = config->flush_ns,
				.has_flight = has_flight(r),
				.flight_limits = r->flight,
				.filter = &config->filter,
				.viewer = r->options.viewer,
				.triggers = &r->triggers,
				.context = r,
				.on_match = on_match,
				.on_clock = on_clock,
			},
		.limits = r->options.limits,
		.speed = config->speed,
		.ends_with_recording = r->ends_with_recording,
		.context = r,
		.on_limit = on_session_limit,
		.on_ending = on_session_ending,
		.on_done = on_session_done,
	};

	int rc = bc_session_start(&r->session, &options);

	if (rc == 0)
		r->channel = bc_session_channel(r->session);
	return rc;
}

int bc_recorder_open(struct bc_recorder **recorder, const struct bc_recorder_options *options,
	struct bc_source *source, const char **what)
{
	struct bc_recorder *r = calloc(1, sizeof(*r));

	*what = "the buffer and the threads that encode and write";
	if (r == NULL) {
		bc_source_close(source);
		return -ENOMEM;
	}
	r->options = *options;
	r->source = source;
	r->ends_with_recording = options->is_once || source->is_replay;
	bc_trigger_engine_init(&r->triggers);
	bc_trigger_engine_configure(
		&r->triggers, options->config->triggers, options->config->triggers_count);
	r->emitted.state = "idle";
	r->emitted.board_state = -1;
	r->is_first = true;
	r->sequence = options->sequence;
	bc_mapping_init(&r->mapping, &options->config->mapping);
	int rc = open_pipeline(r);
	if (rc != 0) {
		bc_source_close(source);
		free(r);
		return rc;
	}
	set_flight_limits(r);
	uv_timer_init(options->loop, &r->report);
	r->report.data = r;
	*what = options->config->source_text;
	rc = start_session(r);
	bool is_always = options->is_once || options->config->recording.mode == BC_RECORD_ALWAYS;
	if (rc == 0)
		allow_triggers(r);
	struct bc_start start = {.label = NULL};
	char err[BC_REFUSAL_MAX];
	if (rc == 0 && is_always && bc_recorder_start(r, &start, err) != BC_GRANTED)
		rc = -ENOMEM;
	if (rc != 0) {
		bc_recorder_close(r);
		return rc;
	}
	*recorder = r;
	return 0;
}

static void on_report_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void bc_recorder_close(struct bc_recorder *r)
{
	if (r == NULL)
		return;
	bc_session_close(r->session);
	bc_pipeline_close(r->pipeline);
	bc_recordings_free(&r->recordings);
	uv_close((uv_handle_t *)&r->report, on_report_closed);
}
