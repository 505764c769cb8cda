/* What the writer tells the loop, one by one and in order: a segment was begun, or sealed, or a
 * recording has ended. How much has been written meanwhile is in its report
 * (daemon/store/writer_stats.h).
 *
 * Of each recording: BEGUN, then SEALED, for each segment; RAW_SEALED for each raw capture beside
 * them; ENDED last. Recordings follow one another; nothing of the next comes before the ENDED of
 * the one before. A segment that could not be sealed has BEGUN and no SEALED, and is counted by
 * ENDED as left open. */
#ifndef BC_DAEMON_STORE_WRITER_NOTICES_H
#define BC_DAEMON_STORE_WRITER_NOTICES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/file_hash.h"
#include "formats/segment/segment_name.h"

struct bc_recording_info;

enum bc_writer_notice_kind {
	BC_NOTICE_BEGUN,
	BC_NOTICE_SEALED,
	BC_NOTICE_RAW_SEALED,
	BC_NOTICE_ENDED, /* sealed, or given up: the writer doesn't look at the recording any more
			  */
};

struct bc_writer_notice {
	struct bc_writer_notice *next; /* NULL: the last */
	enum bc_writer_notice_kind kind;
	const struct bc_recording_info *recording;
	/* The file, without a directory: the segment or raw capture; with BEGUN it has
	 * BC_PARTIAL_SUFFIX behind it still. With ENDED the last segment that was sealed; empty if
	 * none was, or a space rule has deleted it. */
	char file[BC_SEGMENT_NAME_MAX];
	uint32_t segment;
	uint64_t first_record; /* the segment's, in the recording */
	int64_t wall_ns;       /* host's time of day when that arrived */
	/* All but BEGUN: of the file, or of all the recording's segments together, sealed and left
	 * open. A raw capture has bytes and chunks (its blocks) alone. */
	uint64_t records;
	uint64_t bytes; /* on the disk */
	uint64_t chunks;
	uint64_t gaps; /* gap events, and what they say is lost */
	uint64_t lost;
	char hash[BC_FILE_HASH_CHARS]; /* XXH3-128 of the sealed file, in hex; docs/manifest.md */
	/* ENDED only. */
	uint32_t segments;  /* sealed */
	uint32_t left_open; /* or deleted by somebody while they were */
	uint64_t raw_bytes; /* of the raw captures, on the disk */
	uint64_t abandoned; /* records given up */
	bool is_full;       /* it has reached stop_bytes */
};

/* News on their way. Not for two threads at once. */
struct bc_writer_notice_list {
	struct bc_writer_notice *first;
	struct bc_writer_notice *last;
};

/* Adds one, which is the list's then. */
void bc_writer_notices_add(struct bc_writer_notice_list *list, struct bc_writer_notice *news);

/* Puts what is in `from` behind what is in `to`; `from` is empty then. */
void bc_writer_notices_move(struct bc_writer_notice_list *to, struct bc_writer_notice_list *from);

/* Frees a row of news. NULL is none. */
void bc_writer_notices_free(struct bc_writer_notice *first);

#endif
