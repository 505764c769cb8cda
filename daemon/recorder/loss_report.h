/* Logs losses: while they occur, and in the summary at the end of a recording. */
#ifndef BC_DAEMON_RECORDER_LOSS_REPORT_H
#define BC_DAEMON_RECORDER_LOSS_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/log_limit.h"
#include "daemon/ingest/counts.h"

struct bc_recording;
struct bc_session_outcome;
struct bc_writer_notice;

/* Zero at the start, except the first two. */
struct bc_loss_report {
	struct bc_log_limits *limits; /* of the loop's thread */
	uint64_t polled_ns;           /* last poll, of bc_now_ns() */
	struct bc_counts polled;      /* the counts then */
	bool is_misfit;               /* logged that the data does not look like the protocol */

	/* The current period of losses, which are less than QUIET_NS apart. */
	bool is_losing;
	struct bc_counts before; /* before the first loss */
	uint64_t losing_since_ns;
	uint64_t lost_ns; /* latest loss */
	uint64_t log_at_ns;
	uint64_t log_interval_ns;
};

/* Call once a second; now_ns is bc_now_ns(). Logs when losses start, their sum while they continue
 * (after one minute, two, four, up to an hour), and when they have ended. `activity`: see
 * bc_recorder_loss_activity(). */
void bc_loss_report_poll(struct bc_loss_report *report, const struct bc_counts *counts,
	const char *activity, uint64_t now_ns);

/* Logs the summary of a recording that has ended: its contents, and what is missing and why.
 * `totals` are the writer's; is_only_recording: everything received belongs to it. */
void bc_loss_report_summary(const struct bc_recording *recording, bool is_only_recording,
	const struct bc_writer_notice *totals, const struct bc_session_outcome *outcome);

#endif
