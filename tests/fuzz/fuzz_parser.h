/* Shared by the fuzz targets of the parsers: feeds a parser in blocks, as the reader does. The
 * first byte selects the options and the size of the blocks. The parser must make progress and stay
 * within its block, and texts must point into it, but for the parsers that copy them. The printed
 * entries must parse as the same entries: printing them again must give the same bytes. */
#ifndef BC_TESTS_FUZZ_FUZZ_PARSER_H
#define BC_TESTS_FUZZ_FUZZ_PARSER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/codec/format.h"
#include "formats/trace/parser.h"
#include "formats/trace/printer.h"

#define FUZZ_CHECK(condition) ((condition) ? (void)0 : abort())

/* Size of the buffer for entries. */
#define FUZZ_ENTRIES (2 * BC_LINE_ENTRIES)

struct fuzz_printing {
	const struct bc_printer *printer;
	void *state;
	char *text;
	size_t bytes;
	size_t capacity;
	uint64_t trait_losses[BC_TRAIT_BITS];
	bool is_refused; /* an entry does not fit a line or record */
};

static inline void fuzz_print_head(struct fuzz_printing *printing)
{
	struct bc_print p = {.capacity = BC_PRINT_MAX};

	printing->capacity = BC_PRINT_MAX;
	p.out = printing->text = malloc(BC_PRINT_MAX);
	FUZZ_CHECK(p.out != NULL);
	printing->printer->head(printing->state, &p);
	printing->bytes = p.used;
}

static inline void fuzz_print(
	struct fuzz_printing *printing, const struct bc_entry *entries, size_t count)
{
	struct bc_print p = {.entries = entries,
		.count = count,
		.used = printing->bytes,
		.trait_losses = printing->trait_losses};

	while (p.count != 0) {
		size_t before = p.count;
		if (printing->capacity - p.used < BC_PRINT_MAX) {
			printing->capacity = 2 * printing->capacity + BC_PRINT_MAX;
			printing->text = realloc(printing->text, printing->capacity);
			FUZZ_CHECK(printing->text != NULL);
		}
		p.out = printing->text;
		p.capacity = p.used + BC_PRINT_MAX;
		int rc = printing->printer->print(printing->state, &p);
		FUZZ_CHECK(p.used <= p.capacity);
		if (rc != 0) {
			FUZZ_CHECK(p.err[0] != '\0');
			printing->is_refused = true;
			break;
		}
		FUZZ_CHECK(p.count < before);
	}
	printing->bytes = p.used;
}

static inline void fuzz_check_text(struct bc_text text, const char *begin, const char *end)
{
	if (text.bytes == 0 || begin == NULL)
		return;
	FUZZ_CHECK(text.at >= begin && text.at + text.bytes <= end);
	FUZZ_CHECK(memchr(text.at, '\n', text.bytes) == NULL);
}

static inline void fuzz_check_entry(const struct bc_entry *e, const char *begin, const char *end)
{
	FUZZ_CHECK(e->kind < BC_ENTRY_KINDS);
	fuzz_check_text(e->line, begin, end);
	switch (e->kind) {
	case BC_ENTRY_REFERENCE:
		FUZZ_CHECK(e->type < BC_REF_TYPES);
		break;
	case BC_ENTRY_UOP:
		fuzz_check_text(e->uop.macro, begin, end);
		fuzz_check_text(e->uop.micro, begin, end);
		break;
	case BC_ENTRY_INSTRUCTION:
		fuzz_check_text(e->instruction.set, begin, end);
		fuzz_check_text(e->instruction.mode, begin, end);
		fuzz_check_text(e->instruction.disassembly, begin, end);
		break;
	case BC_ENTRY_REGISTER:
		fuzz_check_text(e->reg.name, begin, end);
		fuzz_check_text(e->reg.value, begin, end);
		break;
	case BC_ENTRY_KERNEL:
		fuzz_check_text(e->kernel.tag, begin, end);
		fuzz_check_text(e->kernel.rest, begin, end);
		break;
	default:
		break;
	}
}

/* Parses a block of whole lines or records, in an allocation of exactly its size plus padding.
 * Returns the number of malformed ones. */
static inline size_t fuzz_block(const struct bc_parser *parser, void *state, const uint8_t *data,
	size_t size, uint64_t *number, struct fuzz_printing *printing)
{
	static struct bc_entry entries[FUZZ_ENTRIES];
	char *block = malloc(size + BC_PARSE_PADDING);
	struct bc_parse p = {.at = block, .end = block + size, .number = *number};
	bool is_over = false;
	size_t bad = 0;

	FUZZ_CHECK(block != NULL);
	memcpy(block, data, size);
	/* The padding looks like more of the same lines. */
	for (size_t i = 0; i < BC_PARSE_PADDING; i++)
		block[size + i] = (char)data[i % size];
	while (!is_over) {
		const char *before = p.at;
		p.entries = entries;
		p.count = 0;
		p.capacity = FUZZ_ENTRIES;
		enum bc_parse_end end = parser->parse(state, &p);
		FUZZ_CHECK(p.count <= p.capacity && p.at >= before && p.at <= p.end);
		for (size_t i = 0; i < p.count; i++)
			fuzz_check_entry(&entries[i], parser->traits == NULL ? block : NULL, p.end);
		if (printing != NULL && !printing->is_refused)
			fuzz_print(printing, entries, p.count);
		is_over = end == BC_PARSE_DONE;
		FUZZ_CHECK(!is_over || p.at == p.end);
		if (end == BC_PARSE_FULL)
			FUZZ_CHECK(p.count != 0);
		if (end != BC_PARSE_BAD)
			continue;
		const char *next = p.at + parser->record_bytes;
		if (parser->record_bytes == 0)
			next = (const char *)memchr(p.at, '\n', (size_t)(p.end - p.at)) + 1;
		FUZZ_CHECK(p.at < p.end && p.bad >= p.at && p.bad < next && p.expected != NULL);
		p.at = next;
		p.number++;
		bad++;
	}
	*number = p.number;
	free(block);
	return bad;
}

/* Parses the data in blocks of at least `step` bytes. Returns the number of malformed lines. */
static inline size_t fuzz_parse(const struct bc_parser *parser,
	const struct bc_format_options *options, const uint8_t *data, size_t size, size_t step,
	struct fuzz_printing *printing)
{
	size_t record = parser->record_bytes;
	uint64_t number = record == 0;
	void *state = bc_parser_start(parser, options);
	size_t bad = 0;

	FUZZ_CHECK(state != NULL);
	const uint8_t *last = parser->traits != NULL ? memrchr(data, '\n', size) : NULL;
	if (last != NULL) {
		bool has_wall;
		(void)parser->traits(state, (const char *)data, (const char *)last + 1, &has_wall);
	}
	for (size_t at = 0; at < size;) {
		size_t n = size - at < step ? size - at : step;
		if (record != 0) {
			n = (n + record - 1) / record * record;
			if (n > size - at)
				break; /* torn: left to the reader */
		} else {
			const uint8_t *newline = memchr(data + at + n - 1, '\n', size - at - n + 1);
			if (newline == NULL)
				break;
			n = (size_t)(newline - (data + at)) + 1;
		}
		bad += fuzz_block(parser, state, data + at, n, &number, printing);
		at += n;
	}
	free(state);
	return bad;
}

static inline int fuzz_format(enum bc_format format, const uint8_t *data, size_t size)
{
	const struct bc_format_info *info = bc_format_info(format);
	struct bc_format_options options = bc_format_options_default();
	struct fuzz_printing printing[2] = {{.printer = info->printer}, {.printer = info->printer}};
	static const size_t steps[] = {1, 17, 300, SIZE_MAX};

	if (size == 0)
		return 0;
	options.is_big_endian = (data[0] & 4) != 0;
	options.size = (data[0] & 8) != 0 ? 4 : 0;
	options.source_traits = info->traits;
	size_t step = steps[data[0] & 3];
	if (info->printer == NULL) {
		fuzz_parse(info->parser, &options, data + 1, size - 1, step, NULL);
		return 0;
	}
	for (int i = 0; i < 2; i++) {
		struct fuzz_printing *to = &printing[i];
		const struct fuzz_printing *from = &printing[0];
		to->state = bc_printer_start(info->printer, &options);
		FUZZ_CHECK(to->state != NULL);
		if (info->printer->head != NULL)
			fuzz_print_head(to);
		if (i == 0)
			fuzz_parse(info->parser, &options, data + 1, size - 1, step, to);
		else if (from->bytes != 0)
			FUZZ_CHECK(fuzz_parse(info->parser, &options, (const uint8_t *)from->text,
					   from->bytes, step, to) == 0);
		if (info->printer->free != NULL)
			info->printer->free(to->state);
	}
	FUZZ_CHECK(printing[0].bytes == printing[1].bytes);
	if (printing[0].bytes != 0)
		FUZZ_CHECK(memcmp(printing[0].text, printing[1].text, printing[0].bytes) == 0);
	for (int i = 0; i < 2; i++) {
		free(printing[i].state);
		free(printing[i].text);
	}
	return 0;
}

/* Defines a whole fuzz target. */
#define FUZZ_FORMAT(format)                                           \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size); \
	int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)  \
	{                                                             \
		return fuzz_format(format, data, size);               \
	}

#endif
