/* The inside of a recorder, for the files that it is made of: recorder.c has its life and sessions,
 * recorder_takes.c its recordings, recorder_requests.c what is asked of it, recorder_triggers.c
 * what triggers set off, and recorder_tell.c what it tells. What stands outside is
 * daemon/recorder.h. */
#ifndef BC_DAEMON_RECORDER_PARTS_H
#define BC_DAEMON_RECORDER_PARTS_H

#include <time.h>

#include "daemon/log_limit.h"
#include "daemon/pipeline.h"
#include "daemon/recorder.h"
#include "daemon/session.h"
#include "daemon/watch.h"

/* What the live source's session is, and a replay's while one runs. */
struct bc_part {
	struct bc_recorder *recorder;
	struct bc_session *session; /* NULL: none */
	struct bc_take *take;       /* the recording under way; NULL: none */
	bool is_over;               /* its source is, and all of it is sealed */
	struct bc_watch watch;
	uint64_t looked_ns; /* for a silence */
};

struct bc_recorder {
	struct bc_recorder_options options;
	struct bc_mapping mapping;
	struct bc_pipeline *pipeline;
	uv_timer_t defer; /* closes a replay's session, or says that all is over */
	struct bc_part live;
	struct bc_part replay;
	struct bc_take *takes;          /* of this run, the newest first */
	struct bc_flight_limits flight; /* chunks 0: there is no flight recorder */
	time_t id_second; /* the latest recording's id is of this second, and this number */
	uint32_t id_number;
	bool is_ending;
	bool is_first; /* the first recording of this run is still to come */
	bool has_told_over;

	/* How the live source's recordings went, together. */
	struct bc_session_outcome outcome;
	bool has_lost;

	struct bc_log_limits limits; /* of what triggers and clients do */

	/* What the events have told. */
	const char *state;
	bool is_stuck;
	char disk_error[sizeof(((struct bc_writer_report *)0)->error)];
	int board_state;
	uint64_t sealed;
	struct bc_status_flight flight_status;
};

static inline const struct bc_config *bc_recorder_config(const struct bc_recorder *r)
{
	return r->options.config;
}

static inline bool bc_recorder_is_flight(const struct bc_recorder *r)
{
	return r->flight.chunks != 0;
}

/* The part of which a recording is being made; NULL: of none. */
static inline struct bc_part *bc_recorder_part(struct bc_recorder *r)
{
	if (r->replay.take != NULL)
		return &r->replay;
	return r->live.take != NULL ? &r->live : NULL;
}

/* recorder_takes.c */

/* The metadata of a recording that is asked for so: the configuration's, and the request's over
 * them. Returns false with a clause in `why`. */
bool bc_recorder_metadata(const struct bc_recorder *r, const struct bc_start *start,
	char metadata[BC_METADATA_MAX], char *why, size_t room);

/* A take of a part's session, which is under way from here on; NULL when memory ran out. */
struct bc_take *bc_recorder_new_take(
	struct bc_recorder *r, struct bc_part *part, const struct bc_start *start);

/* The take of a replay of this run, by its id or "current"; NULL: there is none. */
struct bc_take *bc_recorder_find_replay(struct bc_recorder *r, const char *id);

/* Begins it with the record at position `at` of the part's lane. Returns where that is then. */
uint32_t bc_recorder_begin(struct bc_recorder *r, struct bc_part *part, struct bc_take *take,
	const struct bc_start *start, uint32_t at);

/* It gets nothing more from position `at` on; the session goes on. */
void bc_recorder_finish(
	struct bc_recorder *r, struct bc_part *part, enum bc_take_reason reason, uint32_t at);

/* Its last is written and sealed, or given up. */
void bc_recorder_take_ended(
	struct bc_recorder *r, struct bc_take *take, const struct bc_writer_news *news);

/* The triggers of recordings that have ended: not within a search for triggers. */
void bc_recorder_disarm_ended(struct bc_recorder *r);

/* recorder.c */

/* Calls of sessions, whose context is a part. */
void bc_recorder_on_limit(void *context, uint32_t at);
void bc_recorder_on_session_done(void *context);

/* A trigger of the live source is not armed any more. */
void bc_recorder_disarmed(struct bc_recorder *r, const char *name);

/* There is no replay any more. */
void bc_recorder_forget_replay(struct bc_recorder *r);

/* Lets triggers begin recordings, if nothing is in the way. */
void bc_recorder_allow_triggers(struct bc_recorder *r);

/* recorder_requests.c */

/* Begins a recording of the live source with the record at position *at, which is then where that
 * is. */
enum bc_refusal bc_recorder_start_live(
	struct bc_recorder *r, const struct bc_start *start, uint32_t *at, char *why, size_t room);

/* recorder_triggers.c */

void bc_recorder_on_hit(void *context, const struct bc_hit *hit);

/* Nothing comes on the bus, as some triggers want it. */
void bc_recorder_look_for_silence(struct bc_part *part);

/* recorder_tell.c: events */

bool bc_recorder_is_heard(struct bc_recorder *r);
void bc_recorder_tell_take(struct bc_recorder *r, const char *event, const struct bc_take *take);
void bc_recorder_tell_replay(struct bc_recorder *r, const char *event, const struct bc_take *take);
void bc_recorder_tell_mark(struct bc_recorder *r, const struct bc_mark *mark);
void bc_recorder_tell_note(struct bc_recorder *r, const struct bc_take *take, const char *note);
void bc_recorder_tell_segment(struct bc_recorder *r, const struct bc_writer_news *news);
void bc_recorder_tell_hit(struct bc_recorder *r, const struct bc_hit *hit, uint64_t record);

/* A trigger was armed, or disarmed, among those that the status counts: the live source's. */
void bc_recorder_tell_armed(struct bc_recorder *r, const struct bc_trigger *trigger);
void bc_recorder_tell_disarmed(struct bc_recorder *r, const char *name);

/* The state, if it is another: told before anything that it is seen in. */
void bc_recorder_tell_state(struct bc_recorder *r);

/* Gaps since the last time: they come in swarms, and are told summed up. */
void bc_recorder_tell_gaps(struct bc_recorder *r);

/* The state, gaps, and whatever else changes without being asked: what the events have told is then
 * what the status says. */
void bc_recorder_tell_changes(struct bc_recorder *r);

#endif
