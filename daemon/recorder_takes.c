#include "daemon/recorder_parts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "daemon/log.h"
#include "daemon/loss_report.h"
#include "formats/metadata.h"

/* Replays that are over and still known. */
#define REPLAYS_KEPT 16u

/* The configuration's metadata, and the request's over them. */
bool bc_recorder_metadata(const struct bc_recorder *r, const struct bc_start *start,
	char metadata[BC_METADATA_MAX], char *why, size_t room)
{
	char more[BC_METADATA_MAX] = "";

	memcpy(metadata, bc_recorder_config(r)->recording.metadata, BC_METADATA_MAX);
	if (start->metadata == NULL || start->metadata[0] == '\0')
		return true;
	return bc_metadata_read(more, start->metadata, why, room) &&
	       bc_metadata_merge(metadata, more, why, room);
}

static bool has_limits(const struct bc_stop_rules *limits)
{
	return limits->duration_ns != 0 || limits->records != 0 || limits->file_bytes != 0;
}

/* Takes */

static void describe(struct bc_recorder *r, struct bc_recording *recording,
	const struct bc_source *source, const char *label)
{
	const struct bc_config *config = bc_recorder_config(r);
	struct bc_segment_header *h = &recording->header;
	struct timespec now;
	uint32_t random = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	if (getrandom(&random, sizeof(random), 0) < 0)
		random = (uint32_t)now.tv_nsec ^ (uint32_t)getpid();
	/* Half of it is the second's fraction: recordings that begin in one second sort, too. */
	random = (uint32_t)((uint64_t)now.tv_nsec * 4096 / 1000000000) << 12 | (random & 0xFFF);
	/* And those that triggers begin within one batch are no two of one name. */
	if (now.tv_sec == r->id_second && random <= r->id_number)
		random = (r->id_number + 1) & 0xFFFFFF;
	r->id_second = now.tv_sec;
	r->id_number = random;
	recording->started_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	bc_recording_id_write(h->recording, recording->started_ns, random, label);
	recording->tag = bc_recording_tag(h->recording);
	snprintf(h->label, sizeof(h->label), "%s", label);
	snprintf(h->source_kind, sizeof(h->source_kind), "%s", source->kind);
	snprintf(h->source_name, sizeof(h->source_name), "%s", source->name);
	h->clock_hz = source->clock_hz;
	snprintf(h->host, sizeof(h->host), "%s", config->host);
	snprintf(h->program, sizeof(h->program), "buscapd " BC_VERSION);
}

/* Forgets what nobody asks for any more: ended recordings but the latest, and old replays. */
static void forget_takes(struct bc_recorder *r)
{
	struct bc_take **at = &r->takes;
	unsigned replays = 0;
	bool has_last = false;

	while (*at != NULL) {
		struct bc_take *t = *at;
		bool is_kept = t->state != BC_TAKE_ENDED ||
			       (t->is_replay ? ++replays <= REPLAYS_KEPT : !has_last);
		has_last = has_last || (!t->is_replay && t->state == BC_TAKE_ENDED);
		if (is_kept) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		bc_take_free(t);
	}
}

struct bc_take *bc_recorder_find_replay(struct bc_recorder *r, const char *id)
{
	struct bc_take *take = r->takes;

	if (strcmp(id, "current") == 0)
		return r->replay.take;
	while (take != NULL &&
		!(take->is_replay && strcmp(take->recording.header.recording, id) == 0))
		take = take->next;
	return take;
}

struct bc_take *bc_recorder_new_take(
	struct bc_recorder *r, struct bc_part *part, const struct bc_start *start)
{
	const struct bc_config *config = bc_recorder_config(r);
	struct bc_take *take = bc_take_new();
	const char *label = start->label != NULL && start->label[0] != '\0' ? start->label
									    : config->label;

	if (take == NULL)
		return NULL;
	describe(r, &take->recording, bc_session_source(part->session), label);
	take->counts_before = *bc_pipeline_counts(r->pipeline);
	take->damages_before = bc_session_outcome(part->session)->damages;
	take->breaks_before = bc_session_outcome(part->session)->breaks;
	take->next = r->takes;
	r->takes = take;
	part->take = take;
	forget_takes(r);
	return take;
}

/* Triggers may begin a recording while nothing else is made. */
void bc_recorder_allow_triggers(struct bc_recorder *r)
{
	if (r->live.session != NULL && !r->live.is_over)
		bc_lane_allow(bc_session_lane(r->live.session),
			!r->is_ending && !r->options.is_once && r->replay.session == NULL);
}

/* Arms one of a recording's own triggers. */
static void arm_for(struct bc_recorder *r, struct bc_part *part, struct bc_take *take,
	const struct bc_trigger *trigger)
{
	if (bc_watch_add(&part->watch, trigger) != 0)
		return;
	snprintf(take->triggers[take->triggers_count++], sizeof(take->triggers[0]), "%s",
		trigger->name);
	if (part == &r->live)
		bc_recorder_tell_armed(r, trigger);
}

/* Disarms those that an ended one still has. */
static void disarm_of(struct bc_recorder *r, struct bc_part *part, struct bc_take *take)
{
	for (unsigned i = 0; i < take->triggers_count; i++) {
		const struct bc_trigger *trigger = bc_watch_find(&part->watch, take->triggers[i]);
		/* One of the configuration may have taken its place. */
		if (trigger == NULL || !trigger->is_of_request)
			continue;
		if (bc_watch_remove(&part->watch, take->triggers[i]) == 0 && part == &r->live)
			bc_recorder_tell_disarmed(r, take->triggers[i]);
	}
	take->triggers_count = 0;
}

void bc_recorder_disarm_ended(struct bc_recorder *r)
{
	for (struct bc_take *t = r->takes; t != NULL; t = t->next)
		if (t->state == BC_TAKE_DRAINING)
			disarm_of(r, t->is_replay ? &r->replay : &r->live, t);
}

void bc_recorder_disarmed(struct bc_recorder *r, const char *name)
{
	/* Another of that name isn't any recording's own. */
	for (struct bc_take *t = r->takes; t != NULL; t = t->next)
		for (unsigned i = 0; !t->is_replay && i < t->triggers_count; i++)
			if (strcmp(t->triggers[i], name) == 0)
				memcpy(t->triggers[i], t->triggers[--t->triggers_count],
					sizeof(t->triggers[0]));
	bc_recorder_tell_disarmed(r, name);
}

/* Begins a recording in a part's session, with the records from `at` on. Returns where that is
 * then. */
uint32_t bc_recorder_begin(struct bc_recorder *r, struct bc_part *part, struct bc_take *take,
	const struct bc_start *start, uint32_t at)
{
	const struct bc_config *config = bc_recorder_config(r);
	char why[200];
	struct bc_session_recording what = {
		.recording = &take->recording,
		.rotation = config->rotation,
		.stop = has_limits(&start->limits) ? start->limits : config->stop,
		.before = start->pre,
		.at = at,
	};

	take->recording.stop_bytes = what.stop.file_bytes;
	if (!bc_recorder_metadata(r, start, take->recording.header.metadata, why, sizeof(why)))
		take->recording.header.metadata[0] = '\0'; /* memory ran out since it was checked */
	for (unsigned i = 0; i < start->triggers_count; i++)
		arm_for(r, part, take, &start->triggers[i]);
	at = bc_session_record(part->session, &what);
	if (!r->options.is_once)
		bc_log(BC_LOG_INFO, "%s: the %s%s begins", take->recording.header.recording,
			take->is_replay ? "replay of " : "recording",
			take->is_replay ? take->path : "");
	bc_recorder_tell_take(r, "recording-started", take);
	if (take->is_replay)
		bc_recorder_tell_replay(r, "replay-started", take);
	bc_recorder_tell_state(r);
	return at;
}

/* How things stand when nothing more comes to a recording. */
static void look_at_end(
	struct bc_recorder *r, struct bc_take *take, const struct bc_session *session)
{
	take->has_after = true;
	take->counts_after = *bc_pipeline_counts(r->pipeline);
	take->damages_after = bc_session_outcome(session)->damages;
	take->breaks_after = bc_session_outcome(session)->breaks;
}

/* The recording under way gets nothing more from `at` on. */
void bc_recorder_finish(
	struct bc_recorder *r, struct bc_part *part, enum bc_take_reason reason, uint32_t at)
{
	struct bc_take *take = part->take;

	part->take = NULL;
	take->state = BC_TAKE_DRAINING;
	take->reason = reason;
	bc_session_finish(part->session, at);
	look_at_end(r, take, part->session);
	bc_recorder_tell_state(r);
}

static enum bc_take_reason why_ended(
	const struct bc_recorder *r, const struct bc_take *take, const struct bc_session *session)
{
	if (bc_session_outcome(session)->has_failed)
		return BC_TAKE_FAILED;
	if (r->is_ending)
		return BC_TAKE_SIGNAL;
	if (take->is_cancelled)
		return BC_TAKE_REQUEST;
	return bc_session_hit_limit(session) ? BC_TAKE_LIMIT : BC_TAKE_SOURCE;
}

/* It is sealed, or given up. */
void bc_recorder_take_ended(
	struct bc_recorder *r, struct bc_take *take, const struct bc_writer_news *news)
{
	struct bc_part *part = take->is_replay ? &r->replay : &r->live;
	const struct bc_session_outcome *outcome = bc_session_outcome(part->session);
	struct bc_counts *counts = &take->counts_after;

	if (part->take == take)
		part->take = NULL; /* the session has ended it */
	if (take->has_after)
		counts->dropped_disk += news->abandoned;
	else
		look_at_end(r, take, part->session);
	counts->raw_dropped_bytes = bc_pipeline_counts(r->pipeline)->raw_dropped_bytes;
	uint64_t breaks = take->breaks_after - take->breaks_before;
	if (take->reason == BC_TAKE_GOES_ON)
		take->reason = why_ended(r, take, part->session);
	take->damages = take->damages_after - take->damages_before;
	if (take->is_replay && outcome->has_failed)
		snprintf(take->error, sizeof(take->error), "%s", outcome->why);
	if (!take->is_replay) {
		r->outcome.damages += take->damages;
		r->outcome.breaks += breaks;
		/* What a flight recorder held may have had gaps before the recording was begun. */
		r->has_lost = r->has_lost || bc_loss_report_has_lost(counts, &take->counts_before) ||
			      (news->lost != 0 && !bc_session_source(part->session)->is_replay);
	}
	bc_loss_report_summary(take->recording.header.recording,
		bc_session_ends_with_recording(r->live.session) && !take->is_replay, counts,
		&take->counts_before, news, outcome, take->damages, breaks);
	disarm_of(r, part, take);
	bc_recorder_tell_gaps(r);
	bc_take_end(take, news);
	bc_recorder_tell_take(r, "recording-stopped", take);
	if (take->is_replay)
		bc_recorder_tell_replay(r, "replay-ended", take);
	bc_session_on_ended(part->session);
	bc_recorder_tell_state(r);
}
