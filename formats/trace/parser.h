/* How one format's bytes become entries: what its module gives to formats/reader/reader.h.
 *
 * A parser sees whole lines, or whole records of a binary format, and turns as many of them into
 * entries as there is room for. The reader does the rest: it cuts the input up, carries what is
 * unfinished over, and passes over what is malformed after it was told.
 *
 * Behind the last newline of a block at least BC_PARSE_PADDING bytes can be read, so that a parser
 * may load several at once; and as every line ends in '\n', a loop over digits needs no other end.
 * formats/base/fast_parse.h has such loops. */
#ifndef BC_FORMATS_TRACE_PARSER_H
#define BC_FORMATS_TRACE_PARSER_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "formats/base/options.h"
#include "formats/trace/entry.h"

#define BC_PARSE_PADDING 160

/* A line is at most so long, its newline included. */
#define BC_LINE_MAX (16u << 10)

/* The most entries that one line or record may become. */
#define BC_LINE_ENTRIES 64

/* A block on its way. */
struct bc_parse {
	const char *at;           /* the first line or record not parsed yet; moved on */
	const char *end;          /* behind the last whole one */
	uint64_t number;          /* of the line (from 1) or record (from 0) at `at`; moved on */
	struct bc_entry *entries; /* [count, room) are free */
	size_t count;
	size_t room;
	/* A malformed line: where in it, and a phrase that says what stands wrong there or what was
	 * expected: "a hexadecimal address is expected". */
	const char *bad;
	const char *expected;
};

enum bc_parse_end {
	BC_PARSE_DONE, /* the block is used up */
	BC_PARSE_FULL, /* fewer than BC_LINE_ENTRIES of the entries are free */
	BC_PARSE_BAD,  /* the line at `at` is malformed: `bad` and `expected` are set */
};

struct bc_parser {
	size_t record_bytes; /* of a binary format's record; 0: it is lines */
	size_t state_bytes;
	/* Sets up a state, all zero, for a new file; NULL: zero will do. */
	void (*begin)(void *state, const struct bc_format_options *options);
	/* Goes on until one of the ends. A blank line is never malformed by itself: each format
	 * says what it is. A '\r' before the newline is white space. */
	enum bc_parse_end (*parse)(void *state, struct bc_parse *parse);
};

/* Allocates and sets up a state for a new file. Free it with free(). NULL: out of memory. */
static inline void *bc_parser_start(
	const struct bc_parser *parser, const struct bc_format_options *options)
{
	void *state = calloc(1, parser->state_bytes + 1);

	if (state != NULL && parser->begin != NULL)
		parser->begin(state, options);
	return state;
}

static inline enum bc_parse_end bc_parse_bad(
	struct bc_parse *parse, const char *bad, const char *expected)
{
	parse->bad = bad;
	parse->expected = expected;
	return BC_PARSE_BAD;
}

static inline bool bc_parse_has_room(const struct bc_parse *parse)
{
	return parse->room - parse->count >= BC_LINE_ENTRIES;
}

#endif
