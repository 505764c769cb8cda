/* The open segment: created, synced, sealed, or closed after an error.
 *
 * An operation that fails for now, on a full disk, marks the writer as stuck: repeat it at
 * retry_at_ns. A file that fails for good is closed without sealing, and logged. Writer thread
 * only. */
#ifndef BC_DAEMON_STORE_OPEN_SEGMENT_H
#define BC_DAEMON_STORE_OPEN_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/log_limit.h"
#include "daemon/base/thread_health.h"
#include "daemon/store/catalogue.h"
#include "daemon/store/writer_report.h"
#include "formats/base/must_check.h"
#include "formats/segment/segment_writer.h"

struct bc_open_segment {
	const char *dir; /* for messages, and to open it again if it was replaced */
	int dir_fd;
	struct bc_catalogue *catalogue; /* of the directory */
	bool owns_dir_fd;
	bool is_dir_moved;              /* `dir` no longer names the directory */
	struct bc_thread_health health; /* the current operation; read by the loop */
	struct bc_writer_stats stats;
	const struct bc_recording_info *recording; /* the current one, or NULL */
	struct bc_writer_notice *notices;          /* for the loop */
	struct bc_writer_notice *sealed_notice;    /* allocated with the file: must not be lost */
	struct bc_writer_notice total;             /* of the recording so far, for its ENDED */
	struct bc_segment_writer segment;
	uint32_t next_number;
	uint64_t unsynced; /* records written to the open segment but not durable */
	uint64_t retry_at_ns;
	uint64_t stuck_since_ns;
	char stuck_reason[200]; /* the reason logged last */
	struct bc_log_limits limits;
};

/* Starts a recording, after the previous one has ended. */
void bc_open_segment_start(struct bc_open_segment *open, const struct bc_recording_info *recording);

/* Ends the recording, whose segments are closed: sends ENDED in `notice`. */
void bc_open_segment_end(struct bc_open_segment *open, struct bc_writer_notice *notice);

/* Returns the number of the open segment, or of the next one if none is open. */
uint32_t bc_open_segment_number(const struct bc_open_segment *open);

/* Creates a segment. header->segment must be bc_open_segment_number(). Returns false to be called
 * again. */
bool bc_open_segment_create(
	struct bc_open_segment *open, const struct bc_segment_header *header) BC_MUST_CHECK;

/* Likewise, for a last attempt: returns 0, or a negative errno without marking the writer as stuck.
 */
int bc_open_segment_create_last(
	struct bc_open_segment *open, const struct bc_segment_header *header) BC_MUST_CHECK;

/* Marks the writer as stuck and logs the reason if it is new. `file` may be empty. Always returns
 * false. */
bool bc_open_segment_mark_stuck(
	struct bc_open_segment *open, const char *file, const char *what, const char *err);

/* Logs the recovery if it was stuck. */
void bc_open_segment_clear_stuck(struct bc_open_segment *open);

bool bc_is_out_of_space(int error);

/* Closes a segment that has failed: as bc_open_segment_abandon(), but logged. */
void bc_open_segment_abandon_file(struct bc_open_segment *open);

/* Seals the open segment, if there is one. Returns false to be called again. */
bool bc_open_segment_cut(struct bc_open_segment *open) BC_MUST_CHECK;

/* Call after retention has deleted files: removes their names from the stats and the totals. */
void bc_open_segment_forget_deleted(struct bc_open_segment *open);

/* Closes the open segment without sealing it. An empty one is deleted. */
void bc_open_segment_abandon(struct bc_open_segment *open);

bool bc_open_segment_has_unsynced(const struct bc_open_segment *open);

void bc_open_segment_sync(struct bc_open_segment *open);

/* Frees memory. The notices belong to the caller. */
void bc_open_segment_destroy(struct bc_open_segment *open);

/* Has the catalogue look at the open segment, which grows. */
void bc_open_segment_look(struct bc_open_segment *open);

/* Closes the open segment if others have deleted or renamed it: its records are lost, and further
 * ones would be. */
void bc_open_segment_check_deleted(struct bc_open_segment *open);

/* Logs if the directory was renamed, or has its name again. Files stay in it. */
void bc_open_segment_check_dir(struct bc_open_segment *open);

#endif
