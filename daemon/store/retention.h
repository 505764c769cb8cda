/* Retention: deletes the oldest sealed segments, with their raw captures, until the space rules
 * hold. It considers all recordings in the directory, including those of earlier runs, but never
 * deletes an open, torn or damaged file. The order is that of the recordings' sequence numbers, not
 * of the clock, unless a number is unknown. Each check lists the directory, so do not check for
 * every write. Writer thread only. */
#ifndef BC_DAEMON_STORE_RETENTION_H
#define BC_DAEMON_STORE_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/rules.h"
#include "daemon/base/thread_health.h"
#include "formats/base/must_check.h"
#include "formats/segment/segment_name.h"

/* The sequence numbers of the recordings in a directory, sorted by id, so that each listing reads
 * only the headers of new recordings. Initially all zero. */
struct bc_sequences {
	struct bc_sequence *known; /* free() it */
	size_t count;
};

struct bc_segment_entry {
	struct bc_segment_name name;
	enum bc_format format; /* BC_FORMAT_SEGMENT, or a raw capture's form */
	uint64_t bytes;
	int64_t changed_ns;
	uint64_t sequence; /* of its recording; 0: unknown */
	uint64_t order;    /* that, or the highest of the recordings with lower ids */
	uint64_t age_ns;   /* set by retention */
};

struct bc_segment_list {
	struct bc_segment_entry *entries; /* free() it; NULL if empty */
	size_t count;
};

/* Whether it is a segment, sealed or open, and not kept as damaged. */
static inline bool bc_is_segment_entry(const struct bc_segment_entry *entry)
{
	return entry->format == BC_FORMAT_SEGMENT && entry->name.damaged == 0;
}

/* Writes the file name of an entry. */
void bc_segment_entry_name(char out[BC_SEGMENT_NAME_MAX], const struct bc_segment_entry *entry);

/* Lists the segments and raw captures of a directory: by the order of their recordings, then by
 * id, then by number. The files of a recording are adjacent. A raw capture follows its segment.
 * `sequences` may be NULL. Returns 0, or a negative errno with an empty list. */
int bc_segments_list(
	struct bc_segment_list *list, int dir_fd, struct bc_sequences *sequences) BC_MUST_CHECK;

/* What is known from earlier checks. Initially all zero; free sequences.known at the end. */
struct bc_retention {
	struct bc_sequences sequences;
	bool has_offset;         /* there has been a check */
	int64_t clock_offset_ns; /* wall_ns - boot_ns at the last check */
	int64_t jump_ns;         /* of the clock, during this run; 0: none */
	int clock;               /* the state of the clock that was logged last */
};

struct bc_retention_check {
	int dir_fd;
	const struct bc_retention_rules *rules;
	uint64_t files; /* the maximum number of segments, sealed and open; 0: no limit */
	/* Added to the usage: the bytes about to be written, the segments about to be created. */
	uint64_t coming_bytes;
	uint64_t coming_files;
	int64_t wall_ns;                 /* bc_wall_ns() */
	uint64_t boot_ns;                /* bc_boot_ns() */
	struct bc_thread_health *health; /* each deletion is published there; may be NULL */
};

struct bc_retention_state {
	uint64_t used_bytes; /* of all segments and raw captures, after deleting */
	uint64_t segments;
	uint64_t free_bytes; /* of the file system, to an unprivileged user */
	unsigned deleted;
	bool is_over;    /* a rule is still broken and nothing is left to delete */
	char err[160];   /* that rule, if is_over */
	char error[256]; /* a file that can't be deleted, and why; or empty */
};

/* Deletes files until all rules hold, no sealed file is left, or a deletion fails. Logs each
 * deletion. A recording's manifest is deleted with its last file; otherwise manifests do not count.
 * Damaged files count, except in `files`.
 *
 * max_age does not apply while the clock is behind the newest file or after it has jumped, which is
 * logged. Returns 0 or a negative errno. */
int bc_retention_enforce(struct bc_retention *retention, struct bc_retention_state *state,
	const struct bc_retention_check *check) BC_MUST_CHECK;

#endif
