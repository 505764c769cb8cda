/* Reads a trace of any format that can be read, as a row of entries, in bounded memory.
 *
 *     bc_reader_open()
 *     bc_reader_next() ...     a batch of entries, and perhaps a fault behind it
 *     bc_reader_close()
 *
 * What is malformed, damaged or missing is never the end: it is given as a fault, with its place,
 * and what follows it is read. */
#ifndef BC_FORMATS_READER_H
#define BC_FORMATS_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/continuity.h"
#include "formats/entry.h"
#include "formats/format.h"
#include "formats/input.h"
#include "formats/options.h"

struct bc_reader;

/* Something that could not be read, or is missing. */
struct bc_fault {
	uint64_t line;   /* of text: from 1; else 0 */
	uint32_t column; /* from 1 */
	uint64_t offset; /* of anything else: in the plain bytes, from 0 */
	uint64_t bytes;  /* that belong to it; 0: something is missing here */
	char what[200];  /* a phrase */
};

/* Valid until the next call of bc_reader_next(). */
struct bc_batch {
	const struct bc_entry *entries;
	size_t count;
	const struct bc_fault *fault; /* stands behind the entries; NULL: none */

	/* Of a reader opened as_records, in place of entries: BYU records. */
	const uint8_t *records;
	size_t record_count;
	uint64_t first_number;        /* of the first record */
	uint64_t tick;                /* of the record before the first; 0 where none is */
	const struct bc_chunk *chunk; /* the chunk that they are; NULL: they stand in none */

	/* Of segments, entries or records: the header of the chunk that they stand in; else NULL.
	 */
	const struct bc_chunk_info *chunk_info;
};

struct bc_reader_options {
	struct bc_format_options format;
	/* Segments and BYU in its dialects come as records, without being made entries; a record
	 * that is too large for BYU is a fault then. Other formats are not changed by it. */
	bool as_records;
	/* With as_records: dialects whose records may be too large for BYU come as entries all the
	 * same, so that no record is a fault. */
	bool wide_as_entries;
	/* Of segments: whether a chunk may hold something that is wanted; NULL: all are. With the
	 * descriptor of a regular file that has an index, what isn't wanted is not read at all. */
	bool (*wants_chunk)(void *context, const struct bc_chunk_info *info);
	void *context;
	int index_fd; /* -1: none */
	/* Of segments: carried from file to file, so that what is missing or there twice between
	 * them is told; NULL: each file stands alone. */
	struct bc_continuity *continuity;
};

/* Opens what an input holds, whose format was told. Both stay the caller's; the input must outlive
 * the reader. `options` is copied, what it points to is not. Returns 0, -ENOMEM, or -ENOTSUP for a
 * format that can't be read. */
int bc_reader_open(struct bc_reader **reader, struct bc_input *input, enum bc_format format,
	const struct bc_reader_options *options) __attribute__((warn_unused_result));
void bc_reader_close(struct bc_reader *reader);

/* The next batch: returns 1 with it (it may have no entries and only a fault), 0 at the end, or a
 * negative errno of reading. */
int bc_reader_next(struct bc_reader *reader, struct bc_batch *batch)
	__attribute__((warn_unused_result));

/* The header of the segment at hand; NULL when it is none, or none was whole. */
const struct bc_segment_header *bc_reader_header(const struct bc_reader *reader);

/* Makes an entry of one BYU record. `tick` is its absolute tick, *number* its number. */
void bc_entry_of_record(
	struct bc_entry *entry, const uint8_t *record, uint64_t number, uint64_t tick);

/* Makes an entry of a bus sample: the record that `mapping` makes of it, and the sample itself. */
void bc_entry_of_sample(struct bc_entry *entry, const uint8_t sample[BC_SAMPLE_BYTES],
	const struct bc_mapping *mapping, uint8_t proc, uint64_t number, uint64_t tick);

#endif
