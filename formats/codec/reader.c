/* Reads bcp1, whose samples become entries, gaps and damage between frames events and faults; and
 * text lines and fixed-size records. Chunks are in chunk_reader.c. */
#include "formats/codec/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/base/utf8.h"
#include "formats/bus/bcp1.h"
#include "formats/bus/record.h"
#include "formats/bus/sample.h"
#include "formats/codec/reader_internal.h"
#include "formats/trace/parser.h"

struct frame_state {
	struct bc_frames *frames;
	bool has_frame; /* samples [next, header.samples) of the current frame are still to be
			   returned */
	uint32_t next;
	uint64_t tick;   /* of the previous sample */
	uint64_t number; /* of the next sample */
	bool has_epoch;
	uint32_t epoch; /* of the last entry */
	bool is_over;
	struct bc_mapping mapping;
};

static int open_frames(struct bc_reader *r)
{
	struct bc_mapping_options mapping = bc_mapping_options_default();
	struct frame_state *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return -ENOMEM;
	r->state = f;
	mapping.keep_invalid = true; /* the target decides whether to drop them */
	bc_mapping_init(&f->mapping, &mapping);
	return bc_frames_open(&f->frames, bc_input_stream(r->input));
}

static void close_frames(struct bc_reader *r)
{
	struct frame_state *f = r->state;

	if (f == NULL)
		return;
	bc_frames_close(f->frames);
	free(f);
}

/* Returns as many samples of the frame as fit. */
static void next_samples(struct bc_reader *r, struct frame_state *f, struct bc_batch *batch)
{
	const struct bc_bcp1_header *header = &f->frames->frame.header;
	bool has_agent = (header->flags & BC_BCP1_AGENT) != 0;

	while (f->next < header->samples && batch->count < BC_READER_ENTRIES) {
		const uint8_t *sample = f->frames->frame.samples +
					(size_t)f->next * BC_BCP1_SAMPLE_BYTES;
		struct bc_entry *entry = &r->entries[batch->count++];
		f->tick += f->next != 0 ? bc_le16(sample + BC_SAMPLE_BYTES) : 0;
		bc_entry_of_sample(entry, sample, &f->mapping,
			has_agent ? sample[5] & 15 : header->proc, f->number++, f->tick);
		entry->epoch = f->epoch;
		f->next++;
	}
	f->has_frame = f->next < header->samples;
}

static void add_event(
	struct bc_reader *r, struct frame_state *f, struct bc_batch *batch, struct bc_event event)
{
	struct bc_entry *entry = &r->entries[batch->count++];

	bc_entry_reference(entry, 0, 0, f->number);
	entry->kind = BC_ENTRY_EVENT;
	entry->tick = f->frames->frame.header.tick;
	entry->epoch = f->frames->epoch;
	entry->note.event = event;
	entry->note.text = (struct bc_text){.at = "", .bytes = 0};
}

static void start_frame(struct bc_reader *r, struct frame_state *f, struct bc_batch *batch)
{
	if (f->frames->frame.header.samples == 0)
		return;
	if (f->has_epoch && f->epoch != f->frames->epoch)
		add_event(r, f, batch, (struct bc_event){.kind = 0});
	f->has_epoch = true;
	f->epoch = f->frames->epoch;
	f->has_frame = true;
	f->next = 0;
	f->tick = f->frames->frame.header.tick;
}

static int next_frame(struct bc_reader *r, struct bc_batch *batch)
{
	struct frame_state *f = r->state;

	while (batch->count == 0) {
		if (f->has_frame) {
			next_samples(r, f, batch);
			break;
		}
		if (f->is_over)
			return 0;
		int rc = bc_frames_next(f->frames);
		switch (rc) {
		case BC_FRAMES_FRAME:
			start_frame(r, f, batch);
			break;
		case BC_FRAMES_GAP:
			add_event(r, f, batch,
				(struct bc_event){.kind = BC_EVENT_GAP,
					.cause = (uint8_t)f->frames->gap.cause,
					.exact = f->frames->gap.is_exact,
					.value = f->frames->gap.lost});
			if (f->frames->gap.cause != BC_GAP_SEQUENCE)
				break;
			r->fault = (struct bc_fault){.offset = f->frames->gap.offset};
			snprintf(r->fault.what, sizeof(r->fault.what), "frames are missing here");
			batch->fault = &r->fault;
			return 1;
		case BC_FRAMES_TRIGGER:
			add_event(r, f, batch, (struct bc_event){.kind = BC_EVENT_TRIGGER});
			break;
		case BC_FRAMES_DAMAGE:
			r->fault = (struct bc_fault){.offset = f->frames->damage.offset,
				.bytes = f->frames->damage.bytes};
			snprintf(
				r->fault.what, sizeof(r->fault.what), "%s", f->frames->damage.what);
			batch->fault = &r->fault;
			return 1;
		case BC_FRAMES_END:
			f->is_over = true;
			break;
		case -EBADMSG:
			f->is_over = true;
			r->fault = (struct bc_fault){.offset = f->frames->whole_end};
			snprintf(r->fault.what, sizeof(r->fault.what),
				"the compressed data is damaged or torn here");
			batch->fault = &r->fault;
			return 1;
		default:
			return rc;
		}
	}
	return 1;
}

static const struct bc_reader_kind frame_reader = {
	.open = open_frames, .next = next_frame, .close = close_frames};

/* Reads text lines and fixed-size records. The input is read in blocks. Whole lines or records go
 * to the format's parser; an incomplete one at the end of a block is kept for the next. */

#define BLOCK_BYTES (256u << 10)

_Static_assert(BLOCK_BYTES >= 2 * BC_LINE_MAX, "a block holds the longest line and more");
_Static_assert(BC_READER_ENTRIES >= 2 * BC_LINE_ENTRIES, "a batch holds the longest line's");

struct block_state {
	uint64_t offset; /* of bytes[0] in the input */
	size_t start;    /* parsed up to here */
	size_t whole;    /* whole lines or records up to here */
	size_t end;      /* bytes read up to here */
	uint64_t number; /* of the line or record at `start` */
	uint64_t tick;   /* as_records: tick of the record before `start` */
	bool is_over;    /* end of input, or nothing more can be read */
	bool is_long;    /* skipping a line that is too long, up to its newline */
	bool has_added;  /* a newline was added to the last line */
	bool as_records;
	int error;        /* reported after everything before it: -EBADMSG or a read error */
	void *parser;     /* state of the parser */
	uint8_t *records; /* as_records, for byu-be: buffer for a converted block */
	uint8_t bytes[BLOCK_BYTES + BC_PARSE_PADDING];
};

static int open_blocks(struct bc_reader *r)
{
	const struct bc_parser *parser = r->info->parser;
	struct block_state *b = malloc(sizeof(*b));

	if (b == NULL)
		return -ENOMEM;
	memset(b, 0, offsetof(struct block_state, bytes));
	memset(b->bytes + BLOCK_BYTES, 0, BC_PARSE_PADDING);
	r->state = b;
	b->number = parser->record_bytes == 0;
	b->parser = bc_parser_start(parser, &r->options.format);
	if (b->parser == NULL)
		return -ENOMEM;
	/* The records of the other dialects may be too large. */
	b->as_records = r->options.as_records && bc_dialect_bytes(r->format) == BC_RECORD_BYTES;
	if (!b->as_records || r->format == BC_FORMAT_BYU)
		return 0;
	b->records = malloc(BLOCK_BYTES);
	return b->records != NULL ? 0 : -ENOMEM;
}

static void close_blocks(struct bc_reader *r)
{
	struct block_state *b = r->state;

	if (b == NULL)
		return;
	free(b->parser);
	free(b->records);
	free(b);
}

static void set_line_fault(
	struct bc_reader *r, const struct block_state *b, size_t column, const char *what)
{
	r->fault = (struct bc_fault){.line = b->number, .column = (uint32_t)column};
	snprintf(r->fault.what, sizeof(r->fault.what), "%s", what);
}

/* Whether the line at `start` exceeds BC_LINE_MAX. */
static bool has_long_line(const struct bc_reader *r, const struct block_state *b)
{
	return b->end - b->start >= BC_LINE_MAX && r->info->parser->record_bytes == 0 &&
	       memchr(b->bytes + b->start, '\n', BC_LINE_MAX) == NULL;
}

/* Skips the buffered part of a line that is too long. Returns true if the line is to be
 * reported. */
static bool skip_long_line(struct bc_reader *r, struct block_state *b)
{
	bool is_new = !b->is_long;
	const uint8_t *newline = memchr(b->bytes + b->start, '\n', b->end - b->start);
	char what[64];

	snprintf(what, sizeof(what), "line longer than %u bytes; skipped", BC_LINE_MAX - 1);
	if (is_new)
		set_line_fault(r, b, BC_LINE_MAX, what);
	b->is_long = newline == NULL;
	b->start = newline != NULL ? (size_t)(newline - b->bytes) + 1 : b->end;
	b->whole = b->start;
	b->number += newline != NULL;
	return is_new;
}

/* Handles an incomplete line or record at the end of the input. Returns true for a fault. */
static bool finish_blocks(struct bc_reader *r, struct block_state *b)
{
	size_t record = r->info->parser->record_bytes;
	size_t rest = b->end - b->start;

	if (rest == 0)
		return false;
	if (record == 0 && b->error != 0) {
		/* Do not parse it: a cut line may look like a valid one. */
		set_line_fault(r, b, rest + 1, "the line is cut off; skipped");
		b->start = b->whole = b->end;
		return true;
	}
	if (record == 0) {
		b->bytes[b->end++] = '\n';
		b->whole = b->end;
		b->has_added = true;
		return false;
	}
	r->fault = (struct bc_fault){.offset = b->offset + b->start, .bytes = rest};
	snprintf(r->fault.what, sizeof(r->fault.what),
		"torn: %zu byte%s left over after %llu whole %s%s", rest, rest == 1 ? "" : "s",
		(unsigned long long)b->number, r->format == BC_FORMAT_RAW6 ? "sample" : "record",
		b->number == 1 ? "" : "s");
	b->start = b->whole = b->end;
	return true;
}

/* Sets `whole` to the end of the last whole line, or to the start of the first line that is too
 * long. It searches backwards for a newline in steps of BC_LINE_MAX, so it does not have to look at
 * every line. */
static void find_whole(const struct bc_reader *r, struct block_state *b)
{
	size_t record = r->info->parser->record_bytes;
	size_t at = b->start;
	size_t left;

	if (record != 0) {
		b->whole = b->end - (b->end - b->start) % record;
		return;
	}
	while ((left = b->end - at) != 0) {
		size_t n = left < BC_LINE_MAX ? left : BC_LINE_MAX;
		const uint8_t *newline = memrchr(b->bytes + at, '\n', n);
		if (newline == NULL)
			break;
		at = (size_t)(newline - b->bytes) + 1;
	}
	b->whole = at;
}

/* Reads until there is a whole line or record, or the input ends. Returns 1 for a fault, otherwise
 * 0. */
static int fill_block(struct bc_reader *r, struct block_state *b)
{
	while (b->start == b->whole) {
		if ((b->is_long || has_long_line(r, b)) && skip_long_line(r, b))
			return 1;
		find_whole(r, b);
		if (b->start != b->whole || (!b->is_long && has_long_line(r, b)))
			continue;
		if (b->is_over)
			return finish_blocks(r, b);
		memmove(b->bytes, b->bytes + b->start, b->end - b->start);
		b->offset += b->start;
		b->end -= b->start;
		b->start = b->whole = 0;
		/* Leave one byte free for a newline that the last line may lack. */
		ssize_t n = bc_input_read(r->input, b->bytes + b->end, BLOCK_BYTES - 1 - b->end);
		b->is_over = n <= 0;
		b->error = n < 0 ? (int)n : 0;
		b->end += n > 0 ? (size_t)n : 0;
		if (r->info->is_text && b->offset == 0 && bc_starts_with_bom(b->bytes, b->end))
			b->start = b->whole = BC_BOM_BYTES;
	}
	return 0;
}

/* Returns BYU records without converting them to entries. */
static void next_records(struct bc_reader *r, struct block_state *b, struct bc_batch *batch)
{
	const uint8_t *in = b->bytes + b->start;
	size_t n = (b->whole - b->start) / BC_RECORD_BYTES;

	batch->first_number = b->number;
	batch->tick = b->tick;
	batch->records = in;
	if (b->records != NULL) {
		(void)bc_dialect_read(b->records, in, n, r->format);
		batch->records = b->records;
	}
	batch->record_count = n;
	b->tick = bc_records_ticks(batch->records, n, b->tick);
	b->number += n;
	b->start += n * BC_RECORD_BYTES;
}

/* Reports and skips a malformed line or record. */
static void skip_malformed(struct bc_reader *r, struct block_state *b, const struct bc_parse *p)
{
	const char *line = (const char *)b->bytes + b->start;
	size_t record = r->info->parser->record_bytes;
	char what[160];

	if (record != 0) {
		r->fault = (struct bc_fault){.offset = b->offset + b->start, .bytes = record};
		snprintf(r->fault.what, sizeof(r->fault.what), "record %llu: %s; skipped",
			(unsigned long long)b->number, p->expected);
		b->start += record;
		b->number++;
		return;
	}
	const char *end = rawmemchr(line, '\n');
	bool is_torn = b->has_added && end + 1 == (const char *)b->bytes + b->end;
	snprintf(what, sizeof(what), "%s%s", p->expected,
		is_torn ? "; the file ends in this line" : "");
	set_line_fault(r, b, (size_t)(p->bad - line) + 1, what);
	b->start = (size_t)(end - (const char *)b->bytes) + 1;
	b->number++;
}

static void parse_block(struct bc_reader *r, struct block_state *b, struct bc_batch *batch)
{
	struct bc_parse p = {.at = (const char *)b->bytes + b->start,
		.end = (const char *)b->bytes + b->whole,
		.number = b->number,
		.entries = r->entries,
		.capacity = BC_READER_ENTRIES};
	enum bc_parse_end end = r->info->parser->parse(b->parser, &p);

	b->start = (size_t)(p.at - (const char *)b->bytes);
	b->number = p.number;
	batch->count = p.count;
	if (end != BC_PARSE_BAD)
		return;
	skip_malformed(r, b, &p);
	batch->fault = &r->fault;
}

static int next_block(struct bc_reader *r, struct bc_batch *batch)
{
	struct block_state *b = r->state;

	for (;;) {
		if (fill_block(r, b) != 0) {
			batch->fault = &r->fault;
			return 1;
		}
		if (b->start == b->whole)
			break;
		if (b->as_records)
			next_records(r, b, batch);
		else
			parse_block(r, b, batch);
		if (batch->count != 0 || batch->record_count != 0 || batch->fault != NULL)
			return 1;
	}
	int error = b->error;
	b->error = 0;
	if (error != -EBADMSG)
		return error;
	r->fault = (struct bc_fault){.offset = b->offset + b->end};
	snprintf(r->fault.what, sizeof(r->fault.what),
		"the compressed data is damaged or torn here; the rest cannot be read");
	batch->fault = &r->fault;
	return 1;
}

static void get_notes(const struct bc_reader *r, struct bc_parse_notes *notes)
{
	const struct block_state *b = r->state;

	if (r->info->parser->notes != NULL)
		r->info->parser->notes(b->parser, notes);
}

static const struct bc_reader_kind block_reader = {
	.open = open_blocks, .next = next_block, .notes = get_notes, .close = close_blocks};

/* ---- any */

static const struct bc_reader_kind *kind_of(enum bc_format format)
{
	switch (format) {
	case BC_FORMAT_SEGMENT:
		return &bc_chunk_reader;
	case BC_FORMAT_BCP1:
		return &frame_reader;
	default:
		return bc_format_info(format)->parser != NULL ? &block_reader : NULL;
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
