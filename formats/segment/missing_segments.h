/* What is missing of a recording between two places that follow each other in what is here, and the
 * sentence for it, the only one. What is missing before the first segment that is here is not a
 * loss: the recording starts there. */
#ifndef BC_FORMATS_SEGMENT_MISSING_SEGMENTS_H
#define BC_FORMATS_SEGMENT_MISSING_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>

struct bc_missing_segments {
	uint32_t first;   /* number of the first segment that is not here */
	uint32_t count;   /* 0: none; the records are missing from what is here */
	uint64_t records; /* 0: none, or unknown because a neighbour can't be read */
	uint64_t from;    /* number of the first of these records */
	int64_t from_ns;  /* when they would have been, by the records around them; from_ns <= to_ns
			   */
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

/* Whether segments are missing between two. Not if they are of different recordings, or in the
 * wrong order. Sets *missing. */
bool bc_missing_between(struct bc_missing_segments *missing, const struct bc_segment_span *before,
	const struct bc_segment_span *after);

/* Writes "2,446,668 records missing: segment 3 is not here", "segments 3 to 5 are not here" or
 * "4,096 records missing from record 8192 on". Returns `out`. */
#define BC_MISSING_TEXT 112
const char *bc_missing_write(char out[BC_MISSING_TEXT], const struct bc_missing_segments *missing);

#endif
