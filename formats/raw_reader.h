/* Reads raw captures: whole ones, open or torn ones, damaged ones, several behind one another; from
 * a file or from a pipe.
 *
 * bc_raw_read() goes through the bytes in order and gives one finding at a time. A block that it
 * gives has passed every checksum. Damage never ends the reading: it is reported with its place,
 * and the next whole block is looked for behind it. */
#ifndef BC_FORMATS_RAW_READER_H
#define BC_FORMATS_RAW_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/raw_capture.h"
#include "formats/segment_header.h"
#include "formats/segment_reader.h"
#include "formats/stream.h"

enum bc_raw_found {
	BC_RAW_FOUND_END,    /* the bytes are over; asked again, the same */
	BC_RAW_FOUND_FILE,   /* a raw capture begins; bc_raw_reader_header() */
	BC_RAW_FOUND_BLOCK,  /* a whole block */
	BC_RAW_FOUND_DAMAGE, /* bc_raw_reader_damage() says what and where */
};

struct bc_raw_reader;

/* Reads from a stream as bc_segment_reader_open() does. Takes some 2.3 MiB. Returns 0, -ENOMEM or
 * -EINVAL (more head than 1 MiB). */
int bc_raw_reader_open(struct bc_raw_reader **reader, struct bc_stream stream, const uint8_t *head,
	size_t head_bytes) __attribute__((warn_unused_result));
void bc_raw_reader_close(struct bc_raw_reader *reader);

/* The next finding, or a negative errno when reading fails; `block` is filled for
 * BC_RAW_FOUND_BLOCK and otherwise unspecified. */
int bc_raw_read(struct bc_raw_reader *reader, struct bc_raw_block *block)
	__attribute__((warn_unused_result));

/* Valid until the next call of bc_raw_read(). The header is that of the latest file begun, or NULL
 * if it was not whole. */
const struct bc_segment_header *bc_raw_reader_header(const struct bc_raw_reader *reader);
const struct bc_segment_damage *bc_raw_reader_damage(const struct bc_raw_reader *reader);

/* Place in the bytes behind the latest finding. */
uint64_t bc_raw_reader_offset(const struct bc_raw_reader *reader);

/* After BC_RAW_FOUND_BLOCK: how the block follows the one found before. */
enum bc_raw_follows {
	BC_RAW_FIRST,        /* there was none */
	BC_RAW_AT_ONCE,      /* nothing is missing between them */
	BC_RAW_BEHIND_HOLE,  /* some of the stream is */
	BC_RAW_BEHIND_OTHER, /* it is of another recording */
};
enum bc_raw_follows bc_raw_reader_follows(const struct bc_raw_reader *reader);

#endif
