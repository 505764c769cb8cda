/* Makes a sealed segment smaller: encodes its records again, at the level archive.
 *
 * Nothing else in it changes: records, events, times, counts and numbers stay, and so do the file's
 * owner, mode and time. A copy, NAME.archiving, is written and made durable, read back and compared
 * with the segment. Only then does its hash replace that in the manifest, and the copy the segment,
 * by renaming. So NAME is whole at every moment. If the process is killed, the next call for the
 * segment continues with the copy, if it is whole. */
#ifndef BC_FORMATS_SEGMENT_ARCHIVE_H
#define BC_FORMATS_SEGMENT_ARCHIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/must_check.h"

/* The suffix of the copy. While it is incomplete, it also has BC_PARTIAL_SUFFIX. */
#define BC_ARCHIVE_SUFFIX ".archiving"

struct bc_archive_options {
	int wake_fd;              /* cancels when it is readable; -1: none */
	uint64_t keep_free_bytes; /* to leave free on the disk, besides the copy */
	/* Called after each chunk with the number of bytes read and written; may be NULL. */
	void (*on_bytes)(void *context, uint64_t bytes);
	void *context;
};

struct bc_archived {
	bool is_replaced;      /* false after 0 was returned: it was archived before */
	uint64_t bytes_before; /* the segment's size */
	uint64_t bytes_after;
	char why[160]; /* after -EBADMSG: what is wrong with the segment; after another error: what
			* failed, or empty */
};

/* Archives the segment `name` in a directory. Returns 0, or a negative errno with the segment
 * unchanged: -EBADMSG if it is not a sealed, undamaged segment; -ENOTSUP if it is a raw capture;
 * -EBUSY if it is being sealed, or archived by another process or thread; -ELOOP if it is a
 * symbolic link; -EPERM if the caller is not its owner or root; -ENOSPC; -ECANCELED; ... */
int bc_segment_archive(struct bc_archived *archived, int dir_fd, const char *name,
	const struct bc_archive_options *options) BC_MUST_CHECK;

/* Keeps the segment that is open as `fd` from being archived until the descriptor that it returns
 * is closed. Returns -1 on failure. */
int bc_segment_archive_prevent(int fd);

/* Finishes or deletes the copies that a killed process has left. A complete copy without its
 * segment is kept, because it may be all that is left, unless there is a manifest that does not
 * list the segment: then the space rules have deleted it. */
void bc_segment_archive_recover(int dir_fd, const struct bc_archive_options *options);

#endif
