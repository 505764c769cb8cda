/* What the writer reports to the loop: notices, each delivered once and in order, and stats.
 *
 * For each recording: OPENED and SEALED for each segment, WRITTEN, and ENDED last. Segments are
 * sealed in order, and recordings end in order, but later ones, also of the next recording, may be
 * OPENED before. A segment that could not be sealed has no SEALED; ENDED counts it in left_open. */
#ifndef BC_DAEMON_STORE_WRITER_REPORT_H
#define BC_DAEMON_STORE_WRITER_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "formats/base/atomic_file.h"
#include "formats/bus/loss.h"
#include "formats/segment/segment_name.h"

struct bc_recording_info;

enum bc_writer_notice_kind {
	BC_NOTICE_OPENED,
	BC_NOTICE_SEALED,
	BC_NOTICE_WRITTEN, /* all segments; the last ones may not be sealed */
	BC_NOTICE_ENDED,   /* sealed or given up; the writer no longer uses the recording */
};

struct bc_writer_notice {
	struct bc_writer_notice *next; /* or NULL */
	enum bc_writer_notice_kind kind;
	const struct bc_recording_info *recording;
	/* File name without directory. OPENED: the final name; on disk it still has
	 * BC_PARTIAL_SUFFIX. WRITTEN: the newest. ENDED: the last sealed segment; empty if there
	 * was none, or retention deleted it. */
	char file[BC_SEGMENT_NAME_MAX];
	uint32_t segment;
	uint64_t first_record; /* of the segment, counted in the recording */
	int64_t wall_ns;       /* time of day when that record arrived */
	/* SEALED: of the file. WRITTEN, ENDED: of all segments of the recording, sealed or not. */
	uint64_t records;
	uint64_t bytes; /* on the disk */
	uint64_t chunks;
	struct bc_loss loss;           /* of its gaps */
	char hash[BC_FILE_HASH_CHARS]; /* XXH3-128 of the sealed file, in hex */
	uint32_t segments;             /* WRITTEN: all. ENDED: sealed */
	/* ENDED only. */
	uint32_t left_open;         /* files not sealed, or deleted while open */
	uint64_t abandoned;         /* records given up */
	bool is_full;               /* stop_bytes was reached */
	struct bc_losses discarded; /* in chunks discarded after that: in no file */
	unsigned sealing;           /* segments that are not done; 0 when it is sent */
};

/* Appends the list `more`, which may be NULL, to another. Not thread-safe. */
static inline void bc_writer_notices_append(
	struct bc_writer_notice **list, struct bc_writer_notice *more)
{
	while (*list != NULL)
		list = &(*list)->next;
	*list = more;
}

/* NULL is allowed. */
static inline void bc_writer_notices_free(struct bc_writer_notice *list)
{
	while (list != NULL) {
		struct bc_writer_notice *next = list->next;
		free(list);
		list = next;
	}
}

/* Sums since the start, in records unless the name says otherwise. */
struct bc_writer_stats {
	uint64_t written;         /* given to the kernel */
	uint64_t durable;         /* of `written`, synced; without those of failed syncs */
	uint64_t unrecorded;      /* discarded: after stop_bytes was reached */
	uint64_t abandoned;       /* given up by bc_writer_abandon() */
	uint64_t deleted_records; /* written to segments that were deleted while open */
	uint64_t bytes;           /* written to all segments */
	/* The writer's latest recording; the loop may be at the next one. Tag 0: none yet. */
	uint64_t recording_tag;
	uint64_t recording_bytes; /* of its segments */
	uint64_t recording_records;
	uint32_t segment;               /* the open one, or the one sealed last */
	uint64_t first_record;          /* of that segment, counted in the recording */
	char file[BC_SEGMENT_NAME_MAX]; /* its final name; empty: none yet, or it was abandoned or
					 * deleted and the next one is not created yet */
	bool is_open;                   /* `file` may still be named .partial */
	bool is_full;                   /* the recording has reached stop_bytes */
	bool is_stuck;                  /* a chunk can't be written for now */
	bool is_behind;   /* is_stuck, but only because the sealer lags too far behind */
	bool is_hopeless; /* is_stuck, and a user must intervene: no directory, no permission */
	uint64_t last_sync_ns; /* how long it took; 0: none yet */
	uint64_t longest_sync_ns;
	uint64_t sealed;   /* segments */
	unsigned unsealed; /* files that could not be sealed */
	unsigned deleted;  /* files that were deleted while open */
	/* At the last check: of the file system; of all segments. */
	bool is_checked;    /* all segments have been counted */
	bool is_free_known; /* the file system reports it */
	uint64_t free_bytes;
	bool has_no_inodes; /* no file can be created */
	uint64_t used_bytes;
	uint64_t segments;
	char error[256];      /* the latest error, "FILE: WHAT: WHY"; empty: none yet */
	unsigned error_cause; /* where WHAT starts in it */
};

#endif
