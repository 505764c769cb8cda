/* Layouts: descriptions of traces with one access per line, such as "{pc}: {type} {addr}".
 *
 *     layout      = alternative { " | " alternative }
 *     alternative = { text | blanks | field }
 *     field       = "{" name [ ":" form ] "}" | "{" ("type" | "size") "=" value "}"
 *                 | "{*}" | "{...}" | "{{}" | "{}}" | "{|}"
 *
 * docs/layouts.md describes them for users. A layout is compiled to operations, which
 * formats/codec/lines.c performs on each line. */
#ifndef BC_FORMATS_CODEC_LAYOUT_H
#define BC_FORMATS_CODEC_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/format_id.h"
#include "formats/trace/entry.h"

#define BC_LAYOUT_OPS          192u
#define BC_LAYOUT_ALTERNATIVES 16u
#define BC_LAYOUT_WORDS        64u
#define BC_LAYOUT_TYPES        8u
#define BC_LAYOUT_TEXT_MAX     128u /* less than BC_PARSE_PADDING */

/* The fields of a line. */
enum bc_layout_slot {
	BC_SLOT_ADDR,
	BC_SLOT_PC,
	BC_SLOT_DATA,
	BC_SLOT_SIZE,
	BC_SLOT_PROC,
	BC_SLOT_TIME,
	BC_SLOT_DELTA,
	BC_SLOT_TYPE,
	BC_SLOTS,
};

enum bc_layout_kind {
	BC_LAYOUT_TEXT,
	BC_LAYOUT_BLANKS,
	BC_LAYOUT_HEX,
	BC_LAYOUT_DECIMAL,
	BC_LAYOUT_FRACTION, /* decimal, maybe with a fraction */
	BC_LAYOUT_TYPE,
	BC_LAYOUT_WORD, /* {*} */
	BC_LAYOUT_ANY,  /* {...} */
	BC_LAYOUT_END,
};

/* What a line must have at a place. */
struct bc_layout_op {
	uint8_t kind;   /* enum bc_layout_kind */
	uint8_t slot;   /* of a field */
	uint8_t digits; /* BC_LAYOUT_FRACTION: after the point, in the unit of the time */
	uint8_t table;  /* BC_LAYOUT_TYPE: index of `single` */
	bool any_case;  /* the same: of the words */
	uint16_t first_word;
	uint16_t words;
	int16_t next;     /* the character that the operation after it has, if only one; or -1 */
	uint16_t bytes;   /* of `text` */
	const char *text; /* BC_LAYOUT_TEXT; of a field its name */
	uint64_t most;    /* of a number; 0: no number */
};

struct bc_layout_word {
	const char *at;
	uint16_t bytes;
	uint16_t type; /* of the reference */
};

struct bc_layout_alternative {
	uint16_t first;   /* operation; the last is BC_LAYOUT_END */
	uint16_t fields;  /* a bit for each slot that a line has or that is constant */
	bool ends_in_any; /* more may follow than is read */
	bool has_size;    /* in its lines */
	uint8_t unit;     /* of the time */
	uint32_t size;    /* constant; 0: none */
	int type;         /* constant; -1: none */
};

/* A compiled layout. It points into the text. */
struct bc_layout {
	unsigned alternatives;
	unsigned ops;
	unsigned words;
	unsigned tables;
	bool is_short; /* the first alternative is "{type} {addr}" */
	struct bc_layout_alternative alternative[BC_LAYOUT_ALTERNATIVES];
	struct bc_layout_op op[BC_LAYOUT_OPS];
	struct bc_layout_word word[BC_LAYOUT_WORDS];
	/* For each character, the index of the word that it is, plus 1, or 0. */
	uint8_t single[BC_LAYOUT_TYPES][256];
};

static inline bool bc_layout_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Returns false with an error message that names the column. The text must outlive the layout. */
bool bc_layout_compile(struct bc_layout *layout, const char *text, char *err, size_t errlen);

/* The traits that entries of a trace may have. */
bc_traits bc_layout_traits(const struct bc_layout *layout);

/* ---- named layouts */

struct bc_named_layout {
	const char *name;
	const char *layout;
	const char *sample;  /* two lines */
	const char *summary; /* what writes such lines */
};

/* The layout of din. Its parser (dinero.c) also looks at which labels occur. */
#define BC_LAYOUT_DIN                                            \
	"{type:0=read|1=write|2=fetch|3=misc|4=flush} {addr} | " \
	"{type:0=read|1=write|2=fetch|3=misc|4=flush} {addr} {...}"

/* All of them, in the order of their names; the last has no name. */
extern const struct bc_named_layout bc_named_layouts[];

/* The name of a format for messages; with a named layout, the layout's. `layout` may be NULL. */
const char *bc_layout_format_name(enum bc_format format, const char *layout);

/* The one with this name, or NULL. */
const struct bc_named_layout *bc_layout_by_name(const char *name);

#endif
