/* The files of a directory that are buscapd's: the segments of all recordings. They are recognized
 * by their headers (formats/segment/segment_owner.h). What only has the name of such a file is
 * foreign. */
#ifndef BC_DAEMON_STORE_SEGMENT_LIST_H
#define BC_DAEMON_STORE_SEGMENT_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/segment/segment_name.h"

/* Whose the files of a directory are, so that each listing reads only some headers of new files.
 * Initially all zero. */
struct bc_known_files {
	struct bc_known_file *files; /* free() it */
	size_t count;
};

struct bc_segment_entry {
	struct bc_segment_name name;
	uint64_t bytes;
	uint64_t disk_bytes; /* what deleting it frees, if it has no other link */
	uint64_t links;
	uint64_t inode;
	int64_t changed_ns;
	int64_t status_changed_ns; /* st_ctim */
	int owner;                 /* bc_segment_owner_check(): 0: ours; else why it is foreign */
	bool is_assumed;           /* its header has not been read, but others of its recording */
	bool is_new;               /* `owner` was not known at the last listing, or has changed */
	bool is_recording_known;   /* a file of its recording is ours */
	uint64_t sequence;         /* of its recording; 0: unknown */
	uint64_t order;            /* that, or the highest of the recordings with lower ids */
	uint64_t age_ns;           /* set by retention */
};

struct bc_segment_list {
	struct bc_segment_entry *entries; /* free() it; NULL if empty */
	size_t count;                     /* ours */
	size_t foreign;                   /* after these */
};

/* Whether it is a segment, sealed or open, and not kept as damaged. */
static inline bool bc_is_segment_entry(const struct bc_segment_entry *entry)
{
	return entry->name.damaged == 0;
}

/* Lists the segments of a directory: by the order of their recordings, then by id, then by number.
 * The files of a recording are adjacent. Foreign files come last, in the same order. `known` may be
 * NULL. Returns 0, or a negative errno with an empty list. */
int bc_segments_list(
	struct bc_segment_list *list, int dir_fd, struct bc_known_files *known) BC_MUST_CHECK;

/* Whether an entry that the listing takes for ours is: reads its header, if the listing has not.
 * Ask before changing or deleting a file. */
bool bc_is_own_entry(const struct bc_segment_entry *entry, int dir_fd) BC_MUST_CHECK;

/* Takes the foreign files for which is_adopted() returns true for ours, in their order: for what
 * neither deletes nor counts. */
void bc_segment_list_adopt(
	struct bc_segment_list *list, bool (*is_adopted)(const struct bc_segment_entry *));

/* For bc_segment_list_adopt(): segments of buscapd, as far as can be told without an intact header.
 * Clients see that they are damaged. */
bool bc_is_readable_entry(const struct bc_segment_entry *entry);

#endif
