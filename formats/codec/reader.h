/* Reads a trace of any readable format as a sequence of entries, in bounded memory.
 *
 *     bc_reader_open()
 *     bc_reader_next() ...     a batch of entries, possibly with a fault after it
 *     bc_reader_close()
 *
 * Malformed, damaged or missing data does not end the trace: it is returned as a fault with its
 * position, and reading continues. But nothing can be read after damage to the compression. */
#ifndef BC_FORMATS_CODEC_READER_H
#define BC_FORMATS_CODEC_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/format_id.h"
#include "formats/base/must_check.h"
#include "formats/bus/chunk.h"
#include "formats/codec/input.h"
#include "formats/segment/decode_ahead.h"
#include "formats/segment/sequence_check.h"
#include "formats/trace/entry.h"
#include "formats/trace/parser.h"

/* Something that could not be read or is missing. */
struct bc_fault {
	uint64_t line;   /* of text: line number from 1; otherwise 0 */
	uint32_t column; /* from 1 */
	uint64_t offset; /* of other formats: offset in the uncompressed bytes, from 0 */
	uint64_t bytes;  /* affected bytes; 0: something is missing at this offset */
	bool is_before;  /* it is before the file */
	char what[200];  /* description, a phrase */
};

/* The entries come first, then the run, then the fault. Valid until the next bc_reader_next(). */
struct bc_batch {
	const struct bc_entry *entries;
	size_t count;
	struct bc_record_run run;     /* only with as_records or as_runs; count 0: none */
	const struct bc_fault *fault; /* NULL: none */

	/* For segments: the header of the chunk with the entries or the run; otherwise NULL. */
	const struct bc_chunk_info *chunk_info;
	void *result; /* what the options' work made of the run, or NULL */
};

/* Successive entries as they are in the trace: BYU records or bcp1 samples, with nothing between
 * them. If bytes and layouts of two runs are equal, all entries match in the fields in which the
 * first ones do, and their ticks are as far apart. */
struct bc_reader_run {
	const uint8_t *bytes;
	size_t count;
	size_t each;     /* bytes of an entry */
	unsigned layout; /* what the bytes mean */
};

struct bc_reader_options {
	struct bc_format_options format;
	bool as_records; /* return the records of byu and byu-be as runs, not as entries */
	bool as_runs;    /* the same for segments: the records between two events */
	/* For segments: returns whether a chunk may contain anything the caller needs; NULL: read
	 * all. It is called when the header has been read, possibly several times for a chunk. With
	 * index_fd, chunks that are not needed are skipped without being read. It is also called
	 * with descriptions of missing records, which are reported only if it returns true. */
	bc_needs_chunk *needs_chunk;
	/* For segments, with as_runs: returns whether the records of a chunk are needed, by its
	 * header; NULL: all are. Those of others are not checked, and are a run that has no bytes:
	 * its `records` is NULL. It was called for that chunk last. */
	bool (*needs_records)(void *context, const struct bc_chunk *chunk);
	void *context;
	/* For segments: what other threads do with chunks, if they have time. With as_runs, a batch
	 * has the result if its run is the whole chunk and has exact ticks; NULL: nothing. */
	const struct bc_chunk_work *work;
	bool is_partial;     /* a segment that is still open: it has no index yet */
	bool is_killed;      /* it was abandoned: unless it has the recording's end, a gap of
				unknown size is added at its end */
	bool is_one_of_many; /* the caller reads several files at a time: no threads for this one */
	int index_fd; /* descriptor of the segment if it is a regular file, to load its index; -1:
			 none */
	/* For segments: kept from file to file, so that missing and duplicate chunks between files
	 * are reported; NULL: each file is checked separately. */
	struct bc_sequence_check *sequence;
};

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

/* Sets *run to the entries from `entry` on, which is in the last batch. Returns false if they are
 * not at hand as bytes. The run is valid until the next call to bc_reader_next(). */
bool bc_reader_run(const struct bc_reader *reader, const struct bc_entry *entry,
	struct bc_reader_run *run) BC_MUST_CHECK;

/* Skips entries up to the n-th of that run, beyond the batch: it is the first of the next batch. */
void bc_reader_skip(struct bc_reader *reader, const struct bc_entry *entry, size_t n);

/* What the entries of this trace may have; most formats do not say more than what they can hold.
 * *has_wall: whether they may have a time of day. */
bc_traits bc_reader_traits(const struct bc_reader *reader, bool *has_wall);

/* What was left out or decided so far: see formats/trace/parser.h. */
void bc_reader_notes(const struct bc_reader *reader, struct bc_parse_notes *notes);

/* The header of the current segment; NULL if the input is not a segment or no header was intact. */
const struct bc_segment_header *bc_reader_header(const struct bc_reader *reader);

#endif
