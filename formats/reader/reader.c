#include "formats/reader/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/reader/reader_kind.h"

static const struct bc_reader_kind *kind_of(enum bc_format format)
{
	switch (format) {
	case BC_FORMAT_SEGMENT:
		return &bc_chunk_reader;
	case BC_FORMAT_BCP1:
		return &bc_frame_reader;
	default:
		return bc_format_info(format)->parser != NULL ? &bc_block_reader : NULL;
	}
}

int bc_reader_open(struct bc_reader **reader, struct bc_input *input, enum bc_format format,
	const struct bc_reader_options *options)
{
	const struct bc_reader_kind *kind = kind_of(format);

	if (kind == NULL)
		return -ENOTSUP;
	struct bc_reader *r = malloc(sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	memset(r, 0, offsetof(struct bc_reader, entries));
	r->kind = kind;
	r->input = input;
	r->format = format;
	r->info = bc_format_info(format);
	r->options = *options;
	int rc = kind->open(r);
	if (rc != 0) {
		bc_reader_close(r);
		return rc;
	}
	*reader = r;
	return 0;
}

void bc_reader_close(struct bc_reader *r)
{
	if (r == NULL)
		return;
	r->kind->close(r);
	free(r);
}

int bc_reader_next(struct bc_reader *r, struct bc_batch *batch)
{
	*batch = (struct bc_batch){.entries = r->entries};
	return r->kind->next(r, batch);
}

void bc_reader_notes(const struct bc_reader *r, struct bc_parse_notes *notes)
{
	*notes = (struct bc_parse_notes){0};
	if (r->kind->notes != NULL)
		r->kind->notes(r, notes);
}

const struct bc_segment_header *bc_reader_header(const struct bc_reader *r)
{
	return r->header;
}
