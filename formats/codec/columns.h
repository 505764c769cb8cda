/* Entries as rows of a table: the columns of csv (formats/codec/csv.c) and, under the same names,
 * the keys of ndjson (formats/codec/ndjson.c).
 *
 * The columns depend on what a trace may hold, not on what it actually contains, so they are known
 * before the first entry is read. A cell is empty if the entry lacks the field. docs/formats.md
 * describes the columns. */
#ifndef BC_FORMATS_CODEC_COLUMNS_H
#define BC_FORMATS_CODEC_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

#include "formats/base/fast_text.h"
#include "formats/trace/entry.h"
#include "formats/trace/printer.h"

/* In output order. */
enum bc_column {
	BC_COLUMN_KIND, /* only if there are several kinds */
	BC_COLUMN_NUMBER,
	BC_COLUMN_TICK,
	BC_COLUMN_UNIT,
	BC_COLUMN_EPOCH,
	BC_COLUMN_TYPE, /* of references */
	BC_COLUMN_ADDR, /* of references and instructions */
	BC_COLUMN_SIZE,
	BC_COLUMN_ATTR,
	BC_COLUMN_PROC,
	BC_COLUMN_DELTA,
	BC_COLUMN_LETTER,
	BC_COLUMN_SPACE,
	BC_COLUMN_PHYS,
	BC_COLUMN_DATA,
	BC_COLUMN_ATTRIB,
	BC_COLUMN_SECURITY,
	BC_COLUMN_BUS_ADDR, /* of the bus sample */
	BC_COLUMN_BYTE_ENABLES,
	BC_COLUMN_CONTROL,
	BC_COLUMN_EFFECT, /* of instructions */
	BC_COLUMN_ID,
	BC_COLUMN_SET,
	BC_COLUMN_MODE,
	BC_COLUMN_OPCODE,
	BC_COLUMN_DISASSEMBLY,
	BC_COLUMN_REGISTER, /* of register writes */
	BC_COLUMN_VALUE,
	BC_COLUMN_STEP, /* of micro-ops */
	BC_COLUMN_PC,
	BC_COLUMN_SRC1,
	BC_COLUMN_SRC2,
	BC_COLUMN_DEST,
	BC_COLUMN_FLAGS,
	BC_COLUMN_BRANCH,
	BC_COLUMN_ACCESS,
	BC_COLUMN_IMMEDIATE,
	BC_COLUMN_MEM_ADDR,
	BC_COLUMN_FALLTHROUGH,
	BC_COLUMN_TARGET,
	BC_COLUMN_MACRO,
	BC_COLUMN_MICRO,
	BC_COLUMN_TAG, /* of kernel events */
	BC_COLUMN_REST,
	BC_COLUMN_CAUSE, /* of gaps */
	BC_COLUMN_LOST,
	BC_COLUMN_EXACT,
	BC_COLUMN_DURATION_NS,
	BC_COLUMN_TEXT, /* of marks and triggers */
	BC_COLUMN_LINE, /* verbatim line of a text format */
	BC_COLUMNS,
};

/* A set of columns. */
#define BC_COLUMN(column) (UINT64_C(1) << (column))

enum bc_cell_kind {
	BC_CELL_EMPTY,
	BC_CELL_DECIMAL,
	BC_CELL_SIGNED,
	BC_CELL_HEX,  /* with at least `digits` digits */
	BC_CELL_FLAG, /* true or false */
	BC_CELL_WORD, /* text that contains only letters, digits and '-' */
	BC_CELL_TEXT, /* any bytes */
};

/* Small enough to be returned in registers. */
struct bc_cell {
	uint8_t kind;   /* enum bc_cell_kind */
	uint8_t digits; /* BC_CELL_HEX */
	uint32_t bytes; /* BC_CELL_WORD and BC_CELL_TEXT: length of `at` */
	union {
		uint64_t number; /* of the other kinds; BC_CELL_SIGNED: an int64_t */
		const char *at;
	};
};

static inline struct bc_text bc_cell_text(struct bc_cell cell)
{
	return (struct bc_text){.at = cell.at, .bytes = cell.bytes};
}

const char *bc_column_name(enum bc_column column);

/* The columns of a trace that may hold these traits. A trace with only one kind has no column
 * `kind`. */
uint64_t bc_columns_of_trace(uint32_t holds);

/* The columns in which entries of a kind (enum bc_entry_kind) may have a value. */
uint64_t bc_columns_of_kind(unsigned kind);

/* The value of an entry in a column. The column must be one of the entry's kind. Text points into
 * the entry. */
struct bc_cell bc_column_cell(enum bc_column column, const struct bc_entry *entry);

/* Writes a cell other than BC_CELL_TEXT at `out`: nothing for an empty cell, words and hexadecimal
 * numbers without quotes. Returns the end of the output. */
char *bc_cell_write(char *out, struct bc_cell cell);

/* Names of the reference types, stored so that 16 bytes can be copied at once. A type without a
 * name has its code, such as "0xf2". */
struct bc_type_word {
	char text[15];
	uint8_t bytes;
};

void bc_type_words(struct bc_type_word words[BC_REF_TYPES]);

/* JSON strings from arbitrary bytes. Source: RFC 8259, section 7. */

/* Writes the text in quotes: at most six bytes per input byte, plus two. UTF-8 is copied, control
 * characters are escaped, and a byte that is not part of a UTF-8 sequence becomes \u0080 to \u00ff,
 * the character with its number. Returns the end of the output. */
char *bc_json_write_text(char *out, struct bc_text text);

#endif
