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
	int wake_fd; /* cancels when it is readable; -1: none */
	/* Called after each chunk with the number of bytes read and written; may be NULL. */
	void (*on_bytes)(void *context, uint64_t bytes);
	void *context;
};

struct bc_archived {
	bool is_replaced;      /* false after 0 was returned: it was archived before */
	uint64_t bytes_before; /* the segment's size */
	uint64_t bytes_after;
	const char *why; /* after -EBADMSG: what is wrong with it, a constant text */
	char what[96];   /* after -EBADMSG: the damage, or empty */
};

/* Archives the segment `name` in a directory. Returns 0 or a negative errno, with the segment
 * unchanged: -EBADMSG if it is not a sealed, undamaged segment; -EBUSY if another process or thread
 * is archiving it; -ELOOP if it is a symbolic link; -ECANCELED; -ENOSPC; ... */
int bc_segment_archive(struct bc_archived *archived, int dir_fd, const char *name,
	const struct bc_archive_options *options) BC_MUST_CHECK;

#endif
