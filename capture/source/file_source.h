/* A saved capture as a source: raw6, bcp1, BYU in any dialect, segments; a file, a FIFO or standard
 * input. Regular files can't be polled, so a thread reads ahead into three buffers of 1 MiB.
 *
 * Stopping a file discards what was read ahead. A FIFO or standard input can't be read again, so
 * what was read from it goes to the sink before the end. */
#ifndef BC_CAPTURE_SOURCE_FILE_SOURCE_H
#define BC_CAPTURE_SOURCE_FILE_SOURCE_H

#include <uv.h>

#include "capture/source/source.h"
#include "formats/base/must_check.h"

/* Opens the file `path`; "-" is standard input. `format` BC_FORMAT_UNKNOWN: detect it; clock_hz 0:
 * unknown. Returns 0 or a negative errno: open()'s, -EISDIR for a directory, -ENOMEM. */
int bc_file_source_open(struct bc_source **source, uv_loop_t *loop, const char *path,
	enum bc_format format, uint64_t clock_hz) BC_MUST_CHECK;

#endif
