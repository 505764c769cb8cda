/* Keeps the recordings within their space, by deleting the oldest sealed segments, with the raw
 * captures beside them: of any recording in the directory, of this run or an earlier one, never one
 * that is open or torn. Called by the writer's thread. */
#ifndef BC_DAEMON_STORE_RETENTION_H
#define BC_DAEMON_STORE_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/rules.h"
#include "daemon/base/thread_health.h"
#include "formats/base/must_check.h"
#include "formats/segment/segment_name.h"

struct bc_retention_state {
	uint64_t used_bytes; /* of all segments and raw captures, after deleting */
	uint64_t free_bytes; /* of the file system, to an unprivileged user */
	unsigned deleted;
	bool is_over;    /* a rule is broken still, and there is nothing left to delete */
	char err[160];   /* which, when is_over */
	char error[256]; /* a file that can't be deleted, and why; or empty */
};

/* Deletes until all rules hold or nothing sealed is left, or something can't be
 * deleted. A raw capture whose segment is gone goes in its turn, and a recording's manifest with
 * its last file; manifests count for nothing else. `files` is how many segments may stay, sealed
 * and open; 0: any number. `coming_bytes` is how much is about to be written, `coming_files` how
 * many segments are about to be opened. Logs each deletion, and each is a piece of work of the
 * stint, which may be NULL. Returns 0 or a negative errno. */
int bc_retention_enforce(struct bc_retention_state *state, int dir_fd,
	const struct bc_retention_rules *rules, uint64_t files, uint64_t coming_bytes,
	uint64_t coming_files, struct bc_thread_health *stint) BC_MUST_CHECK;

/* One file of a directory. */
struct bc_segment_entry {
	struct bc_segment_name name;
	enum bc_format format; /* BC_FORMAT_SEGMENT, or a raw capture's form */
	uint64_t bytes;
	int64_t changed_ns;
};

struct bc_segment_list {
	struct bc_segment_entry *entries; /* the caller's to free; NULL if there are none */
	size_t count;
};

/* The name of its file. */
void bc_segment_entry_name(char out[BC_SEGMENT_NAME_MAX], const struct bc_segment_entry *entry);

/* Lists the segments and raw captures of a directory, oldest first, those of one number side by
 * side, the segment first. Returns 0, or a negative errno with an empty
 * list. */
int bc_segments_list(struct bc_segment_list *list, int dir_fd) BC_MUST_CHECK;

#endif
