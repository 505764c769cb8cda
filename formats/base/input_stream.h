/* A file descriptor that is read to its end: a file, a pipe, a terminal. A read that waits can be
 * broken off from another thread by making wake_fd readable. */
#ifndef BC_FORMATS_BASE_INPUT_STREAM_H
#define BC_FORMATS_BASE_INPUT_STREAM_H

#include <stddef.h>
#include <sys/types.h>

#include "formats/base/must_check.h"
#include "formats/base/progress_cb.h"

struct bc_input_stream {
	int fd;
	int wake_fd; /* -1: reads can't be broken off */
	/* Instead of reading fd: gives the bytes that it stands for, as bc_input_stream_read()
	 * does; NULL: they are the file's own. */
	ssize_t (*read)(void *context, void *out, size_t room);
	void *context;
	/* Each read of the fd that gives bytes is one. NULL: nobody waits. */
	const struct bc_progress_cb *steps;
};

/* Reads up to `room` bytes. Returns their number, 0 at the end, -ECANCELED when woken, or another
 * negative errno. */
ssize_t bc_input_stream_read(struct bc_input_stream stream, void *out, size_t room) BC_MUST_CHECK;

#endif
