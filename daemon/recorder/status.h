/* The status object that GET /v1/status returns and --once prints. Scripts rely on its members: new
 * ones may be added, existing ones are not renamed. */
#ifndef BC_DAEMON_RECORDER_STATUS_H
#define BC_DAEMON_RECORDER_STATUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/source/source.h"
#include "daemon/base/rules.h"
#include "daemon/ingest/counts.h"
#include "daemon/ingest/pipeline.h"
#include "daemon/recorder/rates.h"
#include "daemon/store/recording_info.h"
#include "daemon/store/writer.h"

/* The values of `state` and `mode`; the lists end with NULL. */
extern const char *const bc_status_states[];
extern const char *const bc_status_modes[];

/* The contents and limits of the flight recorder; a limit of 0 is none. */
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
	const char *dir;
	const struct bc_counts *counts;
	const struct bc_writer_stats *stats;
	struct bc_buffer_state buffer;
	struct bc_rates rates;
	struct bc_rotation rotation; /* the rules in force */
	struct bc_retention_rules space;
	uint64_t damages;
	unsigned clients;
	uint64_t dropped_log_lines;
	double uptime_s;
	const char *mode;                      /* one of bc_status_modes */
	const struct bc_status_flight *flight; /* NULL: no flight recorder */
	unsigned triggers;                     /* armed */
	unsigned streams_events;
	unsigned streams_records;
	uint64_t commands_waiting;
	uint64_t commands_failed;
};

/* Sets the time until the disk is full. Returns false if the rules prevent that, or while nothing
 * is being written. */
bool bc_status_time_left(const struct bc_status *status, uint64_t *seconds);

/* The progress of the recording; zero while the writer's statistics still refer to the previous
 * one.
 */
struct bc_status_progress {
	uint32_t segment;
	uint64_t records;
	uint64_t bytes;
	char path[4096 + BC_SEGMENT_NAME_MAX + 16]; /* its newest file; empty: none yet */
};
void bc_status_progress(const struct bc_status *status, struct bc_status_progress *progress);

/* Returns the object, which the caller deletes; NULL if out of memory. */
json_t *bc_status_json(const struct bc_status *status);

/* Returns it as a line of text with a newline, which the caller frees; NULL if out of memory. */
char *bc_status_write(const struct bc_status *status);

#endif
