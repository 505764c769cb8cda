/* Retention: deletes the oldest sealed segments until the space rules hold. It considers all
 * recordings in the directory, including those of earlier runs, but never deletes an open, torn or
 * damaged file, and neither deletes nor counts a foreign one (daemon/store/catalogue.h). The order
 * is that of the recordings' sequence numbers, not of the clock, unless a number is unknown. A
 * check costs little unless files have to be deleted. Writer thread only.
 *
 * The free space that a file system reports may lag behind (btrfs, ZFS), or never grow (a reader
 * holds the file open, a snapshot has it). So what was deleted counts as free for up to a minute.
 * If it does not show by then, keep_free deletes one segment a minute, none of the recording in
 * progress, says so, and no longer stops the recording while there is something to delete. Files
 * that have other links free nothing: keep_free passes over them. The other rules don't: they are
 * about the files of the directory. */
#ifndef BC_DAEMON_STORE_RETENTION_H
#define BC_DAEMON_STORE_RETENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/log_limit.h"
#include "daemon/base/rules.h"
#include "daemon/base/thread_health.h"
#include "daemon/store/catalogue.h"
#include "formats/base/must_check.h"

/* Bytes that were deleted within a few seconds, and how many of them the file system has not shown
 * as free. */
struct bc_unshown {
	uint64_t since_ns; /* bc_boot_ns() of the first */
	uint64_t deleted;
	uint64_t left;
};

#define BC_UNSHOWN_MAX 8u

/* What is known from earlier checks. Initially all zero. */
struct bc_retention {
	struct bc_unshown unshown[BC_UNSHOWN_MAX]; /* oldest first */
	unsigned unshown_count;
	uint64_t free_bytes; /* at the last check, after deleting; with has_free */
	bool has_free;
	uint64_t written_bytes;   /* then */
	bool has_shown;           /* since the last check: deletions of some seconds */
	bool is_slow;             /* what was deleted did not show in time: one segment a minute */
	uint64_t slow_at_ns;      /* bc_boot_ns() of the last deletion by keep_free */
	uint64_t inodes_at_ns;    /* the same, for inodes; 0: they show at once */
	bool is_free_unknown;     /* logged: keep_free is suspended */
	bool has_offset;          /* there has been a check */
	int64_t clock_offset_ns;  /* wall_ns - boot_ns at the last check */
	int64_t jump_ns;          /* of the clock, during this run; 0: none */
	int clock;                /* the state of the clock that was logged last */
	uint64_t aged_at_ns;      /* bc_boot_ns() of the last look at the ages; 0: none */
	uint64_t behind_since_ns; /* bc_boot_ns() when others did too much to follow; 0: they don't
				   */
};

struct bc_retention_check {
	struct bc_catalogue *catalogue;
	int dir_fd;
	const struct bc_retention_rules *rules;
	uint64_t files; /* the maximum number of segments, sealed and open; 0: no limit */
	/* Added to the usage: the bytes about to be written, the segments about to be created. */
	uint64_t coming_bytes;
	uint64_t coming_files;
	const char *recording;  /* the id of the one in progress; NULL: none */
	int64_t wall_ns;        /* bc_wall_ns() */
	uint64_t boot_ns;       /* bc_boot_ns() */
	uint64_t written_bytes; /* by this process since its start */
	struct bc_log_limits *limits;
	struct bc_thread_health *health; /* each deletion is published there; may be NULL */
};

struct bc_retention_state {
	bool is_waiting;     /* the catalogue is incomplete: no rule applies */
	uint64_t used_bytes; /* of all segments, after deleting */
	uint64_t segments;
	bool is_free_unknown; /* the file system does not tell */
	uint64_t free_bytes;  /* of the file system, to an unprivileged user; as it says */
	uint64_t free_files;  /* that can be created; UINT64_MAX: no limit is known */
	uint64_t left_bytes;  /* that may be written before keep_free breaks; UINT64_MAX: any */
	unsigned deleted;
	bool is_over;    /* a rule is still broken and nothing is left to delete */
	char err[200];   /* that rule, if is_over */
	char error[256]; /* a file that can't be deleted, and why; or empty */
};

/* Deletes files until all rules hold, no sealed file is left, or a deletion fails. Logs each
 * deletion. Damaged files count, except in `files`.
 *
 * A file system without free inodes breaks keep_free, too. One that does not tell its free space
 * suspends it, which is logged.
 *
 * max_age does not apply while the clock is behind the newest file or after it has jumped, which is
 * logged. */
void bc_retention_enforce(struct bc_retention *retention, struct bc_retention_state *state,
	const struct bc_retention_check *check);

#endif
