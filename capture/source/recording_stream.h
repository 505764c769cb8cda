/* The sealed segments of a recording, one after the other, as one stream of bytes. They are looked
 * up in the directory by the recording's id, so only files of that recording are opened. The first
 * read opens the directory by its path, as it may have been replaced; from then on, it may be
 * renamed. Blocks on the disk. */
#ifndef BC_CAPTURE_SOURCE_RECORDING_STREAM_H
#define BC_CAPTURE_SOURCE_RECORDING_STREAM_H

#include <dirent.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/segment/segment_header.h"

struct bc_recording_stream {
	char *path; /* of the directory; the caller's */
	DIR *dir;   /* NULL: not opened yet */
	char recording[BC_RECORDING_ID_MAX];
	int fd;          /* the open segment; -1: none */
	int64_t segment; /* its number, or that of the previous one; -1: none */
};

/* For bc_input_stream.read; `context` is a bc_recording_stream. Returns the number of bytes read, 0
 * at the end, or a negative errno; -ENOENT: the recording has no sealed segment, or there is no
 * directory. A segment that is deleted before it is reached is missing from the stream. */
ssize_t bc_recording_stream_read(void *context, void *out, size_t size);

/* Closes the open segment and the directory. */
void bc_recording_stream_close(struct bc_recording_stream *stream);

#endif
