/* The status object that GET /v1/status returns and --once prints. Scripts rely on its members: new
 * ones may be added, existing ones are not renamed. */
#ifndef BC_DAEMON_RECORDER_STATUS_H
#define BC_DAEMON_RECORDER_STATUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/source/source.h"
#include "daemon/ingest/counts.h"
#include "daemon/ingest/pipeline.h"
#include "daemon/recorder/rates.h"
#include "daemon/store/recording_info.h"
#include "daemon/store/writer.h"

/* What `state` and `mode` may be; the lists end with NULL. */
extern const char *const bc_status_states[];
extern const char *const bc_status_modes[];

/* What the flight recorder holds, and may hold; a limit of 0 is none. */
struct bc_status_flight {
	double seconds;
	uint64_t bytes; /* of records */
	uint64_t records;
	unsigned chunks;
	double limit_seconds;
	uint64_t limit_bytes;
};

struct bc_status {
	const char *state; /* one of bc_status_states */
	const char *source_kind;
	const char *source_name;
	uint64_t clock_hz;
	const struct bc_board *board;              /* NULL: the source has none */
	const struct bc_recording_info *recording; /* NULL: none */
	const char *metadata; /* the recording's as it is now, JSON; NULL: none */
	const char *dir;
	const struct bc_counts *counts;
	const struct bc_writer_stats *report;
	struct bc_buffer_state buffer;
	struct bc_rates rates;
	uint64_t damages;
	unsigned clients;
	double uptime_s;
	const char *mode;                      /* one of bc_status_modes */
	const struct bc_status_flight *flight; /* NULL: there is no flight recorder */
	const char *replay_id;                 /* NULL: none is under way, or being sealed */
	const char *replay_path;
	unsigned triggers; /* that are armed */
	unsigned streams_events;
	unsigned streams_records;
	uint64_t sealed_segments; /* in this life */
	uint64_t commands_waiting;
	uint64_t commands_failed;
};

/* Seconds until the disk is full at the current rate. Returns false while nothing is being written.
 */
bool bc_status_time_left(const struct bc_status *status, uint64_t *seconds);

/* How far the recording has come. The writer's report may be of the one before it still: nothing is
 * written of this one then. */
struct bc_status_progress {
	uint32_t segment;
	uint64_t records;
	uint64_t bytes;
	char path[4096 + BC_SEGMENT_NAME_MAX + 16]; /* of its newest file; empty: it has none now */
};
void bc_status_progress(const struct bc_status *status, struct bc_status_progress *progress);

/* The object; NULL when memory ran out. */
json_t *bc_status_json(const struct bc_status *status);

/* The same as one line of text with its newline, for the caller to free; NULL when memory ran
 * out. */
char *bc_status_write(const struct bc_status *status);

#endif
