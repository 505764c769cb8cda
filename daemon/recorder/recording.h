/* A recording of this run, from its start until it is sealed, and its outcome. Its struct
 * bc_recording_info is the part that the encoder and the writer use. */
#ifndef BC_DAEMON_RECORDER_RECORDING_H
#define BC_DAEMON_RECORDER_RECORDING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "daemon/base/rules.h"
#include "daemon/ingest/counts.h"
#include "daemon/store/recording_info.h"
#include "daemon/store/writer_report.h"
#include "formats/base/must_check.h"

enum bc_recording_state {
	BC_RECORDING_RUNNING,
	BC_RECORDING_DRAINING, /* ended; being written and sealed */
	BC_RECORDING_ENDED,
};

/* Why it ended. */
enum bc_recording_reason {
	BC_RECORDING_ONGOING,
	BC_RECORDING_REQUEST, /* stopped by request */
	BC_RECORDING_LIMIT,
	BC_RECORDING_TRIGGER,
	BC_RECORDING_SOURCE, /* the source ended */
	BC_RECORDING_SIGNAL,
	BC_RECORDING_FAILED,
};

struct bc_source;

/* A caller waiting for its end. */
struct bc_recording_waiter;

/* What the source had delivered at a moment of the run. */
struct bc_recording_moment {
	struct bc_counts counts;
	uint64_t damages;
	uint64_t breaks;
};

struct bc_recording {
	struct bc_recording *next; /* the previous one */
	struct bc_recording_info info;
	struct bc_stop_rules limits; /* 0: none */
	enum bc_recording_state state;
	enum bc_recording_reason reason;

	struct bc_recording_moment before; /* its start */

	/* When it stopped receiving, if it was ended explicitly: what arrives while it is being
	 * sealed is not part of it. */
	bool has_after;
	struct bc_recording_moment after;
	struct bc_losses losses;

	struct bc_writer_notice totals; /* of BC_NOTICE_WRITTEN, then BC_NOTICE_ENDED */
	struct bc_recording_waiter *waiters;
};

/* The recordings of this run, newest first; initially all zero. */
struct bc_recordings {
	struct bc_recording *newest;
	time_t id_second; /* the latest id was made in this second, with this number */
	uint32_t id_number;
};

/* Adds a recording with a new id, fully described except for its metadata. Ended ones are freed,
 * except for the latest. Returns NULL if out of memory. */
struct bc_recording *bc_recordings_add(struct bc_recordings *recordings, int64_t started_ns,
	const char *label, const struct bc_source *source, const char *host);

/* Returns the recording with this id, or NULL. */
struct bc_recording *bc_recordings_find(const struct bc_recordings *recordings, const char *id);

/* Frees all. Waiters are called although their recordings may not have ended. */
void bc_recordings_free(struct bc_recordings *recordings);

/* Calls done() when the recording has ended. Returns 0 or -ENOMEM. */
int bc_recording_wait(struct bc_recording *recording, void *context,
	void (*done)(void *context, const struct bc_recording *recording)) BC_MUST_CHECK;

/* The name of a reason; NULL: it has not ended. */
const char *bc_recording_reason_name(enum bc_recording_reason reason);

/* Marks it as ended and calls the waiters. */
void bc_recording_end(struct bc_recording *recording, const struct bc_writer_notice *totals);

/* As JSON (docs/api.md). They return NULL if out of memory. `now`: what is written so far. `dir`:
 * of the segments. `is_open`: the name of the file has BC_PARTIAL_SUFFIX appended. */
json_t *bc_recording_json(const struct bc_recording *recording, const struct bc_writer_notice *now,
	struct bc_loss loss, const char *dir, bool is_open);
json_t *bc_segment_json(const char *dir, const struct bc_writer_notice *notice);

#endif
