/* What a reader of traces (formats/reader/reader.h) gives at each call, and the options that it
 * takes. */
#ifndef BC_FORMATS_READER_BATCH_H
#define BC_FORMATS_READER_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/options.h"
#include "formats/bus/chunk.h"
#include "formats/segment/sequence_check.h"
#include "formats/trace/entry.h"

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
	struct bc_sequence_check *continuity;
};

#endif
