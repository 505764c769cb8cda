/* A session: a source, its decoder and its channel, tied together for as long as the source gives
 * anything, and the recording that is being made of it, if one is.
 *
 * A live source's session lasts as long as the daemon; recordings begin and end in it
 * (bc_session_start_recording(), bc_session_finish_recording()), each with its limits. One that
 * ends with its recording is a replay's, or --once's: it ends when the source, a limit or its owner
 * says so; what is in hand is then written and sealed. */
#ifndef BC_DAEMON_RECORDER_SESSION_H
#define BC_DAEMON_RECORDER_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/base/rules.h"
#include "daemon/ingest/channel.h"
#include "formats/base/must_check.h"

struct bc_mapping;
struct bc_pipeline;
struct bc_session;
struct bc_source;

struct bc_session_options {
	uv_loop_t *loop;
	struct bc_pipeline *pipeline;
	struct bc_source *source;          /* the session closes it */
	const struct bc_mapping *mapping;  /* kept */
	struct bc_channel_options channel; /* but for loop, pipeline and on_full */
	double speed;                      /* paces a replay; 0: as fast as it goes */
	bool ends_with_recording;
	void *context;

	/* The recording is as long as its limits let it be, its end before position `at` of the
	 * channel: bc_session_finish_recording() it. Not called in a session that ends with its
	 * recording. */
	void (*on_limit)(void *context, uint32_t at);

	/* The source is over, and everything of it is written and sealed, or given up. */
	void (*on_done)(void *context);
};

/* How it went. */
struct bc_session_outcome {
	uint64_t damages;   /* places where the stream could not be read */
	uint64_t breaks;    /* places where a live stream broke off and went on */
	bool has_failed;    /* the source, or the way to the disk, ended it early */
	bool has_no_device; /* because no board came */
	char err[512];      /* then: a sentence */
};

/* Starts the source. Returns 0, or a negative errno with the source closed. */
int bc_session_start(
	struct bc_session **session, const struct bc_session_options *options) BC_MUST_CHECK;

/* What a recording is to be. */
struct bc_session_recording {
	struct bc_recording_info *recording; /* kept until its BC_NOTICE_ENDED, completed by data */
	struct bc_rotation rotation;
	struct bc_stop_rules stop;
	struct bc_time_or_size before; /* of what the flight recorder holds */
	uint32_t at;                   /* position in the channel; BC_CHANNEL_NOW */
};

/* Begins a recording; bc_channel_is_ready() must hold. Returns the position at which what->at then
 * stands in the channel. */
uint32_t bc_session_start_recording(
	struct bc_session *session, const struct bc_session_recording *what);

/* Ends the recording before position `at`; the session goes on. */
void bc_session_finish_recording(struct bc_session *session, uint32_t at);

/* The recording goes on so long behind position `at` and no longer: a time is the host's, from now,
 * or in a replay the bus's. What would end it earlier still does. */
void bc_session_end_after(
	struct bc_session *session, uint32_t at, const struct bc_time_or_size *rest);

/* Once a second, or oftener: what the source told too often is summed up in the log. */
void bc_session_poll(struct bc_session *session);

/* Ends the session: what was received of a recording is written. on_done() follows. */
void bc_session_stop(struct bc_session *session);

/* Ends the recording before position `at` and the session with it, on the loop's next turn. */
void bc_session_end_at(struct bc_session *session, uint32_t at);

/* Whether it is ending, and only the rest is being written. */
bool bc_session_is_draining(const struct bc_session *session);

/* Ends it now: the owner has told the pipeline to give up its recording. */
void bc_session_abandon(struct bc_session *session);

/* New rules of rotation by time, from the next segment on. */
void bc_session_set_rotation(struct bc_session *session, const struct bc_rotation *rotation);

/* The pipeline's news, passed on by its owner; on_ended() only of a recording of this session. */
void bc_session_on_slot_free(struct bc_session *session);
void bc_session_on_stats(struct bc_session *session);
void bc_session_on_ended(struct bc_session *session);

bool bc_session_ends_with_recording(const struct bc_session *session);

/* Whether the recording under way, or the latest, was as long as its limits let it be. */
bool bc_session_hit_limit(const struct bc_session *session);

struct bc_channel *bc_session_channel(const struct bc_session *session);
const struct bc_source *bc_session_source(const struct bc_session *session);
const struct bc_session_outcome *bc_session_outcome(const struct bc_session *session);

/* Frees it, after on_done(). Its memory goes when the loop has closed its handles. NULL is none. */
void bc_session_close(struct bc_session *session);

#endif
