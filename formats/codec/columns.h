/* Entries as rows of a table: the columns of csv (formats/codec/csv.c) and, under the same names,
 * the keys of ndjson (formats/codec/ndjson.c).
 *
 * The columns depend on what a trace may hold, not on what it actually contains, so they are known
 * before the first entry. A cell is empty if the entry lacks the field. See docs/formats.md. */
#ifndef BC_FORMATS_CODEC_COLUMNS_H
#define BC_FORMATS_CODEC_COLUMNS_H

#include <stdint.h>

#include "formats/base/fast_text.h"
#include "formats/trace/entry.h"
#include "formats/trace/printer.h"

/* The columns in output order: the enumerator, the name, the kinds of entries that may have a
 * value, traits, and how it is read to which member (cells.c). A trace has the column if it
 * may hold one of these kinds and, unless there are no traits, one of them. Only Tarmac names
 * units, only BYU has deltas, and only captures with events have epochs. Without a time of day, a
 * trace has no column `time` either. */
/* clang-format off */
#define BC_COLUMN_LIST(C) \
	C(KIND, kind, ANY, 0, UNREAD, kind) \
	C(NUMBER, number, ANY, 0, DECIMAL, number) \
	C(TICK, tick, ANY, BC_TRAIT_TIME, DECIMAL, tick) \
	C(UNIT, unit, ANY, INS | REG | BC_TRAIT_LINE, NAME, unit) \
	C(EPOCH, epoch, ANY, EVENT, DECIMAL, epoch) \
	C(TIME, time, ANY, BC_TRAIT_TIME, WALL, wall_ns) \
	C(TYPE, type, REF, 0, NAME, type) \
	C(ADDR, addr, REF | INS, 0, HEX, addr) \
	C(SIZE, size, REF | INS | UOP, BC_TRAIT_SIZE, DECIMAL, size) \
	C(ATTR, attr, REF, BC_TRAIT_ATTR, DECIMAL, attr) \
	C(PROC, proc, ANY, BC_TRAIT_PROC, DECIMAL, proc) \
	C(DELTA, delta, REF, BC_TRAIT_P6, DECIMAL, delta) \
	C(LETTER, letter, REF, BC_TRAIT_LETTER, CHARACTER, letter) \
	C(SPACE, space, REF, BC_TRAIT_SPACE, HEX, space) \
	C(PHYS, phys, REF | INS, BC_TRAIT_PHYS, HEX, phys) \
	C(DATA, data, REF, BC_TRAIT_DATA, HEX, data) \
	C(ATTRIB, attrib, REF, BC_TRAIT_ATTRIB, WORD, access.attrib) \
	C(SECURITY, security, REF, BC_TRAIT_SECURITY, WORD, access.security) \
	C(BUS_ADDR, bus_addr, REF, BC_TRAIT_SAMPLE, BUS, sample) \
	C(BYTE_ENABLES, byte_enables, REF, BC_TRAIT_SAMPLE, HEX, sample[4]) \
	C(CONTROL, control, REF, BC_TRAIT_SAMPLE, HEX, sample[5]) \
	C(EFFECT, effect, INS, 0, NAME, instruction.effect) \
	C(ID, id, INS, 0, DECIMAL, instruction.id) \
	C(SET, set, INS, 0, WORD, instruction.set) \
	C(MODE, mode, INS, 0, WORD, instruction.mode) \
	C(OPCODE, opcode, INS, 0, HEX, instruction.opcode) \
	C(DISASSEMBLY, disassembly, INS, 0, TEXT, instruction.disassembly) \
	C(REGISTER, register, REG, 0, WORD, reg.name) \
	C(VALUE, value, REG, 0, BITS, reg.value) \
	C(STEP, step, UOP, 0, SIGNED, uop.step) \
	C(PC, pc, UOP, 0, HEX, addr) \
	C(SRC1, src1, UOP, 0, SIGNED, uop.src1) \
	C(SRC2, src2, UOP, 0, SIGNED, uop.src2) \
	C(DEST, dest, UOP, 0, SIGNED, uop.dest) \
	C(FLAGS, flags, UOP, 0, CHARACTER, uop.flags) \
	C(BRANCH, branch, UOP, 0, CHARACTER, uop.branch) \
	C(ACCESS, access, UOP, 0, CHARACTER, uop.access) \
	C(IMMEDIATE, immediate, UOP, 0, SIGNED, uop.immediate) \
	C(MEM_ADDR, mem_addr, UOP, 0, HEX, uop.mem_addr) \
	C(FALLTHROUGH, fallthrough, UOP, 0, HEX, uop.fallthrough) \
	C(TARGET, target, UOP, 0, HEX, uop.target) \
	C(MACRO, macro, UOP, 0, WORD, uop.macro) \
	C(MICRO, micro, UOP, 0, WORD, uop.micro) \
	C(TAG, tag, BC_TRAIT_KERNEL, 0, WORD, kernel.tag) \
	C(REST, rest, BC_TRAIT_KERNEL, 0, TEXT, kernel.rest) \
	C(CAUSE, cause, EVENT, 0, NAME, note.event.cause) \
	C(LOST, lost, EVENT, 0, DECIMAL, note.event.value) \
	C(EXACT, exact, EVENT, 0, NAME, note.event.exact) \
	C(DURATION_NS, duration_ns, EVENT, 0, DECIMAL, note.event.duration_ns) \
	C(TEXT, text, EVENT, 0, NOTE, note.text) \
	C(LINE, line, ANY, BC_TRAIT_LINE, TEXT, line)

enum bc_column {
#define BC_COLUMN_ENUM(column, name, kinds, needs, how, member) BC_COLUMN_##column,
	BC_COLUMN_LIST(BC_COLUMN_ENUM)
#undef BC_COLUMN_ENUM
	BC_COLUMNS,
};
/* clang-format on */

/* A set of columns. */
#define BC_COLUMN(column) (UINT64_C(1) << (column))

/* Columns of Laplace, and of bus samples: next to each other in those of references. */
#define BC_COLUMNS_LAPLACE (BC_COLUMN(BC_COLUMN_LETTER) | BC_COLUMN(BC_COLUMN_SPACE))
#define BC_COLUMNS_SAMPLE                                                    \
	(BC_COLUMN(BC_COLUMN_BUS_ADDR) | BC_COLUMN(BC_COLUMN_BYTE_ENABLES) | \
		BC_COLUMN(BC_COLUMN_CONTROL))

enum bc_cell_kind {
	BC_CELL_EMPTY,
	BC_CELL_DECIMAL,
	BC_CELL_SIGNED,
	BC_CELL_HEX,  /* with at least `digits` digits */
	BC_CELL_FLAG, /* true or false */
	BC_CELL_TIME, /* of day: an int64_t in ns since 1970 */
	BC_CELL_WORD, /* text that contains no character with a meaning in csv or JSON */
	BC_CELL_BITS, /* digits as in the source: the same, after 0x */
	BC_CELL_TEXT, /* any bytes */
};

/* Small enough to be returned in registers. */
struct bc_cell {
	uint8_t kind;   /* enum bc_cell_kind */
	uint8_t digits; /* BC_CELL_HEX */
	uint32_t bytes; /* BC_CELL_WORD, _BITS and _TEXT: length of `at` */
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

/* The columns of a trace, by its printer's options. A trace with one kind has no column `kind`. */
uint64_t bc_columns_of_trace(const struct bc_format_options *options);

/* The field that a value in a column sets (BC_FIELDS), or 0. */
bc_traits bc_column_field(enum bc_column column);

/* What a trace with these columns may have. */
bc_traits bc_columns_traits(uint64_t set);

/* True if a file begins with a header row of csv, or with an object of ndjson, of these columns. */
bool bc_columns_begin_csv(const uint8_t *head, size_t bytes);
bool bc_columns_begin_ndjson(const uint8_t *head, size_t bytes);

/* The columns in which entries of a kind (enum bc_entry_kind) may have a value. */
uint64_t bc_columns_of_kind(unsigned kind);

/* The value of an entry in a column. The column must be one of the entry's kind. `moment` may be
 * NULL. Text points into the entry. */
struct bc_cell bc_column_cell(
	enum bc_column column, const struct bc_entry *entry, const struct bc_moment *moment);

/* Writes a cell other than BC_CELL_TEXT at `out`, without quotes; nothing for an empty cell.
 * Returns the end of the output. */
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
 * characters up to U+009F are escaped, and a byte that is not part of a UTF-8 sequence becomes
 * \u0080 to \u00ff, the character with its number. Returns the end of the output. */
char *bc_json_write_text(char *out, struct bc_text text);

#endif
