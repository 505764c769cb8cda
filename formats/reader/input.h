/* A trace file opened for reading: its format told by content or by name, LZ4, gzip
 * and zstd undone.
 *
 *     bc_input_open()                       reads as much of the head as telling the format needs
 *     bc_input_read() ...                   plain formats: the bytes, decompressed
 *     bc_input_segments()                   segments: a reader of chunks instead
 *     bc_input_capture()                    raw captures: a reader of blocks instead
 *     bc_input_close()
 */
#ifndef BC_FORMATS_READER_INPUT_H
#define BC_FORMATS_READER_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "formats/base/input_stream.h"
#include "formats/base/must_check.h"
#include "formats/reader/probe.h"
#include "formats/segment/segment_reader.h"

struct bc_input;

/* Opens what the stream holds. Where a regular file's head is destroyed, a segment's trailer at its
 * end tells it still. `wanted`: the format by the user's word, or BC_FORMAT_UNKNOWN to tell it by
 * content. Returns 0 with *probe telling format and compression; -EINVAL when the format can't be
 * told, probe->why says why; or a negative errno of reading. The fd stays the caller's. */
int bc_input_open(struct bc_input **input, struct bc_input_stream stream, enum bc_format wanted,
	struct bc_probe *probe) BC_MUST_CHECK;
void bc_input_close(struct bc_input *input);

/* Reads up to `room` plain bytes. Returns their number, 0 at the end, -EBADMSG when what it is
 * compressed in is damaged or torn here (what came before was good), -ECANCELED, or another
 * negative errno. */
ssize_t bc_input_read(struct bc_input *input, uint8_t *out, size_t room) BC_MUST_CHECK;

/* A stream of what bc_input_read() gives. The input must outlive it. */
struct bc_input_stream bc_input_stream(struct bc_input *input);

/* The head that was read to tell the format, while nothing has been taken of it; *bytes is set to
 * its length. Valid until the next call. */
const uint8_t *bc_input_head(const struct bc_input *input, size_t *bytes);

/* How many bytes of the stream itself were used up by bc_input_read(): for a progress report. */
uint64_t bc_input_position(const struct bc_input *input);

/* Makes a segment reader of an input whose format is BC_FORMAT_SEGMENT. Returns 0 or -ENOMEM. Close
 * the reader before the input. */
int bc_input_segments(struct bc_input *input, struct bc_segment_reader **reader) BC_MUST_CHECK;

/* Makes a reader of an input that is a raw capture; bc_input_read() of one gives the bytes alone.
 * Returns 0 or -ENOMEM. Close the reader before the input. */
int bc_input_capture(struct bc_input *input, struct bc_segment_reader **reader) BC_MUST_CHECK;

#endif
