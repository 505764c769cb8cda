/* The open segment and, where raw bytes are kept, the raw capture beside it: the pair has one
 * number, and ends together. Each is begun with what is first written to it.
 *
 * What can't be done must wait and be tried again, at retry_at_ns; the pair is then stuck. A file
 * that fails for good is left as it is, and said to be: must_cut then wants the other to end, too,
 * before anything more is written. The writer's thread's own. */
#ifndef BC_DAEMON_STORE_OPEN_SEGMENT_H
#define BC_DAEMON_STORE_OPEN_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/log_limit.h"
#include "daemon/base/thread_health.h"
#include "daemon/store/writer_notices.h"
#include "daemon/store/writer_stats.h"
#include "formats/base/must_check.h"
#include "formats/segment/segment_writer.h"

struct bc_open_segment {
	const char *dir; /* for messages, and to open it again when it was replaced */
	int dir_fd;
	bool owns_dir_fd;
	struct bc_thread_health
		stint; /* what of the following is being done; the loop looks at it */
	struct bc_writer_stats report;
	const struct bc_recording_info *recording; /* the present one; NULL: none */
	struct bc_writer_notice_list news;         /* for the loop */
	struct bc_writer_notice total; /* of the recording so far, as its ENDED will say */
	struct bc_segment_writer segment;
	struct bc_segment_writer raw;
	uint64_t segment_first; /* first record of the open segment, and when it came */
	int64_t segment_wall_ns;
	uint64_t raw_first; /* the same of the raw capture */
	int64_t raw_wall_ns;
	uint32_t next_number; /* of the next pair */
	bool must_cut;
	uint64_t unsynced; /* records written to the open segment and not durable */
	uint64_t retry_at_ns;
	uint64_t stuck_since_ns;
	char stuck_reason[200]; /* as logged last */
	int manifest_error;     /* likewise; 0: the last line could be added */
	struct bc_log_limits limits;
};

/* A recording begins: nothing of another is open. */
void bc_open_segment_start(struct bc_open_segment *pair, const struct bc_recording_info *recording);

/* The recording has ended, and nothing of it is open. `news` says so, and is the list's then. */
void bc_open_segment_end(struct bc_open_segment *pair, struct bc_writer_notice *news);

/* The number of what is open, or that of the pair to begin. */
uint32_t bc_open_segment_number(const struct bc_open_segment *pair);

/* Begin a file, with bc_open_segment_number() as the header's segment. Return false when that must
 * be tried again. */
bool bc_open_segment_open_segment(
	struct bc_open_segment *pair, const struct bc_segment_header *header) BC_MUST_CHECK;
bool bc_open_segment_open_raw(struct bc_open_segment *pair, const struct bc_segment_header *header,
	enum bc_format form) BC_MUST_CHECK;

/* What is in hand must wait; `file` may be empty. Always returns false. */
bool bc_open_segment_mark_stuck(
	struct bc_open_segment *pair, const char *file, const char *what, const char *err);

/* Nothing is in the way any more. */
void bc_open_segment_clear_stuck(struct bc_open_segment *pair);

bool bc_is_out_of_space(int error);

/* Leave a file that fails as it is; an empty one goes. */
void bc_open_segment_abandon_segment(struct bc_open_segment *pair);
void bc_open_segment_abandon_raw(struct bc_open_segment *pair);

/* Ends the pair: what is open is sealed. Returns false when that must be tried again. */
bool bc_open_segment_cut(struct bc_open_segment *pair) BC_MUST_CHECK;

/* Sealed files were deleted, by a space rule: one that the report, or what ENDED will say, still
 * names is not named any more. */
void bc_open_segment_forget_deleted(struct bc_open_segment *pair);

/* Closes what is open as it is. */
void bc_open_segment_abandon(struct bc_open_segment *pair);

bool bc_open_segment_has_unsynced(const struct bc_open_segment *pair);

/* Makes durable what isn't. */
void bc_open_segment_sync(struct bc_open_segment *pair);

/* Somebody may have deleted an open file: what was written to it is gone, and what followed would
 * be. */
void bc_open_segment_check_deleted(struct bc_open_segment *pair);

#endif
