/* How a recording goes and went: rates, a line for what was lost, the summary at the end, the exit
 * code. */
#ifndef BC_DAEMON_ACCOUNT_H
#define BC_DAEMON_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/counts.h"
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
};

/* Looks, once a second: sets the rates and logs what was lost since the look before. */
void bc_account_look(struct bc_account *account, const struct bc_counts *counts,
	const struct bc_writer_report *report);

/* Logs how a recording went: what is in it, what is not and why. `recording` is its id. */
void bc_account_summary(const char *recording, const struct bc_counts *counts,
	const struct bc_writer_report *report, const struct bc_session_outcome *outcome);

/* The exit code for it. Damage of a replay's input is damage; of a live stream it is a loss. */
enum bc_exit bc_account_exit(bool is_replay, const struct bc_counts *counts,
	const struct bc_writer_report *report, const struct bc_session_outcome *outcome);

#endif
