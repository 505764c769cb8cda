/* Whether the chunks of a recording follow one another: none missing, none twice.
 *
 * Each chunk that was found whole is shown to bc_sequence_check_chunk(), segment after segment in
 * the order in which they are read. Another recording starts it over. Memory: 16 bytes for each
 * place where records are missing, BC_SEQUENCE_CHECK_HOLES at most; with more, those that were
 * passed first are forgotten. */
#ifndef BC_FORMATS_SEGMENT_SEQUENCE_CHECK_H
#define BC_FORMATS_SEGMENT_SEQUENCE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/bus/chunk.h"
#include "formats/segment/segment_header.h"

#define BC_SEQUENCE_CHECK_HOLES (1u << 16)

struct bc_hole {
	uint64_t first;
	uint64_t records;
};

struct bc_sequence_check {
	bool has_recording;
	uint64_t tag;
	uint64_t next;    /* number of the record that should follow */
	uint32_t segment; /* the chunk furthest on */
	uint32_t number;
	bool has_number;
	bool has_last; /* `last` is the header of the chunk that ends before `next` */
	struct bc_chunk_info last;
	struct bc_hole *holes; /* records that were missing when their place was passed, in order */
	size_t hole_count;
	size_t hole_room;
	uint64_t known_from; /* of records before this one it is forgotten which were missing */
};

enum bc_sequence_place {
	BC_SEQUENCE_NEXT, /* it follows, behind *missing records that are not there */
	BC_SEQUENCE_LATE, /* it stands behind chunks that come after it; it was missing till now, or
			   * whether it was is forgotten */
	BC_SEQUENCE_DUPLICATE, /* its records were there before */
};

/* An empty continuity: all zero. Frees what it holds. */
void bc_sequence_check_reset(struct bc_sequence_check *continuity);

/* The segment's header says with which record its recording goes on. Only for a recording not yet
 * begun: that its first chunk is there can't be told otherwise. */
void bc_sequence_check_expect(
	struct bc_sequence_check *continuity, const struct bc_segment_header *header);

/* Goes on from here: the next chunk is that of record `next`, whatever came before. */
void bc_sequence_check_jump(struct bc_sequence_check *continuity, uint64_t tag, uint64_t next);

/* The same behind a chunk that was passed over without being read. */
void bc_sequence_check_skip(struct bc_sequence_check *continuity, const struct bc_chunk_info *info);

/* Whether records are missing before a chunk that has not been read yet; *hole is then set to what
 * a chunk that held them would say of itself: their numbers, the ticks and times that they lie
 * between, every address, type and processor. The chunk itself may know of them, by a gap. */
bool bc_sequence_check_hole(const struct bc_sequence_check *continuity,
	const struct bc_chunk_info *info, struct bc_chunk_info *hole);

/* Returns the chunk's place, or -ENOMEM. */
int bc_sequence_check_chunk(
	struct bc_sequence_check *continuity, const struct bc_chunk *chunk, uint64_t *missing);

#endif
