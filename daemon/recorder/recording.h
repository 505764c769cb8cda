/* A take: a recording of this run as the daemon sees it, from its beginning to when it is sealed,
 * with how it went. What the encoder and the writer need of it is in its struct bc_recording_info.
 */
#ifndef BC_DAEMON_RECORDER_RECORDING_H
#define BC_DAEMON_RECORDER_RECORDING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "daemon/ingest/counts.h"
#include "daemon/store/recording_info.h"
#include "daemon/store/writer_notices.h"
#include "daemon/trigger/trigger.h"
#include "formats/base/must_check.h"

#define BC_RECORDING_TRIGGERS BC_TRIGGERS_REQUESTED

enum bc_recording_state {
	BC_RECORDING_RUNNING,
	BC_RECORDING_DRAINING, /* it has ended; the rest is being written and sealed */
	BC_RECORDING_ENDED,
};

/* Why it ended. */
enum bc_recording_reason {
	BC_RECORDING_ONGOING,
	BC_RECORDING_REQUEST, /* somebody asked */
	BC_RECORDING_LIMIT,
	BC_RECORDING_TRIGGER,
	BC_RECORDING_SOURCE, /* it was over */
	BC_RECORDING_SIGNAL,
	BC_RECORDING_FAILED,
};

struct bc_source;

/* Somebody who waits for its end. */
struct bc_recording_waiter;

struct bc_recording {
	struct bc_recording *next; /* the one before it */
	struct bc_recording_info info;
	enum bc_recording_state state;
	enum bc_recording_reason reason;
	int64_t ended_ns; /* host's time of day */

	/* At its beginning. */
	struct bc_counts counts_before;
	uint64_t damages_before;
	uint64_t breaks_before;

	/* When it got nothing more, if it has been told to end: what comes while it is being sealed
	 * is not its own. */
	bool has_after;
	struct bc_counts counts_after;
	uint64_t damages_after;
	uint64_t breaks_after;

	/* At its end. */
	uint64_t damages;
	struct bc_writer_notice totals;
	struct bc_recording_waiter *waiters;

	/* Triggers that are armed until its end, by name. */
	unsigned triggers_count;
	char triggers[BC_RECORDING_TRIGGERS][BC_TRIGGER_NAME_MAX + 1];

	/* Of a replay. */
	bool is_replay;
	bool is_cancelled;
	char path[4096];
	char error[512]; /* empty: none */
};

/* The takes of this run, the newest first; empty when all zero. */
struct bc_recordings {
	struct bc_recording *newest;
	time_t id_second; /* the latest recording's id is of this second, and has this number */
	uint32_t id_number;
};

/* Adds one with a new id, described but for its metadata. Ended ones are forgotten, except for the
 * latest recording and the latest replays. Returns NULL when memory ran out. */
struct bc_recording *bc_recordings_add(struct bc_recordings *recordings, const char *label,
	const struct bc_source *source, const char *host);

/* The one with that id; NULL: there is none. */
struct bc_recording *bc_recordings_find(const struct bc_recordings *recordings, const char *id);

/* Frees them. A waiter gets its take as it is: how it ended is not known. */
void bc_recordings_free(struct bc_recordings *recordings);

/* Calls done() when the take has ended. Returns 0 or -ENOMEM. */
int bc_recording_wait(struct bc_recording *recording, void *context,
	void (*done)(void *context, const struct bc_recording *recording)) BC_MUST_CHECK;

/* It has ended: whoever waits is told. */
void bc_recording_end(struct bc_recording *recording, const struct bc_writer_notice *totals);

/* What is known of a take that has not ended yet. */
struct bc_recording_now {
	uint64_t records; /* written, or on their way */
	uint64_t bytes;
	uint32_t segments;
	uint64_t lost;
	const char *file; /* its newest, without a directory; empty: none yet */
	bool is_open;     /* it has BC_PARTIAL_SUFFIX behind that name still */
};

/* The recording as an object (docs/api.md), or the replay that it is of. `now` is looked at while
 * it has not ended. NULL when memory ran out. */
json_t *bc_recording_json(
	const struct bc_recording *recording, const struct bc_recording_now *now, const char *dir);
json_t *bc_recording_replay_json(
	const struct bc_recording *recording, const struct bc_recording_now *now, const char *dir);

#endif
