/* Events from the writer to the loop, each delivered once and in order. Counts are in the stats
 * instead (daemon/store/writer_stats.h).
 *
 * For each recording: OPENED and SEALED for each segment, and ENDED last, before any notice of the
 * next recording. A segment that could not be sealed has
 * OPENED but no SEALED; ENDED counts it in left_open. */
#ifndef BC_DAEMON_STORE_WRITER_NOTICES_H
#define BC_DAEMON_STORE_WRITER_NOTICES_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/losses.h"
#include "formats/base/atomic_file.h"
#include "formats/segment/segment_name.h"

struct bc_recording_info;

enum bc_writer_notice_kind {
	BC_NOTICE_OPENED,
	BC_NOTICE_SEALED,
	BC_NOTICE_ENDED, /* sealed or given up; the writer no longer uses the recording */
};

struct bc_writer_notice {
	struct bc_writer_notice *next; /* or NULL */
	enum bc_writer_notice_kind kind;
	const struct bc_recording_info *recording;
	/* File name without directory. OPENED: the final name; on disk it still has
	 * BC_PARTIAL_SUFFIX. ENDED: the last sealed segment; empty if there was none, or retention
	 * deleted it. */
	char file[BC_SEGMENT_NAME_MAX];
	uint32_t segment;
	uint64_t first_record; /* of the segment, counted in the recording */
	int64_t wall_ns;       /* time of day when that record arrived */
	/* SEALED: of the file. ENDED: of all segments of the recording, sealed or not. */
	uint64_t records;
	uint64_t bytes; /* on the disk */
	uint64_t chunks;
	uint64_t gaps;                 /* gap events */
	uint64_t lost;                 /* samples lost in them */
	char hash[BC_FILE_HASH_CHARS]; /* XXH3-128 of the sealed file, in hex */
	/* ENDED only. */
	uint32_t segments;          /* sealed */
	uint32_t left_open;         /* files not sealed, or deleted while open */
	uint64_t abandoned;         /* records given up */
	bool is_full;               /* stop_bytes was reached */
	struct bc_losses discarded; /* in chunks discarded after that: in no file */
};

/* A list of notices. Not thread-safe. */
struct bc_writer_notice_list {
	struct bc_writer_notice *first;
	struct bc_writer_notice *last;
};

/* Appends a notice; the list owns it from then on. */
void bc_writer_notices_add(struct bc_writer_notice_list *list, struct bc_writer_notice *notice);

/* Appends `from` to `to` and empties `from`. */
void bc_writer_notices_move(struct bc_writer_notice_list *to, struct bc_writer_notice_list *from);

/* Frees a list. NULL is allowed. */
void bc_writer_notices_free(struct bc_writer_notice *first);

#endif
