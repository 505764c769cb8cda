/* A session: one recording being made from one source. It ties source, decoder and pipeline
 * together, keeps the limits (rotation by time, the stop rules, the pace of a file), and ends when
 * the source, a limit or its owner says so; what is in hand is then written and sealed. */
#ifndef BC_DAEMON_SESSION_H
#define BC_DAEMON_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "capture/source.h"
#include "daemon/pipeline.h"
#include "daemon/rules.h"

struct bc_session;

struct bc_session_options {
	uv_loop_t *loop;
	struct bc_pipeline *pipeline;
	struct bc_source *source;         /* the session closes it */
	const struct bc_mapping *mapping; /* kept */
	struct bc_recording *recording;   /* kept until on_done(); completed by the first data */
	struct bc_rotation rotation;
	struct bc_stop_rules stop;
	double speed; /* paces a replay; 0: as fast as it goes */
	void *context;
	void (*on_done)(void *context); /* everything is written and sealed, or given up */
};

/* How it went. */
struct bc_session_outcome {
	uint64_t damages;   /* places where the stream could not be read */
	uint64_t breaks;    /* places where a live stream broke off and went on */
	bool has_failed;    /* the source, or the way to the disk, ended it early */
	bool has_no_device; /* because no board came */
	char why[512];      /* then: a sentence */
};

/* Begins the recording and starts the source. Returns 0, or a negative errno with the source
 * closed. */
int bc_session_start(struct bc_session **session, const struct bc_session_options *options)
	__attribute__((warn_unused_result));

/* Ends it: what was received is written. on_done() follows. */
void bc_session_stop(struct bc_session *session);

/* Whether it is ending, and only the rest is being written. */
bool bc_session_is_draining(const struct bc_session *session);

/* Ends it now: what the disk doesn't take is given up and counted. */
void bc_session_abandon(struct bc_session *session);

/* New rules of rotation by time, from the next segment on. */
void bc_session_set_rotation(struct bc_session *session, const struct bc_rotation *rotation);

/* The pipeline's news, passed on by its owner. */
void bc_session_on_room(struct bc_session *session);
void bc_session_on_report(struct bc_session *session);
void bc_session_on_ended(struct bc_session *session);

const struct bc_session_outcome *bc_session_outcome(const struct bc_session *session);

/* Frees it, after on_done(). Its memory goes when the loop has closed its handles. NULL is none. */
void bc_session_close(struct bc_session *session);

#endif
