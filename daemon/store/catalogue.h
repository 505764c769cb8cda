/* What is in the output directory: the segments of all recordings, their sizes and ages, and the
 * order of the recordings. So neither the space rules nor GET /v1/recordings list the directory.
 *
 *     bc_catalogue_start()    starts a thread that lists it, first at once, then now and then
 *     bc_catalogue_look()     after each change that the daemon makes itself
 *     bc_catalogue_notice()   for those of others, before the sums are used
 *     bc_catalogue_sums() ... for those who want to know
 *     bc_catalogue_stop()
 *
 * A file is ours if its header says so (formats/segment/segment_header.h). What only has the name
 * of a segment is foreign: it is logged once, and neither counted nor deleted.
 *
 * Any thread may call any function. None waits for the disk while it holds the lock, so only those
 * that say so block on the disk. */
#ifndef BC_DAEMON_STORE_CATALOGUE_H
#define BC_DAEMON_STORE_CATALOGUE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/base/log_limit.h"
#include "formats/base/must_check.h"
#include "formats/segment/segment_name.h"

struct bc_catalogue;
struct bc_recording_list;

/* Opens an empty catalogue of this directory, which stays the caller's. Returns 0 or a negative
 * errno. bc_catalogue_stop() frees it. */
int bc_catalogue_open(struct bc_catalogue **catalogue, int dir_fd) BC_MUST_CHECK;

/* Starts the thread. `dir` is for its messages. Returns 0 or a negative errno. */
int bc_catalogue_start(struct bc_catalogue *catalogue, const char *dir) BC_MUST_CHECK;

/* A thread that hangs in the disk for more than two seconds is left behind, with the catalogue.
 * NULL is allowed. */
void bc_catalogue_stop(struct bc_catalogue *catalogue);

/* The daemon now uses another directory: the catalogue is incomplete until that has been listed.
 * Returns 0, or a negative errno if it stays at the old one. The writer's thread only. */
int bc_catalogue_set_dir(struct bc_catalogue *catalogue, int dir_fd) BC_MUST_CHECK;

/* Takes in what others have added, renamed and deleted since the last call. Returns whether that is
 * all, as far as this machine can tell. It is not if they do more in a moment than can be looked
 * at, or than the kernel remembers; then the thread lists the directory. The writer's thread only.
 * Blocks on the disk. */
bool bc_catalogue_notice(
	struct bc_catalogue *catalogue, int dir_fd, struct bc_log_limits *limits) BC_MUST_CHECK;

/* Lists the directory and looks at what is new or has changed. The thread does this by itself, at
 * the latest after a minute of rest, and otherwise so rarely that it takes half a percent of its
 * time. Blocks on the disk. Returns 0 or a negative errno. */
int bc_catalogue_refresh(struct bc_catalogue *catalogue);

/* The same, if that takes no longer than some milliseconds. */
void bc_catalogue_refresh_small(struct bc_catalogue *catalogue);

/* Waits until the catalogue is complete, but not longer than this. Returns whether it is. */
bool bc_catalogue_wait(struct bc_catalogue *catalogue, uint64_t ns);

/* Looks at a file. Reads its header unless it is known to be ours; with `reads_header` in any case.
 * Returns 0 if it is ours, and then sets *status, which may be NULL; -ENOENT if it is gone; or else
 * why it is foreign. `limits` are the calling thread's. Blocks on the disk. */
int bc_catalogue_look(struct bc_catalogue *catalogue, int dir_fd,
	const struct bc_segment_name *name, bool reads_header, struct stat *status,
	struct bc_log_limits *limits);

/* Of our files. */
struct bc_catalogue_sums {
	bool is_complete; /* the directory has been listed once */
	uint64_t segments;
	uint64_t bytes;
	uint64_t damaged_bytes; /* of those kept as damaged, included in `bytes` */
};

struct bc_catalogue_sums bc_catalogue_sums(struct bc_catalogue *catalogue);

/* A place in the order of the files: that of their recordings, which is that of the sequence
 * numbers in the headers, or of the ids where a number is unknown; then by number. Initially all
 * zero: before the first. */
struct bc_catalogue_place {
	uint64_t order;
	struct bc_segment_name name;
};

/* Whether a place comes after another one. */
bool bc_catalogue_is_after(
	const struct bc_catalogue_place *place, const struct bc_catalogue_place *other);

struct bc_catalogue_file {
	struct bc_segment_name name;
	bool has_links; /* others, when it was last looked at */
	int64_t changed_ns;
};

/* Moves to the next sealed segment. One that has an open or torn twin is passed over. Returns false
 * at the end. */
bool bc_catalogue_next(struct bc_catalogue *catalogue, struct bc_catalogue_place *place,
	struct bc_catalogue_file *file);

/* The last of our files. Returns false if there are none. */
bool bc_catalogue_newest(struct bc_catalogue *catalogue, struct bc_catalogue_file *file);

/* Finds the last file that is older than `max_age_ns`. The age of a file is the time from file to
 * file until `wall_ns`. A step back, or of more than `leap_ns`, is a change of the clock, or a long
 * time without any recording; it does not count. Returns false if no file is too old. Takes O(n),
 * with the lock held: a millisecond for 100,000 files. */
bool bc_catalogue_too_old(struct bc_catalogue *catalogue, int64_t wall_ns, uint64_t max_age_ns,
	int64_t leap_ns, struct bc_catalogue_place *last);

/* The bytes of a recording; 0: there is none. */
uint64_t bc_catalogue_bytes(struct bc_catalogue *catalogue, const char *id);

/* The highest sequence number in the headers; 0: none. */
uint64_t bc_catalogue_highest(struct bc_catalogue *catalogue);

/* Lists at most `max` recordings, in their order: those before the recording `before`, or the last
 * ones if that is NULL; with the segments that can be read, but without damaged files. If `before`
 * is gone, the recording with the next higher id stands for it. Sets *omitted to the number of
 * recordings before these. They are not sorted by id. Returns 0 or -ENOMEM. */
int bc_catalogue_page(struct bc_catalogue *catalogue, const char *before, uint32_t max,
	struct bc_recording_list *list, uint64_t *omitted) BC_MUST_CHECK;

#endif
