#include "daemon/recorder/exit_status.h"

#include <inttypes.h>

#include "daemon/base/log.h"
#include "daemon/recorder/session.h"
#include "daemon/store/writer_report.h"

enum bc_exit bc_exit_status(bool is_replay, bool has_lost, const struct bc_writer_stats *stats,
	const struct bc_session_outcome *outcome)
{
	if (outcome->has_no_device)
		return BC_EXIT_NO_DEVICE;
	if (outcome->has_failed || stats->unsealed != 0)
		return BC_EXIT_FAILED;
	if (is_replay && outcome->damages != 0)
		return BC_EXIT_DAMAGED;
	bool is_whole = !has_lost && outcome->damages == 0 && stats->deleted == 0;
	return is_whole && (is_replay || outcome->breaks == 0) ? BC_EXIT_OK : BC_EXIT_LOST;
}

void bc_exit_log_files(const struct bc_writer_stats *stats)
{
	if (stats->unsealed != 0)
		bc_log(BC_LOG_ERROR,
			"unsealed files: %u; the next start recovers their .partial files",
			stats->unsealed);
	if (stats->deleted != 0)
		bc_log(BC_LOG_ERROR,
			"files deleted while being written: %u; records lost in them: %" PRIu64,
			stats->deleted, stats->deleted_records);
}
