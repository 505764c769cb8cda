/* What traces are made of, whatever format they stand in: one small vocabulary of entries.
 *
 * Two families share it. A reference is one access to memory or I/O: a bus cycle, a fetch, a load,
 * a store. An instruction-level entry is an instruction, a micro-op, a register write or a kernel
 * event; an instruction is a fetch too, and a micro-op or a Tarmac memory access a load or store:
 * bc_entry_references() gives the references that an entry stands for.
 *
 * Readers (formats/reader/reader.h) make rows of entries, printers (formats/trace/printer.h) write
 * them, and what lies between (formats/reader/entry_convert.h) says what a target can't hold.
 * Traits are the words for that: each is something that an entry may carry and a format may be able
 * to hold. */
#ifndef BC_FORMATS_TRACE_ENTRY_H
#define BC_FORMATS_TRACE_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/fast_format.h"
#include "formats/bus/chunk.h"
#include "formats/bus/mapping.h"
#include "formats/bus/record.h"
#include "formats/bus/sample.h"

enum bc_entry_kind {
	BC_ENTRY_REFERENCE,
	BC_ENTRY_INSTRUCTION,
	BC_ENTRY_UOP,
	BC_ENTRY_REGISTER, /* a register was written */
	BC_ENTRY_KERNEL,   /* a kernel event */
	BC_ENTRY_EVENT,    /* what a capture knows beside its records: gap, mark, trigger, epoch */
	BC_ENTRY_LINE,     /* a line of a kind that is not modelled, kept as it stands */
	BC_ENTRY_KINDS,
};

/* What a reference does. Below 0x100 these are the BYU request types (enum bc_reqtype, kept as they
 * stand even where byutr.h has no name for one); above, what other formats know. */
enum bc_ref_type {
	BC_REF_MODIFY = 0x100, /* read and written by one instruction (lackey's M) */
	BC_REF_MISC,           /* Dinero: neither read, write nor fetch */
	BC_REF_FLUSH,          /* Dinero din: flush the cache */
	BC_REF_COPYBACK,       /* Dinero xdin: copy back, invalidate */
	BC_REF_INVALIDATE,
	BC_REF_LETTER, /* known by its letter alone (Laplace) */
	BC_REF_TYPES,
};

/* What an entry may carry and a format may hold. */
enum bc_trait {
	/* Fields: the bits of bc_entry.has. */
	BC_HAS_SIZE = 1u << 0,   /* bytes moved; without it `size` is 0 and they are unknown */
	BC_HAS_ATTR = 1u << 1,   /* memory type */
	BC_HAS_PROC = 1u << 2,   /* processor, agent, CPU */
	BC_HAS_TIME = 1u << 3,   /* absolute time, in ticks or the trace's unit */
	BC_HAS_SPACE = 1u << 4,  /* address space */
	BC_HAS_DATA = 1u << 5,   /* the bytes that were moved */
	BC_HAS_PHYS = 1u << 6,   /* a physical address beside the virtual one */
	BC_HAS_SAMPLE = 1u << 7, /* the bus sample: byte enables and control as they stood */
	BC_HAS_LETTER = 1u << 8, /* a type letter that says more than the type */
	BC_FIELDS = (1u << 9) - 1,

	/* Types of references; reads and writes are every format's that has references. */
	BC_CAN_FETCH = 1u << 9,
	BC_CAN_MODIFY = 1u << 10,
	BC_CAN_MISC = 1u << 11,
	BC_CAN_FLUSH = 1u << 12,   /* BC_REF_FLUSH */
	BC_CAN_CACHE = 1u << 13,   /* BC_REF_COPYBACK and BC_REF_INVALIDATE */
	BC_CAN_CYCLE = 1u << 14,   /* the Pentium bus's other cycles: I/O, INTA, special cycles */
	BC_CAN_P6 = 1u << 15,      /* all other BYU request types: MEMREADINV, DEFERREPLY, ... */
	BC_CAN_INVALID = 1u << 16, /* invalid bus cycles: BC_REQ_INVALID and their nibble */
	BC_TYPES = ((1u << 17) - 1) ^ ((1u << 9) - 1),

	/* Kinds. */
	BC_CAN_REFERENCE = 1u << 17,
	BC_CAN_INSTRUCTION = 1u << 18,
	BC_CAN_UOP = 1u << 19,
	BC_CAN_REGISTER = 1u << 20,
	BC_CAN_KERNEL = 1u << 21,
	BC_CAN_EVENT = 1u << 22,
	BC_CAN_LINE = 1u << 23,
	BC_KINDS = ((1u << 24) - 1) ^ ((1u << 17) - 1),
	BC_TRAIT_BITS = 24,
};

/* Units of time that traces name; BC_UNIT_TICK where they name none. */
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

/* A text of an entry is bytes of the input, or of a state of the reader: valid until its next call.
 */

/* CIS501: one micro-op. The entry's addr is the PC. */
struct bc_uop {
	int32_t step; /* 1 for the first micro-op of a macro-op, and so on */
	int32_t src1; /* registers, -1 for none */
	int32_t src2;
	int32_t dest;
	char flags;  /* R, W or - */
	char branch; /* T, N or - */
	char access; /* L, S or - */
	int64_t immediate;
	uint64_t mem_addr;    /* of the load or store */
	uint64_t fallthrough; /* address behind the instruction */
	uint64_t target;      /* of the branch */
	struct bc_text macro; /* opcodes */
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
	uint8_t digits; /* hex digits of the opcode as written; 0: it isn't known */
	bool has_id;
	uint64_t id; /* index of the instruction */
	uint64_t opcode;
	struct bc_text set;  /* instruction set: A T T16 T32 O X; empty if not told */
	struct bc_text mode; /* svc_s, EL3h_s, ...; empty if not told */
	struct bc_text disassembly;
};

/* A register write. */
struct bc_register {
	struct bc_text name;  /* as it stands in the line */
	struct bc_text value; /* its digits as they stand, separators and all */
};

/* A kernel event. The entry's letter is the tag's first character. */
struct bc_kernel_event {
	struct bc_text tag;  /* one character, or more */
	struct bc_text rest; /* all behind tag and time, verbatim, without the newline */
};

struct bc_entry {
	uint8_t kind;  /* enum bc_entry_kind */
	uint8_t attr;  /* memory type */
	uint16_t type; /* of a reference: enum bc_reqtype, or enum bc_ref_type */
	uint32_t has;  /* which of the fields below are meant: BC_HAS_* */
	uint32_t size; /* bytes moved */
	uint16_t proc;
	char letter;     /* Laplace's type letter or a kernel event's tag; 0: none */
	uint8_t unit;    /* of `tick`: enum bc_unit */
	uint64_t addr;   /* physical or virtual, as the trace has it */
	uint64_t tick;   /* absolute, with BC_HAS_TIME */
	uint64_t number; /* its place in the input: number of the record from 0, or line from 1 */
	uint64_t delta;  /* has_delta: the BYU `time` as it stands, BC_TIME_NONE included */
	uint64_t data;   /* up to 8 bytes moved, as a number: lowest address least significant */
	uint64_t phys;
	uint32_t space; /* Laplace's address space */
	uint32_t epoch; /* of the tick: the clock starts over with each */
	uint8_t sample[BC_SAMPLE_BYTES];
	bool has_delta;
	bool is_inexact;   /* `tick` is no more than a lower bound: ticks before it aren't known */
	bool is_continued; /* of the same line as the entry before it */
	/* The whole line as it stood, without its newline, where the format can't be written again
	 * from the fields alone (Tarmac); else empty. */
	struct bc_text line;
	union {
		struct bc_uop uop;
		struct bc_instruction instruction;
		struct bc_register reg;
		struct bc_kernel_event kernel;
		struct {
			struct bc_event event; /* gap, mark or trigger; kind 0: a new epoch */
			struct bc_text text;   /* of a mark or trigger */
		} note;
	};
};

/* Sets up a reference with nothing but type and address; the fields that `has` doesn't name are 0,
 * the union unset. */
static inline void bc_entry_reference(
	struct bc_entry *entry, unsigned type, uint64_t addr, uint64_t number)
{
	entry->kind = BC_ENTRY_REFERENCE;
	entry->attr = 0;
	entry->type = (uint16_t)type;
	entry->has = 0;
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
	entry->is_inexact = false;
	entry->is_continued = false;
	entry->line.at = NULL;
	entry->line.bytes = 0;
}

/* Makes an entry of one BYU record. `tick` is its absolute tick, `number` its number. */
void bc_entry_of_record(
	struct bc_entry *entry, const uint8_t *record, uint64_t number, uint64_t tick);

/* Makes an entry of a bus sample: the record that `mapping` makes of it, and the sample itself. */
void bc_entry_of_sample(struct bc_entry *entry, const uint8_t sample[BC_SAMPLE_BYTES],
	const struct bc_mapping *mapping, uint8_t proc, uint64_t number, uint64_t tick);

/* The most references that one entry stands for. */
#define BC_REFERENCES_MAX 2u

/* The references that an entry stands for, made from it: itself; the fetch of an instruction, or of
 * a macro-op with its first micro-op; a micro-op's load or store. BC_REF_MODIFY is one reference.
 * Returns their number, 0 for kinds that are none. */
size_t bc_entry_references(struct bc_entry out[BC_REFERENCES_MAX], const struct bc_entry *entry);

/* The lowest address of a reference's bytes: of one that the bus tells of, by its memory type, that
 * of its burst (bc_burst_start()); else the address itself. */
static inline uint64_t bc_entry_begin(const struct bc_entry *reference)
{
	return (reference->has & BC_HAS_ATTR) != 0
		       ? bc_burst_start(reference->addr, reference->size)
		       : reference->addr;
}

/* "references", "instructions", ...: the word for entries of a kind, in the plural. */
const char *bc_entry_kind_name(unsigned kind);

/* What an entry carries: its fields, type and kind, as traits. */
uint32_t bc_entry_traits(const struct bc_entry *entry);

/* "time", "byte enables", "kernel event": a trait's word, in the singular; `trait` is one bit. */
const char *bc_trait_name(uint32_t trait);

/* The name of a reference's type: byutr.h's, or "MODIFY" and so on; NULL for a number without. */
const char *bc_ref_type_name(unsigned type);

/* The type of that name, any case; or -1. */
int bc_ref_type_by_name(const char *name);

/* What a type comes down to where only reads, writes and fetches are known: one of BC_REQ_FETCH,
 * BC_REQ_MEMREAD, BC_REQ_MEMWRITE; -1 for what is none of them. A modify is a read here. */
int bc_ref_type_plain(unsigned type);

/* "clk", "ns", ...; "" for BC_UNIT_TICK. */
const char *bc_unit_name(unsigned unit);

#endif
