/* What is in the output directory: the segments of all recordings, their sizes and ages, and the
 * order of the recordings. So neither the space rules nor GET /v1/recordings list the directory.
 *
 *     bc_catalogue_look()    after each change that the daemon makes
 *     bc_catalogue_sums() ...
 *
 * daemon/store/catalogue_listing.h makes a catalogue, and enters the changes of others.
 *
 * A file is ours if its header says so (formats/segment/segment_header.h), and by its name until
 * the header can be read. A file that only has the name of a segment is foreign: it is logged once,
 * and neither counted nor deleted.
 *
 * Any thread may call any function. The lock is never held during a call that may block on the
 * disk, so only the functions that say so block. */
#ifndef BC_DAEMON_STORE_CATALOGUE_H
#define BC_DAEMON_STORE_CATALOGUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/base/log_limit.h"
#include "formats/base/must_check.h"
#include "formats/segment/segment_name.h"

struct bc_recording_list;

/* Of our files. */
struct bc_catalogue_sums {
	bool is_complete; /* the directory has been listed once */
	uint64_t segments;
	uint64_t bytes;
	uint64_t damaged_bytes; /* of the files kept as damaged, included in `bytes` */
	uint64_t highest;       /* sequence number in a header; 0: none */
};

struct bc_catalogue {
	pthread_mutex_t lock; /* for all members */
	struct bc_catalogue_recording **by_id;
	struct bc_catalogue_recording **by_order;
	size_t count;
	size_t capacity; /* of both */
	bool is_sorted;  /* by_order is right */
	uint64_t serial; /* counts files added, removed, and with a new owner */
	uint8_t listing; /* the last one, modulo 256 */
	struct bc_catalogue_sums sums;
};

enum bc_look {
	BC_LOOK, /* reads the header unless the file is ours and unchanged, or open: it grows */
	BC_LOOK_INSIDE, /* reads the header */
	BC_LOOK_LISTED, /* reads it unless the file is unchanged or can be assumed to be ours */
};

/* Asks the disk about a file and enters the answer. Returns 0 if it is ours, and then sets *status,
 * which may be NULL; -ENOENT if it is gone; -ENOMEM; or else why it is foreign or can't be read
 * now. `limits` are the calling thread's. Blocks on the disk. */
int bc_catalogue_look(struct bc_catalogue *catalogue, int dir_fd,
	const struct bc_segment_name *name, enum bc_look mode, struct stat *status,
	struct bc_log_limits *limits);

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

struct bc_catalogue_traits {
	bool has_links;  /* it had other links when it was last looked at */
	bool is_refused; /* bc_catalogue_refuse() */
};

/* Moves to the next segment that is sealed, or that this run has left open (bc_catalogue_leave()),
 * skipping any that has an open or torn twin. Returns false at the end. */
bool bc_catalogue_next(struct bc_catalogue *catalogue, struct bc_catalogue_place *place,
	struct bc_catalogue_traits *traits);

/* Remembers that an open segment could not be sealed, and was closed. The catalogue's thread seals
 * a copy of it when the disk works again. */
void bc_catalogue_leave(struct bc_catalogue *catalogue, const struct bc_segment_name *name);

/* Remembers that a file could not be deleted. */
void bc_catalogue_refuse(struct bc_catalogue *catalogue, const struct bc_segment_name *name);

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
 * files that can be read are included. *omitted: number of earlier ones. Returns 0 or -ENOMEM. */
int bc_catalogue_page(struct bc_catalogue *catalogue, const char *before, uint32_t max,
	struct bc_recording_list *list, uint64_t *omitted) BC_MUST_CHECK;

/* For daemon/store/catalogue_listing.c */

void bc_catalogue_init(struct bc_catalogue *catalogue);
void bc_catalogue_free(struct bc_catalogue *catalogue);

/* From here on, files that are not looked at are unseen. */
void bc_catalogue_begin_listing(struct bc_catalogue *catalogue);

/* After a complete listing; and if the directory is another. Sorts the recordings. */
void bc_catalogue_set_complete(struct bc_catalogue *catalogue, bool is_complete);

/* Returns whether a file is in the tables; sets *is_assumed if it is without its header read. */
bool bc_catalogue_find(
	struct bc_catalogue *catalogue, const struct bc_segment_name *name, bool *is_assumed);

/* Finds the last file before *name that bc_catalogue_leave() was told, or if not `is_left`, that
 * this listing has not seen; and sets *name. */
bool bc_catalogue_find_before(
	struct bc_catalogue *catalogue, struct bc_segment_name *name, bool is_left);

#endif
