/* Opens a trace file for reading: detects its format unless given, decompresses LZ4, gzip and zstd.
 *
 *     bc_input_open()                       reads as much of the file as detection needs
 *     bc_input_read() ...                   plain formats: the decompressed bytes
 *     bc_input_segments()                   segments: a reader of chunks instead
 *     bc_input_close() */
#ifndef BC_FORMATS_CODEC_INPUT_H
#define BC_FORMATS_CODEC_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/base/input_stream.h"
#include "formats/base/must_check.h"
#include "formats/codec/format.h"
#include "formats/codec/probe.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/segment_reader.h"

struct bc_input;

/* Opens a stream. `given` is the format named by the user, or BC_FORMAT_UNKNOWN to detect it.
 * zstd and xz may use windows of up to 1 << window_log bytes, usually BC_WINDOW_LOG. A segment
 * whose start is destroyed is recognized by the trailer at its end, if it is a regular file.
 * Returns 0 with format and compression in *probe; -EINVAL if the format is unclear, with the
 * reason in probe->err; or another negative errno if reading failed. The caller keeps the fd. */
int bc_input_open(struct bc_input **input, struct bc_input_stream stream, enum bc_format given,
	unsigned window_log, struct bc_probe *probe) BC_MUST_CHECK;

void bc_input_close(struct bc_input *input);

/* Reads up to `capacity` decompressed bytes. Returns their number, 0 at the end, -EBADMSG if the
 * compressed data is damaged or torn here (the bytes before are good), -ENOBUFS if the next needs
 * too large a window, -ECANCELED, or another negative errno. */
ssize_t bc_input_read(struct bc_input *input, uint8_t *out, size_t capacity) BC_MUST_CHECK;

/* A stream of the bytes that bc_input_read() returns. The input must outlive it. */
struct bc_input_stream bc_input_stream(struct bc_input *input);

/* Reads the header of a segment from the bytes that were read to detect the format, before any
 * other bytes are read. Returns false if it is not there as a whole or damaged. */
bool bc_input_segment_header(const struct bc_input *input, struct bc_segment_header *header);

/* The layout that was detected (formats/codec/layout.h), or NULL. */
const char *bc_input_layout(const struct bc_input *input);

/* Number of bytes of the stream (before decompression) used up so far, for progress reports. */
uint64_t bc_input_position(const struct bc_input *input);

/* Creates a segment reader for an input of format BC_FORMAT_SEGMENT. Returns 0 or -ENOMEM. Close
 * the reader before the input. */
int bc_input_segments(struct bc_input *input, struct bc_segment_reader **reader) BC_MUST_CHECK;

#endif
