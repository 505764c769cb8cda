/* Parser interface: how a format's module turns bytes into entries for formats/codec/reader.h.
 *
 * A parser receives whole lines, or whole records of a binary format, and converts as many to
 * entries as fit. The reader does the rest: it splits the input, keeps incomplete lines for the
 * next block, reports malformed lines and skips them.
 *
 * At least BC_PARSE_PADDING bytes are readable after the last newline of a block, so a parser may
 * load several bytes at once. Every line ends in '\n', so a loop over digits needs no other end
 * condition. formats/base/fast_text.h has such loops. */
#ifndef BC_FORMATS_TRACE_PARSER_H
#define BC_FORMATS_TRACE_PARSER_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "formats/base/format_id.h"
#include "formats/trace/entry.h"

#define BC_PARSE_PADDING 160

/* Maximum length of a line, including its newline. */
#define BC_LINE_MAX (16u << 10)

/* Maximum number of entries that one line or record may become. */
#define BC_LINE_ENTRIES 64

/* The block being parsed. parse() advances `at`, `number` and `count`. */
struct bc_parse {
	const char *at;           /* the next line or record */
	const char *end;          /* end of the last whole one */
	uint64_t number;          /* of the line (from 1) or record (from 0) at `at` */
	struct bc_entry *entries; /* entries [count, capacity) are free */
	size_t count;
	size_t capacity;
	/* For a malformed line: where the error is, and what is wrong, as a phrase such as
	 * "expected a hexadecimal address". */
	const char *bad;
	const char *expected;
};

enum bc_parse_end {
	BC_PARSE_DONE, /* the block is used up */
	BC_PARSE_FULL, /* fewer than BC_LINE_ENTRIES of the entries are free */
	BC_PARSE_BAD,  /* the line at `at` is malformed: `bad` and `expected` are set */
};

/* What a parser left out or decided, for a report at the end of the file. */
#define BC_NOTES_NAMES      8
#define BC_NOTES_NAME_BYTES 56 /* of a longer one, the end */
struct bc_parse_notes {
	uint64_t skipped;   /* lines that belong to the format, but are no entries */
	uint64_t unread;    /* lines with more than was read */
	uint64_t long_data; /* accesses with more than 8 bytes of data, which are left out */
	uint64_t ignored;   /* csv, ndjson: values that no entry has */
	uint64_t open_line; /* csv: a quoted text that begins in this line has no end; 0: none */
	bool lacks_hex;     /* no address of a layout has a digit above 9 */
	bool lacks_writes;  /* din: label 3 (miscellaneous) occurred, and 1 (write) didn't */
	/* Of a state capture: accesses left out because their address or type is x or z (or the
	 * table of types lacks it), and changes within `setup` that were too many. */
	uint64_t unknown_addresses;
	uint64_t unknown_types;
	uint64_t too_many;
	/* Of one that must be described: lines with its signals, and how to begin. The parser's. */
	const char *signals;
	uint64_t unnumbered; /* lines with a processor's name for which there was no number */
	/* Processors whose number is not in their name, and the first of them. */
	unsigned names;
	struct {
		uint16_t proc;
		char name[BC_NOTES_NAME_BYTES];
	} named[BC_NOTES_NAMES];
};

struct bc_parser {
	size_t record_bytes; /* size of a record; 0: the format consists of lines */
	size_t state_bytes;
	/* Initializes a zeroed state for a new file; NULL if zeroes are enough. */
	void (*init)(void *state, const struct bc_format_options *options);
	/* For a format that the user describes: checks options.layout. Returns false with an error
	 * message. NULL: the format takes no layout. */
	bool (*check)(const char *layout, char *err, size_t errlen);
	/* What entries may have, and if they have a time of day, by the first whole lines of a
	 * file, before they are parsed. NULL: what the format may have. */
	bc_traits (*traits)(void *state, const char *at, const char *end, bool *has_wall);
	bool reads_head; /* traits() needs these lines */
	/* Parses until one of the conditions of enum bc_parse_end. Each format defines whether
	 * blank lines are allowed. A '\r' before the newline is white space. */
	enum bc_parse_end (*parse)(void *state, struct bc_parse *parse);
	/* Passes over the next n records, well formed and not the first. NULL: not possible. */
	void (*skip)(void *state, const uint8_t *records, size_t n);
	/* For detection: whether a line that became entries, the first of which is `entry`, has
	 * what lines of other texts lack. NULL: every line that can be parsed has it. A format
	 * whose lines never have it is only read if it is given. */
	bool (*is_typical)(const char *line, const struct bc_entry *entry);
	/* Fills in zeroed notes about the lines so far; NULL: there are never any. */
	void (*notes)(const void *state, struct bc_parse_notes *notes);
	/* For detection: the second word of a line is its address, hexadecimal without a mark, and
	 * little else is on the line. A list of decimal numbers looks the same. */
	bool has_bare_hex;
	bool is_ordered; /* for detection: times never decrease */
};

/* Allocates and initializes a state for a new file, for free(). Returns NULL if out of memory. */
static inline void *bc_parser_start(
	const struct bc_parser *parser, const struct bc_format_options *options)
{
	void *state = calloc(1, parser->state_bytes + 1);

	if (state != NULL && parser->init != NULL)
		parser->init(state, options);
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
	return parse->capacity - parse->count >= BC_LINE_ENTRIES;
}

#endif
