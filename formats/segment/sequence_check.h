/* Checks that the chunks of a recording follow each other: none missing, none duplicated, and no
 * loss without a gap.
 *
 * Pass each whole chunk to bc_sequence_check_chunk() in the order in which the segments are read. A
 * chunk of another recording restarts the check.
 *
 * Records that are missing when their place is passed are kept as a sorted list of holes, so that a
 * late chunk can be distinguished from a duplicate. A chunk without records may have events, so
 * there are also holes without records: where only numbers of chunks are missing, and on either
 * side of a late chunk. Memory: 16 bytes per hole, at most BC_SEQUENCE_CHECK_HOLES; beyond that,
 * the oldest half is forgotten. */
#ifndef BC_FORMATS_SEGMENT_SEQUENCE_CHECK_H
#define BC_FORMATS_SEGMENT_SEQUENCE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/bus/chunk.h"
#include "formats/segment/segment_header.h"

/* ---- missing segments
 *
 * What is missing between two segments that are here, and the sentence that all commands print for
 * it. Nothing is missing before the first segment that is here: the recording starts there. */

struct bc_missing_segments {
	uint32_t first;   /* number of the first segment that is not here */
	uint32_t count;   /* 0: none; the records are missing from what is here */
	uint64_t records; /* 0: none, or unknown because a neighbour can't be read */
	uint64_t from;    /* number of the first of these records */
	int64_t from_ns;  /* when they were, by the records around them; from_ns <= to_ns */
	int64_t to_ns;
};

static inline bool bc_is_missing(const struct bc_missing_segments *missing)
{
	return missing->count != 0 || missing->records != 0;
}

/* A segment that is here: where it belongs. */
struct bc_segment_span {
	uint64_t tag; /* of the recording */
	uint32_t segment;
	bool is_read;   /* the rest is known */
	uint64_t first; /* number of its first record */
	uint64_t next;  /* that after its last one */
	int64_t from_ns;
	int64_t to_ns;
};

/* Returns true if segments are missing between two. False if the two are of different recordings or
 * in the wrong order. Sets *missing. */
bool bc_missing_between(struct bc_missing_segments *missing, const struct bc_segment_span *before,
	const struct bc_segment_span *after);

/* Follows segments in order, also those of which only the name is known: `last` is the last one so
 * far, `begin` and `end` the first and last segment of the next file. Returns true if segments are
 * missing before it; sets *missing. A copy of what was before changes nothing. */
bool bc_missing_before(struct bc_missing_segments *missing, struct bc_segment_span *last,
	const struct bc_segment_span *begin, const struct bc_segment_span *end);

/* Writes "2,446,668 records missing: segment 3 is not here", "segments 3 to 5 are not here" or
 * "4,096 records missing from record 8192 on". Returns `out`. */
#define BC_MISSING_TEXT 112
const char *bc_missing_write(char out[BC_MISSING_TEXT], const struct bc_missing_segments *missing);

/* ---- the check */

#define BC_SEQUENCE_CHECK_HOLES (1u << 16)

struct bc_hole {
	uint64_t first;
	uint64_t records;
};

struct bc_sequence_check {
	bool has_recording;
	uint64_t tag;
	uint64_t next;    /* number of the record expected next */
	uint32_t segment; /* segment and number of the latest chunk in recording order */
	uint32_t number;
	bool has_number;
	/* The highest segment that has a header or a chunk here, and the ones that turned out not
	 * to be here since the latest chunk. */
	bool has_segment;
	uint32_t latest_segment;
	struct bc_missing_segments hole; /* only its segments */
	uint64_t hole_end;               /* number of the first record after these */
	bool is_unread;                  /* nothing of the highest one could be read */
	bool is_start_unknown;           /* nor of the recording so far */
	bool has_last; /* `last` is the header of the chunk that ends before `next` */
	struct bc_chunk_info last;
	struct bc_hole *holes; /* sorted */
	size_t hole_count;
	size_t hole_capacity;
	uint64_t known_from; /* holes before this record are forgotten */
	uint64_t start; /* of the first chunk in recording order; also its segment and number */
	uint32_t start_segment;
	uint32_t start_number;
};

/* What is missing between a chunk and the previous one, without a gap that reports it. */
struct bc_missing {
	struct bc_missing_segments place; /* records: those missing with the segments, if known */
	uint64_t records;
	uint64_t samples;             /* lost according to the chunk's counts: the sum of lost[] */
	uint64_t lost[BC_GAP_CAUSES]; /* by cause */
};

enum bc_sequence_place {
	BC_SEQUENCE_NEXT,      /* next in order */
	BC_SEQUENCE_LATE,      /* out of order, and may have been missing until now. A chunk without
				* records may be late more than once */
	BC_SEQUENCE_DUPLICATE, /* seen before, or skipped */
};

/* Frees the memory and sets the check to its initial state, all zero. */
void bc_sequence_check_reset(struct bc_sequence_check *check);

/* Adds a segment's header: the segment is here, even if all of its chunks are
 * damaged. If the header starts another recording, its first record is expected next, so that a
 * missing first chunk is noticed. */
void bc_sequence_check_expect(
	struct bc_sequence_check *check, const struct bc_segment_header *header);

/* Adds a file that was read, by its name: the segment is here, even if unreadable. Returns whether
 * segments before it are not, and sets *missing to these, whose records are unknown. */
bool bc_sequence_check_named(
	struct bc_sequence_check *check, const char *path, struct bc_missing_segments *missing);

/* Expects record `next` of recording `tag` next. What was skipped is not missing. */
void bc_sequence_check_jump(struct bc_sequence_check *check, uint64_t tag, uint64_t next);

/* Continues after a chunk that was skipped without reading it. */
void bc_sequence_check_skip(struct bc_sequence_check *check, const struct bc_chunk_info *info);

/* Returns true if a chunk is needed, by its header. */
typedef bool bc_needs_chunk(void *context, const struct bc_chunk_info *info);

/* Returns true if records that may be needed are missing before a chunk not checked yet. It
 * asks needs() about each epoch they may belong to, with a description in the form of a chunk's
 * header: their numbers, their first and last possible tick, the time of day of the first, and all
 * addresses, types and processors. `clock_hz` is 0 if unknown; needs() is then asked twice, with
 * the time of day of either chunk. The chunk itself may record the loss in a gap. */
bool bc_sequence_check_misses(const struct bc_sequence_check *check,
	const struct bc_chunk_info *info, uint64_t clock_hz, bc_needs_chunk *needs, void *context);

/* Returns the chunk's enum bc_sequence_place, or -ENOMEM. Sets *missing to what is missing before
 * it; zeros unless it is next. */
int bc_sequence_check_chunk(
	struct bc_sequence_check *check, const struct bc_chunk *chunk, struct bc_missing *missing);

#endif
