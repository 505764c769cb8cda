/* The status of the daemon: the object that GET /v1/status returns and --once prints. Its members
 * are the figures of formats/base/figures.h. Also what the status is computed from once a second:
 * the rates, and how long the disk will last. */
#ifndef BC_DAEMON_RECORDER_STATUS_H
#define BC_DAEMON_RECORDER_STATUS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/source/source.h"
#include "daemon/base/rules.h"
#include "daemon/base/thread_health.h"
#include "daemon/ingest/counts.h"
#include "daemon/ingest/pipeline.h"
#include "daemon/store/recording_info.h"
#include "daemon/store/writer.h"

struct bc_rates {
	bool is_known; /* a second has passed; before, all are 0 */
	double samples_per_s;
	double records_per_s;  /* that entered the buffer, negative if more were dropped from it */
	double bytes_in_per_s; /* of written records, before compression */
	double bytes_out_per_s;
	double growth_per_s; /* bytes_out_per_s over the last minute */
};

#define BC_RATE_SECONDS 60u

/* The counts at the last poll; zero at the start, except polled_ns. */
struct bc_rate_meter {
	uint64_t polled_ns; /* of bc_now_ns() */
	uint64_t received;
	uint64_t written;
	uint64_t buffered; /* written or in flight */
	uint64_t bytes_out;

	/* The polls of the last minute, in a ring. */
	unsigned polls;
	struct {
		uint64_t ns;
		uint64_t bytes_out;
	} minute[BC_RATE_SECONDS];
};

/* Sets the rates since the last poll, which should be a second ago; now_ns is bc_now_ns(). */
void bc_rates_poll(struct bc_rates *rates, struct bc_rate_meter *meter,
	const struct bc_counts *counts, const struct bc_writer_stats *stats, uint64_t now_ns);

/* What the space rules leave: how full the ring is, if the rules make recordings one, and how long
 * the disk will last otherwise. */
struct bc_space_forecast {
	bool has_ring;           /* a rule deletes old segments for space */
	uint64_t limit_bytes;    /* all segments together; 0: not known, or not yet */
	uint64_t limit_segments; /* 0: no such rule */
	uint64_t seconds_left;   /* until the disk is full; UINT64_MAX: the rules prevent that,
				  * nothing is being written, or the free space is unknown */
};

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
	const char *state; /* one of the figure's states */
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
	const char *busy; /* a thread in one call for 5 s; or "" */
	const char *mode; /* bc_record_mode_name() */
	bool has_flight;
	struct bc_status_flight flight; /* if has_flight */
	unsigned triggers;              /* armed */
	unsigned streams_events;
	unsigned streams_records;
	uint64_t commands_waiting;
	uint64_t commands_failed;
};

/* What the rules and the growth of the last minute mean for the disk. */
struct bc_space_forecast bc_status_space(const struct bc_status *status);

/* The progress of the recording; zero while the writer still works on the previous one. */
struct bc_status_progress {
	uint32_t segment;
	uint64_t records;
	uint64_t bytes;
	char path[4096 + BC_SEGMENT_NAME_MAX + 16]; /* its newest file; empty: none yet */
};
struct bc_status_progress bc_status_progress(const struct bc_status *status);

/* Returns the object, which the caller deletes; NULL if out of memory. */
json_t *bc_status_json(const struct bc_status *status);

/* Returns it as a line of text with a newline, which the caller frees; NULL if out of memory. */
char *bc_status_write(const struct bc_status *status);

#endif
