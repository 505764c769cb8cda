/* The counts and the state of the writer (daemon/store/writer.h). */
#ifndef BC_DAEMON_STORE_WRITER_STATS_H
#define BC_DAEMON_STORE_WRITER_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/segment/segment_name.h"

/* Sums since the start, in records unless the name says otherwise. */
struct bc_writer_stats {
	uint64_t written;         /* given to the kernel */
	uint64_t durable;         /* synced, included in `written` */
	uint64_t unrecorded;      /* discarded: after stop_bytes was reached */
	uint64_t abandoned;       /* given up by bc_writer_abandon() */
	uint64_t deleted_records; /* written to segments that were deleted while open */
	uint64_t bytes;           /* written to all segments */
	/* The current or the last recording of the writer; the loop may already be at the next one.
	 * Tag 0: none yet. */
	uint64_t recording_tag;
	uint64_t recording_bytes; /* of its segments */
	uint64_t recording_records;
	uint32_t segment;               /* the open one, or the one sealed last */
	char file[BC_SEGMENT_NAME_MAX]; /* its final name; empty: none yet, or it was abandoned or
					 * deleted and the next one is not created yet */
	bool is_open;                   /* `file` is still named .partial */
	bool is_full;                   /* the recording has reached stop_bytes */
	bool is_stuck;                  /* a chunk can't be written for now */
	bool is_hopeless;  /* is_stuck, and a user must intervene: no directory, no permission */
	uint64_t sealed;   /* segments */
	unsigned unsealed; /* files that could not be sealed */
	unsigned deleted;  /* files that were deleted while open */
	/* At the last check: of the file system; of all segments. */
	bool is_free_unknown; /* the file system does not tell */
	uint64_t free_bytes;
	bool has_no_inodes; /* no file can be created */
	uint64_t used_bytes;
	uint64_t segments;
	char error[256];      /* the latest error, "FILE: WHAT: WHY"; empty: none yet */
	unsigned error_cause; /* where WHAT starts in it */
};

#endif
