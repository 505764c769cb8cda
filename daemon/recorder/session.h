/* The session ties the source, its decoder and its channel together for as long as the source
 * delivers. It describes recordings, applies their limits, rotates by time and paces files.
 *
 * Recordings start and end in it with bc_session_start_recording() and
 * bc_session_finish_recording(). With ends_with_recording (files and --once), it ends when its
 * source, a limit or its owner ends the recording; received records are still sealed. */
#ifndef BC_DAEMON_RECORDER_SESSION_H
#define BC_DAEMON_RECORDER_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/base/rules.h"
#include "daemon/ingest/channel.h"
#include "formats/base/must_check.h"

struct bc_log_limits;
struct bc_mapping;
struct bc_pipeline;
struct bc_session;
struct bc_source;

struct bc_session_options {
	uv_loop_t *loop;
	struct bc_pipeline *pipeline;
	struct bc_source *source;          /* closed by the session */
	const struct bc_mapping *mapping;  /* must outlive the session */
	struct bc_channel_options channel; /* except loop, pipeline, session and on_full */
	struct bc_log_limits *limits;      /* of the loop's thread */
	double speed;                      /* pace of a file; 0: as fast as possible */
	bool ends_with_recording;
	void *context;

	/* The recording has reached a limit; its end is before position `at` of the channel. The
	 * callee calls bc_session_finish_recording(). Not if the session ends with it. */
	void (*on_limit)(void *context, uint32_t at);

	/* The recording is about to end; its last chunk has not been sent. */
	void (*on_ending)(void *context);

	/* The source has ended, and its recordings are sealed or abandoned. */
	void (*on_done)(void *context);
};

/* The outcome of the session. */
struct bc_session_outcome {
	uint64_t damages;   /* places where the stream was unreadable */
	uint64_t breaks;    /* interruptions of a live stream */
	bool has_failed;    /* the source or the disk ended it early */
	bool has_no_device; /* because no board appeared */
	char err[512];      /* if it failed: a sentence */
};

/* Starts the source. Returns 0, or a negative errno with the source closed. */
int bc_session_start(
	struct bc_session **session, const struct bc_session_options *options) BC_MUST_CHECK;

/* Starts a recording, after bc_channel_trim(). `recording` is completed when data arrives, and must
 * remain valid until its BC_NOTICE_ENDED. */
void bc_session_start_recording(struct bc_session *session, struct bc_recording_info *recording,
	const struct bc_rotation *rotation, const struct bc_stop_rules *stop);

/* Ends the recording before position `at`; the session continues. */
void bc_session_finish_recording(struct bc_session *session, uint32_t at);

/* Ends the recording `rest` after position `at`, or earlier if another limit is reached. A time is
 * the host's, from now, or in a replay the bus time. */
void bc_session_end_after(
	struct bc_session *session, uint32_t at, const struct bc_time_or_size *rest);

/* Ends the session; what was received of a recording is written. on_done() follows. */
void bc_session_stop(struct bc_session *session);

/* Ends the recording before position `at` now, and the session on the loop's next iteration. */
void bc_session_end_at(struct bc_session *session, uint32_t at);

/* Returns whether the session is ending. */
bool bc_session_is_draining(const struct bc_session *session);

/* Ends the session without waiting: the owner has abandoned its recording in the pipeline. */
void bc_session_abandon(struct bc_session *session);

/* Changes the rotation. A time that changes counts from now. */
void bc_session_set_rotation(struct bc_session *session, const struct bc_rotation *rotation);

/* The pipeline's callbacks, forwarded by its owner. */
void bc_session_on_slot_free(struct bc_session *session);
void bc_session_on_stats(struct bc_session *session);
void bc_session_on_ended(struct bc_session *session);

/* Returns whether the latest recording has reached a limit. */
bool bc_session_hit_limit(const struct bc_session *session);

struct bc_channel *bc_session_channel(const struct bc_session *session);
const struct bc_session_outcome *bc_session_outcome(const struct bc_session *session);

/* Call after on_done(). Frees the memory when the loop has closed the handles. NULL is allowed. */
void bc_session_close(struct bc_session *session);

#endif
