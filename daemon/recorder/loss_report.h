/* What the log says of losses: while they happen, and in the summary at a recording's end. */
#ifndef BC_DAEMON_RECORDER_LOSS_REPORT_H
#define BC_DAEMON_RECORDER_LOSS_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/log_limit.h"
#include "daemon/ingest/counts.h"

struct bc_session_outcome;
struct bc_writer_notice;

/* What was seen at the last look; zero at the start, but polled_ns. */
struct bc_loss_report {
	uint64_t polled_ns; /* of uv_hrtime() */
	struct bc_counts polled;
	bool is_misfit; /* what comes was said to be hardly what it is taken for */

	/* A time in which samples are lost, with less than QUIET_NS between the losses. */
	bool is_losing;
	struct bc_counts before; /* its first loss */
	uint64_t losing_since_ns;
	uint64_t lost_ns; /* its latest loss */
	uint64_t log_at_ns;
	uint64_t log_interval_ns;
	struct bc_log_limits limits;
};

/* To be called once a second, at `now_ns` of bc_now_ns(): logs when samples begin to be lost, how
 * many while it goes on (after a minute, two, four, up to an hour) and when it has ended. */
void bc_loss_report_poll(
	struct bc_loss_report *report, const struct bc_counts *counts, uint64_t now_ns);

/* When all is over: sums up in the log what was only counted. */
void bc_loss_report_finish(struct bc_loss_report *report);

/* Logs how a recording went: what is in it, what is not and why. `before` are the counts at its
 * beginning, `totals` what the writer says of it; `is_only_recording`: all that was received was
 * for it; damages and breaks are those of its time. */
void bc_loss_report_summary(const char *recording, bool is_only_recording,
	const struct bc_counts *counts, const struct bc_counts *before,
	const struct bc_writer_notice *totals, const struct bc_session_outcome *outcome,
	uint64_t damages, uint64_t breaks);

/* What was lost between two moments. */
bool bc_loss_report_has_lost(const struct bc_counts *now, const struct bc_counts *before);

#endif
