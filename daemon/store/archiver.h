/* The archiver: a thread that archives sealed segments (formats/segment/archive.h) some time after
 * they were sealed, in the background.
 *
 * It has a low priority, keeps to a rate, and rests while the recording needs everything. It looks
 * at each file once. If a segment can't be archived, that is logged; it tries again an hour later,
 * unless the segment is damaged. */
#ifndef BC_DAEMON_STORE_ARCHIVER_H
#define BC_DAEMON_STORE_ARCHIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"

struct bc_archiver;

struct bc_archiver_options {
	const char *dir;
	uint64_t after_ns;    /* the age of the segments, by the time of their files */
	uint64_t bytes_per_s; /* read and written; 0: no limit */
};

/* Starts the thread. It rests until bc_archiver_allow(). Returns 0 or a negative errno. */
int bc_archiver_start(
	struct bc_archiver **archiver, const struct bc_archiver_options *options) BC_MUST_CHECK;

/* Lets it work, or makes it rest after the current chunk. From the next segment on, its copies
 * leave this much of the disk free: the retention rule; 0: none. */
void bc_archiver_allow(struct bc_archiver *archiver, bool is_allowed, uint64_t keep_free_bytes);

/* Ends the thread; the segment in progress stays as it is. If the thread hangs in the disk for more
 * than two seconds, it is left behind. NULL is allowed. */
void bc_archiver_stop(struct bc_archiver *archiver);

#endif
