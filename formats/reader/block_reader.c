/* Lines, or records of a binary format: whole ones are handed to the format's parser, what is
 * unfinished at a block's end is carried to the next. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/bytes.h"
#include "formats/bus/dialect.h"
#include "formats/reader/reader_kind.h"
#include "formats/trace/parser.h"

#define BLOCK_BYTES (256u << 10)

_Static_assert(BLOCK_BYTES >= 2 * BC_LINE_MAX, "a block holds the longest line and more");
_Static_assert(BC_READER_ENTRIES >= 2 * BC_LINE_ENTRIES, "a batch holds the longest line's");

struct block_state {
	uint64_t offset; /* of bytes[0] in the input */
	size_t start;    /* parsed up to here, */
	size_t whole;    /* whole lines or records up to here, */
	size_t end;      /* bytes read up to here */
	uint64_t number; /* of the line or record at `start` */
	uint64_t tick;   /* as_records: of the record before `start` */
	bool is_over;    /* the input has no more, or no more that can be read */
	bool is_long;    /* in a line that is too long, up to its newline */
	bool has_added;  /* the last line lacked its newline */
	bool as_records;
	int error;        /* told once all before it is: -EBADMSG, or what reading failed with */
	void *parser;     /* its state */
	uint8_t *records; /* as_records of another dialect: room for a block's */
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
	size_t bytes = bc_dialect_bytes(r->format); /* 0: it is no BYU */
	b->as_records = r->options.as_records && bytes != 0 &&
			(bytes == BC_RECORD_BYTES || !r->options.wide_as_entries);
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

static void tell_line(
	struct bc_reader *r, const struct block_state *b, size_t column, const char *what)
{
	r->fault = (struct bc_fault){.line = b->number, .column = (uint32_t)column};
	snprintf(r->fault.what, sizeof(r->fault.what), "%s", what);
}

/* Whether the line at `start` is longer than lines may be. */
static bool has_long_line(const struct bc_reader *r, const struct block_state *b)
{
	return b->end - b->start >= BC_LINE_MAX && r->info->parser->record_bytes == 0 &&
	       memchr(b->bytes + b->start, '\n', BC_LINE_MAX) == NULL;
}

/* A line that is too long: passes over what is there of it. Returns true when that is to be told.
 */
static bool pass_long_line(struct bc_reader *r, struct block_state *b)
{
	bool is_new = !b->is_long;
	const uint8_t *newline = memchr(b->bytes + b->start, '\n', b->end - b->start);
	char what[64];

	snprintf(what, sizeof(what), "the line is longer than %u bytes; it is left out",
		BC_LINE_MAX - 1);
	if (is_new)
		tell_line(r, b, BC_LINE_MAX, what);
	b->is_long = newline == NULL;
	b->start = newline != NULL ? (size_t)(newline - b->bytes) + 1 : b->end;
	b->whole = b->start;
	b->number += newline != NULL;
	return is_new;
}

/* What the input ends in that is no whole line or record. Returns true for a fault. */
static bool end_blocks(struct bc_reader *r, struct block_state *b)
{
	size_t record = r->info->parser->record_bytes;
	size_t rest = b->end - b->start;

	if (rest == 0)
		return false;
	if (record == 0 && b->error != 0) {
		/* It may be the beginning of another line than it looks like. */
		tell_line(r, b, rest + 1, "the line is cut off; it is left out");
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
		"torn: %zu byte%s left over behind %llu whole %s%s", rest,
		rest == 1 ? " is" : "s are", (unsigned long long)b->number,
		r->format == BC_FORMAT_RAW6 ? "sample" : "record", b->number == 1 ? "" : "s");
	b->start = b->whole = b->end;
	return true;
}

/* Finds the end of what is whole among the bytes read, or the first line that is too long: by hops
 * from the last newline of as many bytes as a line may have to that of the next. */
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

/* Reads on until there is something whole, or nothing more. Returns 1 for a fault, else 0. */
static int fill(struct bc_reader *r, struct block_state *b)
{
	while (b->start == b->whole) {
		if ((b->is_long || has_long_line(r, b)) && pass_long_line(r, b))
			return 1;
		find_whole(r, b);
		if (b->start != b->whole || (!b->is_long && has_long_line(r, b)))
			continue;
		if (b->is_over)
			return end_blocks(r, b);
		memmove(b->bytes, b->bytes + b->start, b->end - b->start);
		b->offset += b->start;
		b->end -= b->start;
		b->start = b->whole = 0;
		/* One byte stays free, for the newline that the last line may lack. */
		ssize_t n = bc_input_read(r->input, b->bytes + b->end, BLOCK_BYTES - 1 - b->end);
		b->is_over = n <= 0;
		b->error = n < 0 ? (int)n : 0;
		b->end += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* BYU as it stands, without entries. */
static void take_records(struct bc_reader *r, struct block_state *b, struct bc_batch *batch)
{
	size_t bytes = bc_dialect_bytes(r->format);
	const uint8_t *in = b->bytes + b->start;
	size_t n = (b->whole - b->start) / bytes;

	batch->first_number = b->number;
	batch->tick = b->tick;
	batch->records = in;
	if (b->records != NULL) {
		n = bc_dialect_read(b->records, in, n, r->format);
		batch->records = b->records;
	}
	batch->record_count = n;
	b->tick = bc_records_ticks(batch->records, n, b->tick);
	b->number += n;
	b->start += n * bytes;
	if (n != 0)
		return;
	r->fault = (struct bc_fault){.offset = b->offset + b->start, .bytes = bytes};
	snprintf(r->fault.what, sizeof(r->fault.what),
		"record %llu has an address or a time of more than 32 bits; it is left out",
		(unsigned long long)b->number);
	batch->fault = &r->fault;
	b->number++;
	b->start += bytes;
}

/* A malformed line or record, told and passed. */
static void pass_bad(struct bc_reader *r, struct block_state *b, const struct bc_parse *p)
{
	const char *line = (const char *)b->bytes + b->start;
	size_t record = r->info->parser->record_bytes;
	char what[160];

	if (record != 0) {
		r->fault = (struct bc_fault){.offset = b->offset + b->start, .bytes = record};
		snprintf(r->fault.what, sizeof(r->fault.what), "record %llu: %s; it is left out",
			(unsigned long long)b->number, p->expected);
		b->start += record;
		b->number++;
		return;
	}
	const char *end = rawmemchr(line, '\n');
	bool is_torn = b->has_added && end + 1 == (const char *)b->bytes + b->end;
	snprintf(what, sizeof(what), "%s%s", p->expected,
		is_torn ? "; the file ends in this line" : "");
	tell_line(r, b, (size_t)(p->bad - line) + 1, what);
	b->start = (size_t)(end - (const char *)b->bytes) + 1;
	b->number++;
}

static void parse(struct bc_reader *r, struct block_state *b, struct bc_batch *batch)
{
	struct bc_parse p = {.at = (const char *)b->bytes + b->start,
		.end = (const char *)b->bytes + b->whole,
		.number = b->number,
		.entries = r->entries,
		.room = BC_READER_ENTRIES};
	enum bc_parse_end end = r->info->parser->parse(b->parser, &p);

	b->start = (size_t)(p.at - (const char *)b->bytes);
	b->number = p.number;
	batch->count = p.count;
	if (end != BC_PARSE_BAD)
		return;
	pass_bad(r, b, &p);
	batch->fault = &r->fault;
}

static int next_block(struct bc_reader *r, struct bc_batch *batch)
{
	struct block_state *b = r->state;

	for (;;) {
		if (fill(r, b) != 0) {
			batch->fault = &r->fault;
			return 1;
		}
		if (b->start == b->whole)
			break;
		if (b->as_records)
			take_records(r, b, batch);
		else
			parse(r, b, batch);
		if (batch->count != 0 || batch->record_count != 0 || batch->fault != NULL)
			return 1;
	}
	int error = b->error;
	b->error = 0;
	if (error != -EBADMSG)
		return error;
	r->fault = (struct bc_fault){.offset = b->offset + b->end};
	snprintf(r->fault.what, sizeof(r->fault.what),
		"what it is compressed in is damaged or torn here; nothing behind it can be read");
	batch->fault = &r->fault;
	return 1;
}

const struct bc_reader_kind bc_block_reader = {
	.open = open_blocks, .next = next_block, .close = close_blocks};
