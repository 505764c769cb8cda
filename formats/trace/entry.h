/* Entries: the vocabulary that all trace formats share.
 *
 * There are two families. A reference is one access to memory or I/O: a bus cycle, a fetch, a load
 * or a store. An instruction-level entry is an instruction, a micro-op, a register write or a
 * kernel event. An instruction implies a fetch; a micro-op may imply a fetch, a load or a store:
 * bc_entry_references() returns these references.
 *
 * Readers (formats/codec/reader.h) produce entries, and printers (formats/trace/printer.h) write
 * them. formats/codec/format.h, between the two, determines what a target format cannot hold. It
 * works with traits: properties that an entry may have and that a format may be able to hold. */
#ifndef BC_FORMATS_TRACE_ENTRY_H
#define BC_FORMATS_TRACE_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/fast_text.h"
#include "formats/bus/chunk.h"
#include "formats/bus/record.h"
#include "formats/bus/sample.h"
#include "formats/bus/tick_time.h"

enum bc_entry_kind {
	BC_ENTRY_REFERENCE,
	BC_ENTRY_INSTRUCTION,
	BC_ENTRY_UOP,
	BC_ENTRY_REGISTER, /* a write to a register */
	BC_ENTRY_KERNEL,
	BC_ENTRY_EVENT, /* a gap, mark, trigger or epoch of a capture */
	BC_ENTRY_LINE,  /* a line of an unmodelled kind, kept verbatim */
	BC_ENTRY_KINDS,
};

/* Type of a reference. Values below 0x100 are the BYU request types (enum bc_reqtype); codes
 * without a name in byutr.h are kept unchanged. Values above are types of other formats. */
enum bc_ref_type {
	BC_REF_MODIFY = 0x100, /* read and written by one instruction (lackey's M) */
	BC_REF_MISC,           /* Dinero: neither read, write nor fetch */
	BC_REF_FLUSH,          /* Dinero din: flush the cache */
	BC_REF_COPYBACK,       /* Dinero xdin: copy back, and invalidate */
	BC_REF_INVALIDATE,
	BC_REF_LETTER, /* identified only by its letter (Laplace) */
	BC_REF_TYPES,
};

/* A set of traits: what an entry has, or a trace, what a format holds, needs or may lose. */
typedef uint32_t bc_traits;

/* Each trait with its singular name. First the fields, the bits of bc_entry.traits; then types of
 * references: every format that has references also has reads and writes; then kinds, in the order
 * of enum bc_entry_kind. */
/* clang-format off */
#define BC_TRAIT_LIST(T) \
	T(SIZE, "size") /* bytes transferred; if clear, it is unknown and `size` is 0 */ \
	T(ATTR, "memory type") \
	T(PROC, "processor") /* agent, CPU */ \
	T(TIME, "time") /* absolute, in ticks or the trace's own unit */ \
	T(SPACE, "address space") \
	T(DATA, "data") /* the transferred bytes */ \
	T(PHYS, "physical address") /* in addition to the virtual one */ \
	T(SAMPLE, "byte enables") /* the original bus sample: with control */ \
	T(LETTER, "type letter") /* more specific than the type */ \
	T(ATTRIB, "access attribute") /* Tarmac: letters such as X (privileged) and T (not) */ \
	T(SECURITY, "security") /* Tarmac: NS or S */ \
	T(FETCH, "fetch") \
	T(MODIFY, "modify") \
	T(MISC, "miscellaneous reference") \
	T(FLUSH, "cache flush") /* BC_REF_FLUSH */ \
	T(CACHE, "copy-back or invalidation") /* BC_REF_COPYBACK and BC_REF_INVALIDATE */ \
	T(CYCLE, "bus cycle other than a memory access") /* I/O, INTA, special cycles */ \
	T(P6, "request of the P6 bus only") /* all other BYU types: MEMREADINV, DEFERREPLY, ... */ \
	T(INVALID, "invalid bus cycle") /* BC_REQ_INVALID plus the nibble */ \
	T(REFERENCE, "reference") \
	T(INSTRUCTION, "instruction") \
	T(UOP, "micro-op") \
	T(REGISTER, "register write") \
	T(KERNEL, "kernel event") \
	T(EVENT, "gap, mark or epoch") \
	T(LINE, "verbatim line")
/* clang-format on */

enum bc_trait_bit {
#define BC_TRAIT_BIT(trait, name) BC_TRAIT_BIT_##trait,
	BC_TRAIT_LIST(BC_TRAIT_BIT)
#undef BC_TRAIT_BIT
		BC_TRAIT_BITS,
};

enum bc_trait {
#define BC_TRAIT(trait, name) BC_TRAIT_##trait = 1u << BC_TRAIT_BIT_##trait,
	BC_TRAIT_LIST(BC_TRAIT)
#undef BC_TRAIT
		BC_TRAITS = (1u << BC_TRAIT_BITS) - 1,
	BC_FIELDS = BC_TRAIT_FETCH - 1,
	BC_TYPES = (BC_TRAIT_REFERENCE - 1) ^ BC_FIELDS,
	BC_KINDS = BC_TRAITS ^ BC_TYPES ^ BC_FIELDS,
};

/* Time units that traces name; BC_UNIT_TICK if they name none. */
enum bc_unit {
	BC_UNIT_TICK,
	BC_UNIT_CLK,
	BC_UNIT_NS,
	BC_UNIT_CS,
	BC_UNIT_CYC,
	BC_UNIT_TIC,
	BC_UNIT_PS,
	BC_UNIT_US,
	BC_UNITS,
};

/* Returns how many picoseconds a unit has, or 0 for clocks and cycles. */
static inline uint64_t bc_unit_picoseconds(unsigned unit)
{
	return unit == BC_UNIT_US ? 1000000 : unit == BC_UNIT_NS ? 1000 : unit == BC_UNIT_PS;
}

/* Text in an entry points into the input or the reader's state, until the reader's next call. */

/* CIS501: one micro-op. The entry's addr is the PC. */
struct bc_uop {
	int32_t step; /* 1 for the first micro-op of a macro-op, then 2, ... */
	int32_t src1; /* registers, -1 for none */
	int32_t src2;
	int32_t dest;
	char flags;  /* R, W or - */
	char branch; /* T, N or - */
	char access; /* L, S or - */
	int64_t immediate;
	uint64_t mem_addr;    /* of the load or store */
	uint64_t fallthrough; /* address of the next instruction */
	uint64_t target;      /* of the branch */
	struct bc_text macro; /* opcodes, as text */
	struct bc_text micro;
};

enum bc_effect {
	BC_EFFECT_EXECUTED,
	BC_EFFECT_SKIPPED,   /* its condition failed */
	BC_EFFECT_FETCHFAIL, /* its bits could not be read */
};

/* An executed instruction. The entry's addr is its address, size its length in bytes. */
struct bc_instruction {
	uint8_t effect; /* enum bc_effect */
	uint8_t digits; /* number of hex digits of the opcode as written; 0: opcode unknown */
	bool has_id;
	uint64_t id; /* index of the instruction in the trace */
	uint64_t opcode;
	struct bc_text set;  /* instruction set: A T T16 T32 O X; empty if not given */
	struct bc_text mode; /* svc_s, EL3h_s, ...; empty if not given */
	struct bc_text disassembly;
};

/* A register write. */
struct bc_register {
	struct bc_text name;  /* as written in the line */
	struct bc_text value; /* digits as written, with separators */
};

/* A kernel event. The entry's letter is the tag's first character. */
struct bc_kernel_event {
	struct bc_text tag;  /* one or more characters */
	struct bc_text rest; /* everything after the tag and time, verbatim, without the newline */
};

/* How a line depends on those before it */
enum bc_line_dependence {
	BC_LINE_IS_ALONE,
	BC_LINE_NEEDS_PREFIX, /* for its time or its unit, or the number of a processor's name */
	BC_LINE_CONTINUES,    /* what the previous line began */
};

struct bc_entry {
	uint8_t kind;     /* enum bc_entry_kind */
	uint8_t attr;     /* memory type */
	uint16_t type;    /* for references: enum bc_reqtype or enum bc_ref_type */
	bc_traits traits; /* the fields that are set */
	uint32_t size;    /* bytes transferred */
	uint16_t proc;
	char letter;     /* Laplace's type letter or a kernel event's tag; 0: none */
	uint8_t unit;    /* of `tick`: enum bc_unit */
	uint64_t addr;   /* physical or virtual, depending on the trace */
	uint64_t tick;   /* absolute, with BC_TRAIT_TIME */
	uint64_t number; /* position in the input: record number (from 0) or line number (from 1) */
	uint64_t delta;  /* if has_delta: the BYU `time` field, unchanged (may be BC_TIME_NONE) */
	uint64_t data;   /* up to 8 transferred bytes as a number; the lowest address is least
			    significant */
	uint64_t phys;
	uint32_t space; /* Laplace's address space */
	uint32_t epoch; /* epoch of `tick`: the clock restarts with each epoch */
	uint8_t sample[BC_SAMPLE_BYTES];
	bool has_delta;
	bool is_inexact;    /* `tick` is a lower bound: an unknown number of ticks came before it */
	bool has_wall;      /* the trace has no clock, but the time of day of each entry */
	bool is_continued;  /* made from the same line as the previous entry */
	uint8_t dependence; /* of its line: enum bc_line_dependence */
	uint32_t prefix;    /* bytes of the line before its words: its time and processor */
	/* The whole input line without its newline, for a format that cannot be rewritten from the
	 * fields (Tarmac); otherwise empty. */
	struct bc_text line;
	union {
		struct bc_uop uop;
		struct bc_instruction instruction;
		struct bc_register reg;
		struct bc_kernel_event kernel;
		struct bc_text words; /* of a line: without its time and processor */
		struct {
			int64_t wall_ns; /* of a reference or event, if has_wall: its time of day */
			union {
				struct {
					struct bc_text attrib; /* of a reference, if it has them */
					struct bc_text security;
				} access;
				struct {
					/* gap, mark or trigger; kind 0: a new epoch */
					struct bc_event event;
					/* of a mark or trigger; empty for others */
					struct bc_text text;
				} note;
			};
		};
	};
};

/* Relates the ticks of an epoch to the time of day. */
struct bc_moment {
	bool is_known;
	uint64_t recording_tag; /* 0: not from a recording */
	uint32_t epoch;
	struct bc_clock_point clock;
};

/* The moment of a chunk's entries, if their trace has times of day. */
static inline struct bc_moment bc_chunk_moment(
	const struct bc_chunk_info *info, bool has_wall, uint64_t clock_hz)
{
	return (struct bc_moment){.is_known = has_wall,
		.recording_tag = info->recording_tag,
		.epoch = info->epoch,
		.clock = bc_chunk_clock(info, clock_hz)};
}

/* Sets *ns to the time of day of an entry's tick. Returns false if unknown; moment may be NULL. */
static inline bool bc_entry_wall(
	const struct bc_entry *entry, const struct bc_moment *moment, int64_t *ns)
{
	if (entry->has_wall) {
		*ns = entry->wall_ns;
		return true;
	}
	return moment != NULL && moment->is_known && moment->epoch == entry->epoch &&
	       ((entry->traits & BC_TRAIT_TIME) != 0 || entry->kind == BC_ENTRY_EVENT) &&
	       bc_tick_time(ns, moment->clock, entry->tick);
}

/* Initializes a reference with only a type and an address. The rest is 0, the union not set. */
static inline void bc_entry_reference(
	struct bc_entry *entry, unsigned type, uint64_t addr, uint64_t number)
{
	entry->kind = BC_ENTRY_REFERENCE;
	entry->attr = 0;
	entry->type = (uint16_t)type;
	entry->traits = 0;
	entry->size = 0;
	entry->proc = 0;
	entry->letter = 0;
	entry->unit = BC_UNIT_TICK;
	entry->addr = addr;
	entry->tick = 0;
	entry->number = number;
	entry->delta = 0;
	entry->data = 0;
	entry->phys = 0;
	entry->space = 0;
	entry->epoch = 0;
	entry->has_delta = false;
	entry->has_wall = false;
	entry->is_inexact = false;
	entry->is_continued = false;
	entry->dependence = BC_LINE_IS_ALONE;
	entry->prefix = 0;
	entry->line.at = NULL;
	entry->line.bytes = 0;
}

/* Converts a BYU record to an entry. `number` is its position, `tick` its absolute tick. */
void bc_entry_of_record(
	struct bc_entry *entry, const uint8_t *record, uint64_t number, uint64_t tick);

/* Converts an event to an entry. `number` is the next record's, `tick` its tick, or at the end of a
 * chunk the previous one's. `text` is that of the event, which must outlive the entry. */
void bc_entry_of_event(struct bc_entry *entry, const struct bc_event *event, const char *text,
	uint64_t number, uint64_t tick, uint32_t epoch);

/* BYU records in a row, with no event between them. The tick of each is `tick` plus the `time` of
 * the records up to it, where BC_TIME_NONE counts as 0. */
struct bc_record_run {
	const uint8_t *records;
	size_t count;
	uint64_t number; /* of the first record */
	uint64_t tick;   /* before the first record */
	uint32_t epoch;
	bool is_inexact; /* the ticks are lower bounds */
};

/* Drops the first n records, which take `ticks`. */
static inline void bc_record_run_skip(struct bc_record_run *run, size_t n, uint64_t ticks)
{
	run->records += n * BC_RECORD_BYTES;
	run->count -= n;
	run->number += n;
	run->tick += ticks;
}

/* Moves the first records of a run, at most `max`, to entries. Returns their number. */
size_t bc_record_run_entries(struct bc_record_run *run, struct bc_entry *entries, size_t max);

/* Converts a bus sample to an entry: the record that `mapping` produces, plus the sample itself. */
void bc_entry_of_sample(struct bc_entry *entry, const uint8_t sample[BC_SAMPLE_BYTES],
	const struct bc_mapping *mapping, uint8_t proc, uint64_t number, uint64_t tick);

/* Maximum number of references that one entry represents. */
#define BC_REFERENCES_MAX 2u

/* Writes the references that an entry represents to `out` and returns their number (0 for kinds
 * without references):
 *
 *   a reference      itself; BC_REF_MODIFY counts as one
 *   an instruction   its fetch
 *   a micro-op       the fetch of its macro-op, if it is the first micro-op; its load or store */
size_t bc_entry_references(struct bc_entry out[BC_REFERENCES_MAX], const struct bc_entry *entry);

/* The lowest address of the bytes of a reference. For a bus reference (one with a memory type) it
 * is the start of its burst (bc_burst_start()), otherwise the address itself. */
static inline uint64_t bc_entry_start(const struct bc_entry *reference)
{
	return (reference->traits & BC_TRAIT_ATTR) != 0
		       ? bc_burst_start(reference->addr, reference->size)
		       : reference->addr;
}

/* The plural name of a kind: "references", "instructions", ... */
const char *bc_entry_kind_name(unsigned kind);

/* The fields, type and kind of an entry, as a set of traits. */
bc_traits bc_entry_traits(const struct bc_entry *entry);

/* The singular name of a trait: "time", "byte enables", "kernel event". `trait` must be one bit. */
const char *bc_trait_name(uint32_t trait);

/* The name of a reference type: as in byutr.h, or "MODIFY" and so on; or NULL. */
const char *bc_ref_type_name(unsigned type);

/* The reference type with this name, in any case, or -1. */
int bc_ref_type_by_name(const char *name);

/* The same for descriptions of traces, where a read, a write and Dinero's flush are called so. */
int bc_ref_type_by_word(struct bc_text word);

/* The words for types in traces of others, in lower case; the last is NULL. */
extern const struct bc_usual_word {
	const char *word;
	uint16_t type;
} bc_usual_words[];

/* The type that a trace of others means by a word such as "LD", in any case; or -1. */
int bc_ref_type_usual(struct bc_text word);

/* The units in which descriptions of traces give times: "us" has three digits after the point that
 * become whole ns. */
#define BC_TIME_FORMS 5u
extern const struct bc_time_form {
	const char *name;
	uint8_t digits;
	uint8_t unit; /* BC_UNIT_NS or BC_UNIT_PS */
} bc_time_forms[BC_TIME_FORMS];

/* The trait of a type; 0 for reads and writes. */
bc_traits bc_ref_type_trait(unsigned type);

/* The type reduced to read, write or fetch: BC_REQ_MEMREAD, BC_REQ_MEMWRITE or BC_REQ_FETCH, or -1
 * for other types. A modify counts as a read. */
int bc_ref_type_plain(unsigned type);

/* "clk", "ns", ...; "" for BC_UNIT_TICK. */
const char *bc_unit_name(unsigned unit);

/* Describes an entry in one short line for people, as in `buscap diff`. Nothing parses it. */

/* Maximum output of bc_entry_text(), in bytes, including the terminating zero. */
#define BC_ENTRY_TEXT_MAX 512

/* Writes a line such as "MEMREAD 000a0008 size 8 attr 0 proc 1 @115", terminated by a zero but
 * without a newline. The time comes last, after '@', with its unit. Bytes other than printable
 * ASCII become '?'. A line that is too long ends in "...". Returns the length of the line. */
size_t bc_entry_text(char out[BC_ENTRY_TEXT_MAX], const struct bc_entry *entry);

#endif
