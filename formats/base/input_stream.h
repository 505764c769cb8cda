/* A file, pipe or terminal that is read to its end. A readable wake_fd cancels a blocked read. */
#ifndef BC_FORMATS_BASE_INPUT_STREAM_H
#define BC_FORMATS_BASE_INPUT_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/base/must_check.h"

/* For long work on files: called after each piece, to show that the work is not stuck. */
struct bc_progress_cb {
	void (*on_progress)(void *context);
	void *context;
};

struct bc_input_stream {
	int fd;
	int wake_fd; /* -1: reads can't be cancelled */
	/* A regular file that grows is read up to this offset. 0: as far as it goes. */
	uint64_t end;
	/* Replaces reading from fd, for example by decompressing it. Same result as
	 * bc_input_stream_read(). NULL: read fd. */
	ssize_t (*read)(void *context, void *out, size_t size);
	void *context;
	/* Called after each read of fd that returned data, and by bc_input_stream_poll(). Or NULL.
	 */
	const struct bc_progress_cb *progress;
};

/* Reads up to `size` bytes. Returns the number of bytes read, 0 at the end, -ECANCELED if wake_fd
 * became readable, or another negative errno. */
ssize_t bc_input_stream_read(struct bc_input_stream stream, void *out, size_t size) BC_MUST_CHECK;

/* Call during long work between two reads: calls `progress`, and returns -ECANCELED if wake_fd is
 * readable, otherwise 0. */
int bc_input_stream_poll(struct bc_input_stream stream) BC_MUST_CHECK;

#endif
