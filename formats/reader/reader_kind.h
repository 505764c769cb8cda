/* The three implementations of formats/reader/reader.h: for lines and fixed-size records
 * (formats/reader/block_reader.c), frames (formats/reader/frame_reader.c) and chunks
 * (formats/reader/chunk_reader.c). Private to that module. */
#ifndef BC_FORMATS_READER_READER_KIND_H
#define BC_FORMATS_READER_READER_KIND_H

#include "formats/codec/format.h"
#include "formats/reader/batch.h"
#include "formats/reader/input.h"
#include "formats/trace/parser.h"

#define BC_READER_ENTRIES 192

struct bc_reader;

struct bc_reader_kind {
	int (*open)(struct bc_reader *reader); /* sets reader->state */
	int (*next)(struct bc_reader *reader, struct bc_batch *batch);
	void (*notes)(const struct bc_reader *reader, struct bc_parse_notes *notes); /* or NULL */
	void (*close)(struct bc_reader *reader); /* state may be NULL */
};

extern const struct bc_reader_kind bc_block_reader;
extern const struct bc_reader_kind bc_frame_reader;
extern const struct bc_reader_kind bc_chunk_reader;

struct bc_reader {
	const struct bc_reader_kind *kind;
	struct bc_input *input;
	enum bc_format format;
	const struct bc_format_info *info;
	struct bc_reader_options options;
	void *state;
	const struct bc_segment_header *header;
	struct bc_fault fault;
	struct bc_entry entries[BC_READER_ENTRIES];
};

#endif
