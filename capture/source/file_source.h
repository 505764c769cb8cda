/* A saved capture as a source: raw6, bcp1, BYU in any dialect, segments; a file, a FIFO or standard
 * input. Regular files can't be polled, so a thread reads ahead, into three buffers of 1 MiB.
 *
 * A raw capture (formats/segment/raw_capture.h) comes as it was kept: its transfers one by one,
 * with their times, and its breaks; where some of it is missing, there is a break as well. Its
 * pieces carry its header, whose clock_hz holds where the user named none.
 *
 * Stopping a file drops what was read ahead; what was read of a pipe can't be had again, and comes
 * to the sink before its end. */
#ifndef BC_CAPTURE_SOURCE_FILE_SOURCE_H
#define BC_CAPTURE_SOURCE_FILE_SOURCE_H

#include <uv.h>

#include "capture/source/source.h"
#include "formats/base/must_check.h"

struct bc_file_options {
	const char *path;      /* "-": standard input */
	enum bc_format format; /* BC_FORMAT_UNKNOWN: tell it by content */
	uint64_t clock_hz;
};

/* Opens the file. Returns 0, or a negative errno: of open(), -EISDIR for a directory, -ENOMEM. */
int bc_file_source_open(struct bc_source **source, uv_loop_t *loop,
	const struct bc_file_options *options) BC_MUST_CHECK;

#endif
