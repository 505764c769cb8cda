/* Reads recordings in the order of time, even if they overlap. Each recording is a lane: its files
 * and records keep their own order, whatever its clock did. The lane with the earliest time is the
 * current one, and is read until another one's time comes. A lane that has not begun needs no
 * memory; one that has begun keeps a file open, and what its user stores for it. */
#ifndef BC_FORMATS_RECORDING_LANES_H
#define BC_FORMATS_RECORDING_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/recording/segments.h"

struct bc_lane {
	int id;    /* 0, 1 ... in the order of the files */
	int begin; /* of its files, `begin` to `end` - 1 have not been opened */
	int end;
	int64_t ns;   /* nothing that is left is earlier; when reading backwards, later */
	bool is_over; /* set by the user; later freed */
	void *state;  /* the user's, from calloc(); NULL until it is set */
	struct bc_segments_place place; /* its open file, while another lane is the current one */
};

struct bc_lanes {
	struct bc_segments *files;
	struct bc_lane *lanes;
	int count;
	int first;               /* those before it are over */
	struct bc_lane *current; /* its open file is that of `files` */
};

/* Makes lanes of files, in their order. Opens none. Returns 0 or -ENOMEM. */
int bc_lanes_init(struct bc_lanes *lanes, struct bc_segments *files) BC_MUST_CHECK;
void bc_lanes_free(struct bc_lanes *lanes);

/* Sets the time of each lane to its start, by its name; without one, by its first chunk. */
void bc_lanes_start(struct bc_lanes *lanes);

/* Sorts the lanes by time; call this before the first bc_lanes_next(). */
void bc_lanes_sort(struct bc_lanes *lanes);

/* Makes the lane with the earliest time the current one. Read it as long as its time is at most
 * *until_ns, which is INT64_MAX if no other lane is left. Returns NULL when all are over. */
struct bc_lane *bc_lanes_next(struct bc_lanes *lanes, int64_t *until_ns);

/* Makes a lane the current one. */
void bc_lanes_enter(struct bc_lanes *lanes, struct bc_lane *lane);

/* Raises the time of a lane. An earlier one changes nothing: its clock was set back. */
static inline void bc_lane_raise(struct bc_lane *lane, int64_t ns)
{
	lane->ns = ns > lane->ns ? ns : lane->ns;
}

#endif
