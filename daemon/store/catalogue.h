/* What is in the output directory: the segments of all recordings, their sizes and ages, and the
 * order of the recordings. So neither the space rules nor GET /v1/recordings list the directory.
 *
 *     bc_catalogue_start()    starts a thread that lists it, now and every minute or less
 *     bc_catalogue_look()     after each change that the daemon makes
 *     bc_catalogue_notice()   enters the changes of others, before the sums are used
 *     bc_catalogue_sums() ...
 *     bc_catalogue_stop()
 *
 * A file is ours if its header says so (formats/segment/segment_header.h). A file that only has the
 * name of a segment is foreign: it is logged once, and neither counted nor deleted.
 *
 * Any thread may call any function, except where one is named. The lock is never held during a call
 * that may block on the disk, so only the functions that say so block. */
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

/* Opens an empty catalogue of this directory; the descriptor stays the caller's. Returns 0 or a
 * negative errno. bc_catalogue_stop() frees it. */
int bc_catalogue_open(struct bc_catalogue **catalogue, int dir_fd) BC_MUST_CHECK;

/* Starts the thread. `dir` is for its messages. Returns 0 or a negative errno. */
int bc_catalogue_start(struct bc_catalogue *catalogue, const char *dir) BC_MUST_CHECK;

/* Frees the catalogue. A thread that blocks on the disk for over two seconds is leaked, with the
 * catalogue. NULL is allowed. */
void bc_catalogue_stop(struct bc_catalogue *catalogue);

/* Changes to another directory: the catalogue is incomplete until it has been listed. Returns 0, or
 * a negative errno and keeps the old one. Writer thread only. */
int bc_catalogue_set_dir(struct bc_catalogue *catalogue, int dir_fd) BC_MUST_CHECK;

/* Enters what others have added, renamed and deleted since the last call. Returns false if that was
 * too much to look at now, or more than the kernel remembers: then the thread lists the directory.
 * Writer thread only. Blocks on the disk. */
bool bc_catalogue_notice(
	struct bc_catalogue *catalogue, int dir_fd, struct bc_log_limits *limits) BC_MUST_CHECK;

/* Lists the directory and looks at new and changed files. The thread does this after at most a
 * minute of rest, and otherwise spends half a percent of its time on it. Returns 0 or a negative
 * errno. Blocks on the disk. */
int bc_catalogue_refresh(struct bc_catalogue *catalogue);

/* Likewise, but only if the last listing took less than 20 ms. */
void bc_catalogue_refresh_small(struct bc_catalogue *catalogue);

/* Waits up to this long until the catalogue is complete. Returns whether it is. */
bool bc_catalogue_wait(struct bc_catalogue *catalogue, uint64_t ns);

/* Asks the disk about a file and enters the answer. Reads its header unless it is known to be ours;
 * with `reads_header`, always. Returns 0 if it is ours, and then sets *status, which may be NULL;
 * -ENOENT if it is gone; or else why it is foreign. `limits` are the calling thread's. Blocks on
 * the disk. */
int bc_catalogue_look(struct bc_catalogue *catalogue, int dir_fd,
	const struct bc_segment_name *name, bool reads_header, struct stat *status,
	struct bc_log_limits *limits);

/* Of our files. */
struct bc_catalogue_sums {
	bool is_complete; /* the directory has been listed once */
	uint64_t segments;
	uint64_t bytes;
	uint64_t damaged_bytes; /* of the files kept as damaged, included in `bytes` */
	uint64_t highest;       /* sequence number in a header; 0: none */
};

struct bc_catalogue_sums bc_catalogue_sums(struct bc_catalogue *catalogue);

/* A place in the order of the files: by the sequence number in the headers of their recording (by
 * its id if the number is unknown), then by segment. All zero: before the first. */
struct bc_catalogue_place {
	uint64_t order;
	struct bc_segment_name name;
};

/* Returns true if `place` comes after `other`. */
bool bc_catalogue_is_after(
	const struct bc_catalogue_place *place, const struct bc_catalogue_place *other);

/* Moves to the next sealed segment, skipping any that has an open or torn twin. *has_links: it had
 * other links when it was last looked at. Returns false at the end. */
bool bc_catalogue_next(
	struct bc_catalogue *catalogue, struct bc_catalogue_place *place, bool *has_links);

struct bc_catalogue_ages {
	struct bc_segment_name newest; /* our last file; recording "": none */
	int64_t newest_ns;             /* its time */
	bool has_old;
	struct bc_catalogue_place old; /* the last file that is too old */
};

/* Finds the newest file, and the last one that is older than `max_age_ns`. The age of a file is the
 * sum of the times from file to file until `wall_ns`. A step back, or of more than `leap_ns`, is a
 * change of the clock, or a long time without a recording; it does not count. Takes O(n) with the
 * lock held: a millisecond for 100,000 files. */
void bc_catalogue_find_ages(struct bc_catalogue *catalogue, struct bc_catalogue_ages *ages,
	int64_t wall_ns, uint64_t max_age_ns, int64_t leap_ns);

/* Returns the bytes of a recording without its damaged files; 0 if it is unknown. */
uint64_t bc_catalogue_bytes(struct bc_catalogue *catalogue, const char *id);

/* Lists up to `max` recordings in their order: the last ones before the recording `before`, or of
 * all if it is NULL. If `before` is gone, the recording with the next higher id replaces it. Only
 * files that can be read are included. Sets *omitted to the number of earlier recordings. Returns 0
 * or -ENOMEM. */
int bc_catalogue_page(struct bc_catalogue *catalogue, const char *before, uint32_t max,
	struct bc_recording_list *list, uint64_t *omitted) BC_MUST_CHECK;

#endif
