/* Reads a trace of any readable format as a sequence of entries, in bounded memory.
 *
 *     bc_reader_open()
 *     bc_reader_next() ...     a batch of entries, possibly with a fault after it
 *     bc_reader_close()
 *
 * Malformed, damaged or missing data does not end the trace: it is returned as a fault with its
 * position, and reading continues. But nothing can be read after damage to the compression. */
#ifndef BC_FORMATS_READER_READER_H
#define BC_FORMATS_READER_READER_H

#include "formats/base/format_id.h"
#include "formats/base/must_check.h"
#include "formats/reader/batch.h"
#include "formats/reader/input.h"
#include "formats/trace/parser.h"

struct bc_reader;

/* Opens a reader of an input with a known format. The caller keeps both; the input must outlive the
 * reader. `options` is copied, but not what it points to. Returns 0, -ENOMEM, or -ENOTSUP for a
 * format that cannot be read. */
int bc_reader_open(struct bc_reader **reader, struct bc_input *input, enum bc_format format,
	const struct bc_reader_options *options) BC_MUST_CHECK;
void bc_reader_close(struct bc_reader *reader);

/* Returns 1 with the next batch (which may be only a fault), 0 at the end, or a negative errno if
 * reading failed: -EBADMSG if the compressed data around a segment is damaged here. */
int bc_reader_next(struct bc_reader *reader, struct bc_batch *batch) BC_MUST_CHECK;

/* What was left out or decided so far: see formats/trace/parser.h. */
void bc_reader_notes(const struct bc_reader *reader, struct bc_parse_notes *notes);

/* The header of the current segment; NULL if the input is not a segment or no header was intact. */
const struct bc_segment_header *bc_reader_header(const struct bc_reader *reader);

#endif
