/* A reader (formats/codec/reader.h), and the interface of its three kinds: for lines and
 * fixed-size records and for frames (both in reader.c), and for chunks (chunk_reader.c). Private to
 * these. */
#ifndef BC_FORMATS_CODEC_READER_INTERNAL_H
#define BC_FORMATS_CODEC_READER_INTERNAL_H

#include "formats/codec/format.h"
#include "formats/codec/reader.h"
#include "formats/trace/parser.h"

#define BC_READER_ENTRIES 192

struct bc_reader_kind {
	int (*open)(struct bc_reader *reader); /* sets reader->state */
	int (*next)(struct bc_reader *reader, struct bc_batch *batch);
	void (*notes)(const struct bc_reader *reader, struct bc_parse_notes *notes); /* or NULL */
	void (*close)(struct bc_reader *reader); /* state may be NULL */
};

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
