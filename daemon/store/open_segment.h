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

struct bc_pair {
	const char *dir; /* for messages, and to open it again when it was replaced */
	int dir_fd;
	bool owns_dir_fd;
	struct bc_stint stint; /* what of the following is being done; the loop looks at it */
	struct bc_writer_report report;
	const struct bc_recording *recording; /* the present one; NULL: none */
	struct bc_writer_news_list news;      /* for the loop */
	struct bc_writer_news total;          /* of the recording so far, as its ENDED will say */
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
void bc_pair_begin(struct bc_pair *pair, const struct bc_recording *recording);

/* The recording has ended, and nothing of it is open. `news` says so, and is the list's then. */
void bc_pair_end(struct bc_pair *pair, struct bc_writer_news *news);

/* The number of what is open, or that of the pair to begin. */
uint32_t bc_pair_number(const struct bc_pair *pair);

/* Begin a file, with bc_pair_number() as the header's segment. Return false when that must be tried
 * again. */
bool bc_pair_open_segment(
	struct bc_pair *pair, const struct bc_segment_header *header) BC_MUST_CHECK;
bool bc_pair_open_raw(struct bc_pair *pair, const struct bc_segment_header *header,
	enum bc_format form) BC_MUST_CHECK;

/* What is in hand must wait; `file` may be empty. Always returns false. */
bool bc_pair_get_stuck(struct bc_pair *pair, const char *file, const char *what, const char *why);

/* Nothing is in the way any more. */
void bc_pair_get_unstuck(struct bc_pair *pair);

bool bc_is_out_of_space(int error);

/* Leave a file that fails as it is; an empty one goes. */
void bc_pair_leave_segment(struct bc_pair *pair);
void bc_pair_leave_raw(struct bc_pair *pair);

/* Ends the pair: what is open is sealed. Returns false when that must be tried again. */
bool bc_pair_cut(struct bc_pair *pair) BC_MUST_CHECK;

/* Sealed files were deleted, by a space rule: one that the report, or what ENDED will say, still
 * names is not named any more. */
void bc_pair_forget_deleted(struct bc_pair *pair);

/* Closes what is open as it is. */
void bc_pair_abandon(struct bc_pair *pair);

bool bc_pair_has_unsynced(const struct bc_pair *pair);

/* Makes durable what isn't. */
void bc_pair_sync(struct bc_pair *pair);

/* Somebody may have deleted an open file: what was written to it is gone, and what followed would
 * be. */
void bc_pair_check_deleted(struct bc_pair *pair);

#endif
