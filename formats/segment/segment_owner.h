/* Whether a file is one of buscapd's. Its name proves nothing: users and other programs put files
 * with such names next to the recordings. */
#ifndef BC_FORMATS_SEGMENT_SEGMENT_OWNER_H
#define BC_FORMATS_SEGMENT_SEGMENT_OWNER_H

#include "formats/base/must_check.h"
#include "formats/segment/segment_name.h"

/* A segment is ours if its header can be read, was written by buscapd, and has the
 * recording and the segment that its file name has. Everything else is foreign: it is never
 * deleted, renamed or counted. That includes the output of buscap, which the user has named.
 *
 * Reads the header of a file, whose name has these parts. Returns 0 if it is ours;
 * -EBADMSG: it has no header, or a damaged one; -EUCLEAN: the same, but by its index it is that
 * segment; -EXDEV: the header of another file or program; or another negative errno, if it can't be
 * read. */
int bc_segment_owner_check(struct bc_segment_header *header, int dir_fd, const char *file,
	const struct bc_segment_name *name) BC_MUST_CHECK;

#endif
