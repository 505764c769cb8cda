/* A saved capture as a source: raw6, bcp1, BYU in any dialect, segments; a file, a FIFO, standard
 * input, an upload, or the segments of a recording. Regular files can't be polled, so a thread
 * reads ahead into three buffers of 1 MiB.
 *
 * Stopping a file or an upload discards what was read ahead. A FIFO or standard input can't be read
 * again, so what was read from it goes to the sink before the end. */
#ifndef BC_CAPTURE_SOURCE_FILE_SOURCE_H
#define BC_CAPTURE_SOURCE_FILE_SOURCE_H

#include <uv.h>

#include "capture/source/source.h"
#include "formats/base/must_check.h"

struct bc_file_options {
	const char *path;      /* "-": standard input; NULL: an upload or a recording */
	const char *name;      /* of those, for messages */
	int fd;                /* pipe of an upload; the source closes it, even on failure */
	const char *recording; /* id; NULL: an upload */
	const char *dir;       /* path of the directory with its segments; copied */
	enum bc_format format; /* BC_FORMAT_UNKNOWN: detect it */
	uint64_t clock_hz;
};

/* Opens the file. Returns 0 or a negative errno: open()'s, -EISDIR for a directory, -ENOMEM. */
int bc_file_source_open(struct bc_source **source, uv_loop_t *loop,
	const struct bc_file_options *options) BC_MUST_CHECK;

#endif
