/* What the writer (daemon/store/writer.h) counts, and how it is doing. */
#ifndef BC_DAEMON_STORE_WRITER_STATS_H
#define BC_DAEMON_STORE_WRITER_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/segment/segment_name.h"

/* Sums are since the start, of records unless they say bytes. */
struct bc_writer_stats {
	uint64_t written;       /* given to the kernel */
	uint64_t durable;       /* of them, made durable */
	uint64_t unrecorded;    /* left out: they came after the recording had reached stop_bytes */
	uint64_t abandoned;     /* given up, by bc_writer_abandon() */
	uint64_t raw_abandoned; /* bytes of the stream, likewise */
	uint64_t bytes;         /* of all that was written */
	/* Of the recording that the writer is at, or was at last, told by its tag; 0: of none yet.
	 * The loop may be at another already. */
	uint64_t recording_tag;
	uint64_t recording_bytes; /* of its segments */
	uint64_t recording_records;
	uint32_t segment;               /* the open one, or the one sealed last */
	char file[BC_SEGMENT_NAME_MAX]; /* its name; empty: none yet, or it was left, lost or
					 * deleted, and the next isn't begun */
	bool is_open;                   /* `file` still has .partial behind its name */
	bool is_full;                   /* the recording has reached stop_bytes */
	bool is_stuck;                  /* a chunk can't be written for now */
	bool is_hopeless; /* and won't be without somebody's help: no directory, no permission */
	uint64_t sealed;  /* segments */
	uint64_t manifest_failed; /* files whose hash is missing in their manifest */
	uint64_t news_lost;       /* news that there was no memory for */
	unsigned unsealed;        /* files that could not be sealed */
	unsigned deleted;         /* files that somebody deleted while they were open */
	uint64_t free_bytes;      /* of the file system, when last looked */
	char error[256];          /* the latest; empty: none yet */
};

#endif
