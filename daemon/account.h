/* How a recording goes and went: rates, a line for what was lost, the summary at the end, the exit
 * code. */
#ifndef BC_DAEMON_ACCOUNT_H
#define BC_DAEMON_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/counts.h"
#include "daemon/log_limit.h"
#include "daemon/session.h"
#include "daemon/status.h"
#include "daemon/writer.h"

/* Of buscapd, and of --help. */
enum bc_exit {
	BC_EXIT_OK = 0,
	BC_EXIT_FAILED = 1,
	BC_EXIT_USAGE = 2,
	BC_EXIT_DAMAGED = 3,   /* the input was damaged or torn; what was good is recorded */
	BC_EXIT_LOST = 4,      /* finished, but samples were lost */
	BC_EXIT_NO_DEVICE = 5, /* --once: no board came within the wait */
};

/* What was seen at the last look; zero at the start, but looked_ns. */
struct bc_account {
	uint64_t looked_ns; /* of uv_hrtime() */
	struct bc_counts looked;
	uint64_t looked_bytes;
	struct bc_rates rates; /* since the look before */
	bool is_misfit;        /* what comes was said to be hardly what it is taken for */

	/* A time in which samples are lost, with less than QUIET_NS between the losses. */
	bool is_losing;
	struct bc_counts before; /* its first loss */
	uint64_t losing_since_ns;
	uint64_t lost_ns; /* its latest loss */
	uint64_t tell_at_ns;
	uint64_t tell_after_ns;
	struct bc_log_limits limits;
};

/* Looks, once a second, at `now_ns` of bc_now_ns(): sets the rates, and logs when samples begin to
 * be lost, how many while it goes on (after a minute, two, four, up to an hour) and when it has
 * ended. */
void bc_account_look(struct bc_account *account, const struct bc_counts *counts,
	const struct bc_writer_report *report, uint64_t now_ns);

/* When all is over: sums up in the log what was only counted. */
void bc_account_end(struct bc_account *account);

/* Logs how a recording went: what is in it, what is not and why. `before` are the counts at its
 * beginning, `totals` what the writer says of it; `is_alone`: all that was received was for it;
 * damages and breaks are those of its time. */
void bc_account_summary(const char *recording, bool is_alone, const struct bc_counts *counts,
	const struct bc_counts *before, const struct bc_writer_news *totals,
	const struct bc_session_outcome *outcome, uint64_t damages, uint64_t breaks);

/* What was lost between two moments. */
bool bc_account_has_lost(const struct bc_counts *now, const struct bc_counts *before);

/* Logs, at the daemon's end, what of its files needs somebody's care. */
void bc_account_care(const struct bc_writer_report *report);

/* The exit code for it all. Damage of a replay's input is damage; of a live stream it is a loss. */
enum bc_exit bc_account_exit(bool is_replay, bool has_lost, const struct bc_writer_report *report,
	const struct bc_session_outcome *outcome);

#endif
