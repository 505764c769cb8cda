/* Parses lines of Tarmac, for tests. */
#ifndef BC_TESTS_SUPPORT_TARMAC_LINES_H
#define BC_TESTS_SUPPORT_TARMAC_LINES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/codec/codecs.h"
#include "tests/support/test.h"

/* The result of parsing. Texts of the entries point into `bytes`. */
struct lines {
	char *bytes;
	size_t n;
	struct bc_entry *entries;
	size_t count;
	enum bc_parse_end end;
	size_t column; /* of the fault, from 1 */
	uint64_t number;
	const char *expected;
};

/* Parses a text that ends with a newline, up to the first malformed line, `capacity` entries at a
 * time. The buffer ends where a parser may read no further. */
static inline struct lines lines_read(const char *text, size_t n, size_t capacity)
{
	struct lines l = {.bytes = malloc(n + BC_PARSE_PADDING), .n = n};
	struct bc_entry *entries = malloc(capacity * sizeof(*entries));
	void *state = malloc(bc_tarmac_parser.state_bytes);
	struct bc_format_options options = bc_format_options_default();

	assert_non_null(l.bytes);
	assert_non_null(entries);
	assert_non_null(state);
	memcpy(l.bytes, text, n);
	memset(l.bytes + n, 0xA5, BC_PARSE_PADDING);
	bc_tarmac_parser.init(state, &options);
	struct bc_parse p = {.at = l.bytes, .end = l.bytes + n, .number = 1, .capacity = capacity};
	do {
		p.entries = entries;
		p.count = 0;
		l.end = bc_tarmac_parser.parse(state, &p);
		l.entries = realloc(l.entries, (l.count + p.count + 1) * sizeof(*l.entries));
		assert_non_null(l.entries);
		memcpy(l.entries + l.count, entries, p.count * sizeof(*entries));
		l.count += p.count;
		assert_true(l.end != BC_PARSE_FULL || capacity - p.count < BC_LINE_ENTRIES);
	} while (l.end == BC_PARSE_FULL);
	l.number = p.number;
	if (l.end == BC_PARSE_BAD) {
		l.column = (size_t)(p.bad - p.at) + 1;
		l.expected = p.expected;
		assert_true(p.bad >= p.at && p.bad < l.bytes + n);
	} else {
		assert_ptr_equal(p.at, p.end);
	}
	free(entries);
	free(state);
	return l;
}

static inline struct lines line_read(const char *line)
{
	char text[4096];
	int n = snprintf(text, sizeof(text), "%s\n", line);

	assert_true(n > 0 && (size_t)n < sizeof(text));
	return lines_read(text, (size_t)n, BC_LINE_ENTRIES);
}

static inline void lines_free(struct lines *l)
{
	free(l->bytes);
	free(l->entries);
}

static inline void check_text(const struct lines *l, const struct bc_text *text)
{
	assert_true(text->bytes == 0 ||
		    (text->at >= l->bytes && text->at + text->bytes <= l->bytes + l->n));
	assert_true(text->bytes == 0 || memchr(text->at, '\n', text->bytes) == NULL);
}

/* Checks that each complete line belongs to exactly one entry, the first of its line. */
static inline void lines_check(const struct lines *l)
{
	const char *at = l->bytes;
	uint64_t number = 0;

	for (size_t i = 0; i < l->count; i++) {
		const struct bc_entry *e = &l->entries[i];
		assert_true(e->is_continued == (e->number == number));
		if (!e->is_continued) {
			const char *end = memchr(at, '\n', l->n - (size_t)(at - l->bytes));
			assert_non_null(end);
			assert_true(e->number == number + 1);
			assert_ptr_equal(e->line.at, at);
			assert_int_equal(e->line.bytes, end - at);
			at = end + 1;
		} else {
			assert_int_equal(e->line.bytes, 0);
		}
		number = e->number;
		if (e->kind == BC_ENTRY_INSTRUCTION) {
			check_text(l, &e->instruction.set);
			check_text(l, &e->instruction.mode);
			check_text(l, &e->instruction.disassembly);
		} else if (e->kind == BC_ENTRY_REGISTER) {
			check_text(l, &e->reg.name);
			check_text(l, &e->reg.value);
		}
	}
	if (l->end == BC_PARSE_DONE)
		assert_ptr_equal(at, l->bytes + l->n);
}

#endif
