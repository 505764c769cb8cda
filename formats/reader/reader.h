/* Reads a trace of any format that can be read, as a row of entries, in bounded memory.
 *
 *     bc_reader_open()
 *     bc_reader_next() ...     a batch of entries, and perhaps a fault behind it
 *     bc_reader_close()
 *
 * What is malformed, damaged or missing is never the end: it is given as a fault, with its place,
 * and what follows it is read. */
#ifndef BC_FORMATS_READER_READER_H
#define BC_FORMATS_READER_READER_H

#include "formats/base/format_id.h"
#include "formats/base/must_check.h"
#include "formats/reader/batch.h"
#include "formats/reader/input.h"

struct bc_reader;

/* Opens what an input holds, whose format was told. Both stay the caller's; the input must outlive
 * the reader. `options` is copied, what it points to is not. Returns 0, -ENOMEM, or -ENOTSUP for a
 * format that can't be read. */
int bc_reader_open(struct bc_reader **reader, struct bc_input *input, enum bc_format format,
	const struct bc_reader_options *options) BC_MUST_CHECK;
void bc_reader_close(struct bc_reader *reader);

/* The next batch: returns 1 with it (it may have no entries and only a fault), 0 at the end, or a
 * negative errno of reading. */
int bc_reader_next(struct bc_reader *reader, struct bc_batch *batch) BC_MUST_CHECK;

/* The header of the segment at hand; NULL when it is none, or none was whole. */
const struct bc_segment_header *bc_reader_header(const struct bc_reader *reader);

#endif
