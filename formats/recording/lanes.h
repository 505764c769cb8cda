/* Recordings in the order of time, though they may overlap. Each is a lane: within it, the order is
 * that of its files and records, whatever its clock did; of two lanes, the one with the earlier
 * time goes on. Forwards, a lane costs nothing before its start is reached; from then to its end,
 * it has an open file and what its user keeps for it. */
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
	int64_t ns;   /* what is left is not earlier; searched from the end: not later */
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

/* Makes the lane that may have the earliest record the current one. It goes on while its time is
 * not above *until_ns: INT64_MAX if there is no other. Returns NULL when all are over. */
struct bc_lane *bc_lanes_next(struct bc_lanes *lanes, int64_t *until_ns);

void bc_lanes_enter(struct bc_lanes *lanes, struct bc_lane *lane);

/* Raises the time of a lane. An earlier one changes nothing: its clock was set back. */
static inline void bc_lane_raise(struct bc_lane *lane, int64_t ns)
{
	lane->ns = ns > lane->ns ? ns : lane->ns;
}

#endif
