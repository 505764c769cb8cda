/* The parser of lines that a layout describes, for formats that consist of such lines. */
#ifndef BC_FORMATS_CODEC_LINES_H
#define BC_FORMATS_CODEC_LINES_H

#include "formats/codec/layout.h"
#include "formats/trace/parser.h"

struct bc_lines {
	struct bc_layout layout;
	bool has_0x;        /* a number began with 0x */
	uint32_t size;      /* of an access, if the layout has none; 0: unknown */
	uint64_t tick;      /* of the last line with {delta} */
	uint64_t words;     /* a bit for each word of the layout's types that occurred */
	uint64_t high_bits; /* bit 3 of a digit: above 9 in an address; 0: no access */
	uint64_t skipped;
	uint64_t unread;
	uint64_t long_data;
	char expected[120];
};

/* Starts with a layout. `state` is zeroed. */
void bc_lines_init(struct bc_lines *state, const char *layout, uint32_t size);

/* The functions of a parser. */
enum bc_parse_end bc_lines_parse(void *state, struct bc_parse *parse);
void bc_lines_notes(const void *state, struct bc_parse_notes *notes);

#endif
