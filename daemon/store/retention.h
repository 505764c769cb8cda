/* Retention: deletes the oldest sealed segments, with their raw captures, until the space rules
 * hold. It considers all recordings in the directory, including those of earlier runs, but never
 * deletes an open or torn file. Each check lists the directory, so do not check for every write.
 * Writer thread only. */
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
	uint64_t segments;
	uint64_t free_bytes; /* of the file system, to an unprivileged user */
	unsigned deleted;
	bool is_over;    /* a rule is still broken and nothing is left to delete */
	char err[160];   /* that rule, if is_over */
	char error[256]; /* a file that can't be deleted, and why; or empty */
};

/* Deletes files until all rules hold, no sealed file is left, or a deletion fails. A recording's
 * manifest is deleted with its last file; otherwise manifests do not count. `files` is the maximum
 * number of segments, sealed and open (0: no limit). `coming_bytes` and `coming_files` are added to
 * the usage: the bytes about to be written and the segments about to be created. Logs each deletion
 * and publishes it in `health`, which may be NULL. Returns 0 or a negative errno. */
int bc_retention_enforce(struct bc_retention_state *state, int dir_fd,
	const struct bc_retention_rules *rules, uint64_t files, uint64_t coming_bytes,
	uint64_t coming_files, struct bc_thread_health *health) BC_MUST_CHECK;

struct bc_segment_entry {
	struct bc_segment_name name;
	enum bc_format format; /* BC_FORMAT_SEGMENT, or a raw capture's form */
	uint64_t bytes;
	int64_t changed_ns;
};

struct bc_segment_list {
	struct bc_segment_entry *entries; /* free() it; NULL if empty */
	size_t count;
};

/* Writes the file name of an entry. */
void bc_segment_entry_name(char out[BC_SEGMENT_NAME_MAX], const struct bc_segment_entry *entry);

/* Lists the segments and raw captures of a directory, oldest first. A raw capture follows its
 * segment. Returns 0, or a negative errno with an empty list. */
int bc_segments_list(struct bc_segment_list *list, int dir_fd) BC_MUST_CHECK;

#endif
