/* Runs a format's parser and printer on text or records in memory. */
#ifndef BC_TESTS_SUPPORT_FORMATTED_H
#define BC_TESTS_SUPPORT_FORMATTED_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/codec/format.h"
#include "formats/trace/parser.h"
#include "formats/trace/printer.h"
#include "tests/support/test.h"

#define FORMATTED_ENTRIES 4096u
#define FORMATTED_FAULTS  64u

struct formatted_fault {
	uint64_t number; /* of the line or record */
	size_t column;   /* from 1 */
	char expected[160];
};

/* The result of a parser. */
struct parsed {
	struct bc_entry *entries;
	size_t count;
	struct formatted_fault faults[FORMATTED_FAULTS];
	size_t fault_count;
	char *block; /* texts of the entries point into it */
};

static inline struct bc_format_options formatted_options(
	enum bc_format format, const char *text, bool is_read)
{
	struct bc_format_options options = bc_format_options_default();
	const struct bc_format_info *info = bc_format_info(format);
	char err[160];

	if (*text != '\0')
		assert_true(bc_format_options_read(&options, text,
			is_read ? info->read_options : info->write_options, err, sizeof(err)));
	return options;
}

/* Parses bytes that are complete lines or records, with the minimum space for entries per call.
 * Faults are stored and skipped. */
static inline struct parsed parse_bytes(
	enum bc_format format, const char *options_text, const void *bytes, size_t n)
{
	const struct bc_parser *parser = bc_format_info(format)->parser;
	struct bc_format_options options = formatted_options(format, options_text, true);
	struct parsed parsed = {
		.entries = calloc(FORMATTED_ENTRIES + BC_LINE_ENTRIES, sizeof(*parsed.entries)),
		.block = malloc(n + BC_PARSE_PADDING)};
	void *state = bc_parser_start(parser, &options);
	bool is_over = false;

	assert_non_null(parsed.entries);
	assert_non_null(parsed.block);
	assert_non_null(state);
	memcpy(parsed.block, bytes, n);
	/* The bytes after the block look like more of the line. */
	for (size_t i = 0; i < BC_PARSE_PADDING; i++)
		parsed.block[n + i] = ((const char *)bytes)[i % n];
	struct bc_parse p = {
		.at = parsed.block, .end = parsed.block + n, .number = parser->record_bytes == 0};
	while (!is_over) {
		const char *before = p.at;
		p.entries = parsed.entries + parsed.count;
		p.count = 0;
		p.capacity = BC_LINE_ENTRIES;
		assert_true(parsed.count < FORMATTED_ENTRIES);
		enum bc_parse_end end = parser->parse(state, &p);
		parsed.count += p.count;
		if (end == BC_PARSE_BAD) {
			assert_true(parsed.fault_count < FORMATTED_FAULTS);
			assert_true(p.bad >= p.at && p.bad < p.end);
			struct formatted_fault *fault = &parsed.faults[parsed.fault_count++];
			fault->number = p.number;
			fault->column = (size_t)(p.bad - p.at) + 1;
			snprintf(fault->expected, sizeof(fault->expected), "%s", p.expected);
			p.at = parser->record_bytes != 0 ? p.at + parser->record_bytes
							 : strchr(p.at, '\n') + 1;
			p.number++;
		}
		is_over = end == BC_PARSE_DONE;
		assert_true(is_over || p.at > before);
	}
	assert_ptr_equal(p.at, p.end);
	free(state);
	return parsed;
}

static inline struct parsed parse_text(enum bc_format format, const char *options, const char *text)
{
	return parse_bytes(format, options, text, strlen(text));
}

static inline void parsed_free(struct parsed *parsed)
{
	free(parsed->entries);
	free(parsed->block);
}

/* The result of a printer. Free `text`. */
struct printed {
	char *text; /* null-terminated */
	size_t bytes;
	int rc;
	size_t left; /* entries that were not printed */
	char err[160];
};

static inline struct printed print_entries(enum bc_format format, const char *options_text,
	const struct bc_entry *entries, size_t count)
{
	const struct bc_printer *printer = bc_format_info(format)->printer;
	struct bc_format_options options = formatted_options(format, options_text, false);
	struct printed printed = {0};
	void *state = bc_printer_start(printer, &options);
	uint64_t trait_losses[BC_TRAIT_BITS] = {0};
	struct bc_print p = {.entries = entries, .count = count, .trait_losses = trait_losses};

	assert_non_null(state);
	while (p.count != 0 && printed.rc == 0) {
		size_t before = p.count;
		/* Space for little more than one entry, so that there are many calls. */
		p.capacity = p.used + BC_PRINT_MAX + 100;
		printed.text = p.out = realloc(printed.text, p.capacity + 1);
		assert_non_null(p.out);
		printed.rc = printer->print(state, &p);
		assert_true(p.used <= p.capacity);
		assert_true(printed.rc != 0 || p.count < before);
	}
	if (printed.text == NULL)
		printed.text = malloc(1);
	printed.text[p.used] = '\0';
	printed.bytes = p.used;
	printed.left = p.count;
	memcpy(printed.err, p.err, sizeof(p.err));
	free(state);
	return printed;
}

/* Checks that `in` is parsed without faults and printed as `out`. */
static inline void assert_reprints(enum bc_format format, const char *in, const char *out)
{
	struct parsed parsed = parse_text(format, "", in);

	if (parsed.fault_count != 0)
		print_error("%s%s\n", in, parsed.faults[0].expected);
	assert_int_equal(parsed.fault_count, 0);
	struct printed printed = print_entries(format, "", parsed.entries, parsed.count);
	assert_int_equal(printed.rc, 0);
	assert_string_equal(printed.text, out);
	free(printed.text);
	parsed_free(&parsed);
}

/* Checks that `line` has a fault at `column` whose text contains `words`, and that the valid line
 * after it is still parsed. */
static inline void assert_malformed(enum bc_format format, const char *line, size_t column,
	const char *words, const char *good_line)
{
	char text[2 * BC_LINE_MAX];

	snprintf(text, sizeof(text), "%s\n%s\n", line, good_line);
	struct parsed parsed = parse_text(format, "", text);
	if (parsed.fault_count != 1 || parsed.faults[0].column != column ||
		strstr(parsed.faults[0].expected, words) == NULL)
		print_error("\"%s\": %zu faults, column %zu, \"%s\"\n", line, parsed.fault_count,
			parsed.faults[0].column,
			parsed.fault_count != 0 ? parsed.faults[0].expected : "");
	assert_int_equal(parsed.fault_count, 1);
	assert_int_equal(parsed.faults[0].number, 1);
	assert_int_equal(parsed.faults[0].column, column);
	assert_non_null(strstr(parsed.faults[0].expected, words));
	assert_int_equal(parsed.count, 1);
	assert_true(parsed.entries[0].number == 2);
	parsed_free(&parsed);
}

/* Checks that a printer refuses the entry and that the error text contains `words`. */
static inline void assert_refused(
	enum bc_format format, const char *options, const struct bc_entry *entry, const char *words)
{
	struct printed printed = print_entries(format, options, entry, 1);

	assert_int_equal(printed.rc, -34); /* ERANGE */
	assert_int_equal(printed.left, 1);
	assert_int_equal(printed.bytes, 0);
	if (strstr(printed.err, words) == NULL)
		print_error("\"%s\" lacks \"%s\"\n", printed.err, words);
	assert_non_null(strstr(printed.err, words));
	free(printed.text);
}

/* Edge cases of 64-bit numbers. */
static const uint64_t formatted_edges[] = {0, 1, 9, 10, 15, 16, 0xFF, 0x100, UINT32_MAX,
	(uint64_t)UINT32_MAX + 1, UINT64_C(1) << 60, INT64_MAX, (uint64_t)INT64_MAX + 1,
	UINT64_MAX - 1, UINT64_MAX};

#define FORMATTED_EDGES (COUNT_OF(formatted_edges))

static inline bool bc_text_is(struct bc_text text, const char *expected)
{
	return text.bytes == strlen(expected) && memcmp(text.at, expected, text.bytes) == 0;
}

#endif
