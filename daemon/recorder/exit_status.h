/* The exit code of a run, and what it logs about files that need attention. */
#ifndef BC_DAEMON_RECORDER_EXIT_STATUS_H
#define BC_DAEMON_RECORDER_EXIT_STATUS_H

#include <stdbool.h>

#include "formats/base/usage.h"

struct bc_session_outcome;
struct bc_writer_stats;

/* Returns the exit code of the run. Damage in a replay's input is BC_EXIT_DAMAGED, in a live stream
 * it is BC_EXIT_LOST. */
enum bc_exit bc_exit_status(bool is_replay, bool has_lost, const struct bc_writer_stats *stats,
	const struct bc_session_outcome *outcome);

/* Logs, when the daemon ends, how many files need attention. */
void bc_exit_log_files(const struct bc_writer_stats *stats);

#endif
