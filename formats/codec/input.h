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
#include "formats/codec/unpack.h"
#include "formats/segment/segment_header.h"
#include "formats/segment/segment_reader.h"

/* How the format of a file is detected from its content.
 *
 * Segments and bcp1 have checksums, so their detection is certain. The plain record formats have no
 * marks. Each of them is checked against the bytes, and the user must name the format unless
 * exactly one fits. The detection never guesses.
 *
 * The LZ4 frames of a segment belong to its format: its compression is what is around it. */

/* Bytes from the start of a file that bc_probe() needs at most: a whole zstd block, at any
 * compression ratio. Of uncompressed files, a quarter of this is examined. */
#define BC_PROBE_BYTES 262144u

struct bc_probe {
	enum bc_format format;   /* BC_FORMAT_UNKNOWN: see `err` */
	enum bc_packing packing; /* its compression */
	bool is_foreign;         /* unknown format: `err` says what it is and what to do */
	char err[200];           /* unknown format: the reason, as a clause */
};

/* Examines the first bytes of a file, which may be compressed with LZ4, gzip, zstd or xz with
 * windows of up to 1 << window_log bytes. `is_all`: the file has no more bytes. Returns true if
 * *probe is final, or false if more bytes could change it (never with BC_PROBE_BYTES or is_all). */
bool bc_probe(struct bc_probe *probe, const uint8_t *head, size_t bytes, bool is_all,
	unsigned window_log);

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

/* Number of bytes of the stream (before decompression) used up so far, for progress reports. */
uint64_t bc_input_position(const struct bc_input *input);

/* Creates a segment reader for an input of format BC_FORMAT_SEGMENT. Returns 0 or -ENOMEM. Close
 * the reader before the input. */
int bc_input_segments(struct bc_input *input, struct bc_segment_reader **reader) BC_MUST_CHECK;

#endif
