/* Retention: deletes the oldest sealed segments of all recordings in the directory until the space
 * rules hold. Never deletes an open or damaged file, or one of an earlier run that is torn, and
 * neither deletes nor counts a foreign one (daemon/store/catalogue.h). A check costs little unless
 * files have to be deleted. One thread only.
 *
 * The free space that a file system reports may lag behind (btrfs, ZFS), or never grow (a reader
 * holds the file open, a snapshot has it). So deleted bytes count as free for up to a minute. If
 * they do not show by then, keep_free logs that and deletes one segment a minute, but none of the
 * current recording, which then only stops when nothing is left to delete. Files with other links
 * free nothing, so keep_free skips them. The other rules count files, so they don't. */
#ifndef BC_DAEMON_STORE_RETENTION_H
#define BC_DAEMON_STORE_RETENTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/log_limit.h"
#include "daemon/base/rules.h"
#include "daemon/base/thread_health.h"
#include "daemon/store/catalogue.h"
#include "formats/base/must_check.h"

/* Bytes that were deleted within a few seconds, and how many of them do not show as free yet. */
struct bc_unshown {
	uint64_t since_ns; /* bc_boot_ns() of the first */
	uint64_t deleted;
	uint64_t left;
};

#define BC_UNSHOWN_MAX 8u

/* A file whose header can't be read. */
struct bc_unread {
	struct bc_segment_name name;
	uint64_t since_ns; /* bc_boot_ns() */
};

#define BC_UNREAD_MAX 16u

/* What earlier checks found. Initially all zero. */
struct bc_retention {
	struct bc_unshown unshown[BC_UNSHOWN_MAX]; /* oldest first */
	unsigned unshown_count;
	uint64_t free_bytes; /* at the last check, after deleting; with has_free */
	bool has_free;
	uint64_t written_bytes; /* by this process, then */
	bool has_shown;         /* since the last check: deletions of some seconds */
	bool is_slow;           /* what was deleted did not show in time: one segment a minute */
	uint64_t slow_at_ns;    /* bc_boot_ns() of the last deletion by keep_free */
	uint64_t inodes_at_ns;  /* bc_boot_ns() of a deletion that freed no inode; 0: none */
	uint64_t refused_at_ns; /* bc_boot_ns() when a file could last not be deleted */
	struct bc_unread unread[BC_UNREAD_MAX]; /* at the last check */
	unsigned unread_count;
	bool is_free_unknown;    /* logged: keep_free is suspended */
	bool has_offset;         /* there has been a check */
	int64_t clock_offset_ns; /* wall_ns - boot_ns at the last check */
	int64_t jump_ns;         /* of the clock, during this run; 0: none */
	int clock;               /* the state of the clock that was logged last */
	uint64_t aged_at_ns;     /* bc_boot_ns() of the last look at the ages; 0: none */
	uint64_t
		behind_since_ns; /* bc_boot_ns() when the catalogue fell behind; 0: it is current */
};

struct bc_retention_check {
	struct bc_catalogue *catalogue;
	int dir_fd;
	const struct bc_retention_rules *rules;
	uint64_t files; /* the maximum number of segments, sealed and open; 0: no limit */
	/* About to be written, and segments about to be created; added to the usage. */
	uint64_t coming_bytes;
	/* Files to be created. The writer may go on while the check waits for the disk: it sets 0
	 * when they are there, and the catalogue has them. */
	atomic_uint_least64_t coming_files;
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
	bool is_free_unknown; /* the file system does not report it */
	uint64_t free_bytes;  /* of the file system, for an unprivileged user */
	uint64_t free_files;  /* that can be created; UINT64_MAX: no limit is known */
	uint64_t left_bytes;  /* that may be written before keep_free breaks; UINT64_MAX: any */
	unsigned deleted;
	bool is_over;    /* a rule is still broken and nothing is left to delete */
	char err[200];   /* that rule, if is_over */
	char error[256]; /* why the directory accepts no change; or empty */
};

/* Deletes files until all rules hold or no sealed file is left that can be deleted. Logs each
 * deletion, and once each file that can't be deleted. Damaged files count, except in `files`. A
 * lack of inodes also breaks keep_free.
 *
 * These are logged: keep_free is suspended on a file system that does not report its free space,
 * and max_age while the clock is behind the newest file or after it has jumped. */
void bc_retention_enforce(struct bc_retention *retention, struct bc_retention_state *state,
	const struct bc_retention_check *check);

#endif
