/* Counts strings: opcodes, registers, instruction sets and similar names.
 *
 * Memory is bounded: once there are BC_STRING_COUNTER_MAX different strings, or
 * BC_STRING_COUNTER_TEXT_MAX bytes of them, new strings are counted together in `others`. */
#ifndef BC_CLI_STATS_COUNTS_H
#define BC_CLI_STATS_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/loss.h"
#include "formats/trace/entry.h"

#define BC_STRING_COUNTER_MAX      (1u << 16)
#define BC_STRING_COUNTER_TEXT_MAX (4u << 20)

struct bc_string_count {
	struct bc_text text; /* its pointer is set by bc_string_counter_sort() */
	uint32_t start;      /* offset in the counter's `text` */
	uint64_t count;
};

/* An empty one is all zero. */
struct bc_string_counter {
	struct bc_string_count *rows; /* `count` rows */
	size_t count;
	uint64_t total;  /* sum of all counts */
	uint64_t others; /* part of `total`: strings that did not fit */
	char *text;      /* the strings' bytes */
	size_t text_used;
	size_t text_capacity;
	uint32_t *slots; /* index of a row plus 1; 0: free */
	size_t slot_count;
};

/* Counts a string once. Returns 0 or -ENOMEM. */
int bc_string_counter_add(struct bc_string_counter *names, struct bc_text name) BC_MUST_CHECK;

/* Sorts the rows by descending count, then by their bytes. Nothing can be added afterwards. */
void bc_string_counter_sort(struct bc_string_counter *names);

/* The string of a sorted row, with a backslash and any byte that is not printable ASCII as \xNN.
 * The caller frees it. NULL if out of memory. */
char *bc_string_count_text(const struct bc_string_count *name) BC_MUST_CHECK;

void bc_string_counter_free(struct bc_string_counter *names);

/* Counts everything in a trace other than references: gaps, marks, triggers and epochs;
 * instructions and micro-ops; register writes, kernel events and verbatim lines. */

/* An empty one is all zero. */
struct bc_entry_counts {
	uint64_t kinds[BC_ENTRY_KINDS]; /* entries by kind */

	struct bc_losses losses;
	uint64_t marks;
	uint64_t triggers;

	uint64_t effects[3]; /* instructions by enum bc_effect */
	struct bc_string_counter sets;
	struct bc_string_counter mnemonics; /* first words of executed ones */
	uint64_t undecoded;                 /* executed instructions without a disassembly */

	uint64_t macro_ops; /* first micro-ops of macro-ops */
	struct bc_string_counter macros;
	struct bc_string_counter micros;
	uint64_t loads;
	uint64_t stores;
	uint64_t taken;
	uint64_t not_taken;
	uint64_t flag_reads; /* micro-ops that read the flags */
	uint64_t flag_writes;

	struct bc_string_counter registers; /* register writes by name */
	struct bc_string_counter tags;      /* of kernel events */
};

/* Counts a gap, mark or trigger. Other events are ignored. */
void bc_entry_counts_event(struct bc_entry_counts *counts, const struct bc_event *event);

/* Counts an entry of any kind. Returns 0 or -ENOMEM. */
int bc_entry_counts_add(struct bc_entry_counts *counts, const struct bc_entry *entry) BC_MUST_CHECK;

/* Sorts all names. Nothing can be counted afterwards. */
void bc_entry_counts_sort(struct bc_entry_counts *counts);

void bc_entry_counts_free(struct bc_entry_counts *counts);

/* Totals of references: the number of each type, size, memory type and processor, and their bytes.
 *
 * The four bytes of a BYU record that hold these fields serve as a single key. A small hash table
 * has a slot per combination, so a record costs one increment. When another combination takes over
 * a slot, its count is added to the totals field by field. */

#define BC_TALLY_SLOTS    512u
#define BC_TALLY_COUNTERS 4u
#define BC_TALLY_PROCS    (1u << 16)

/* Number of different sizes of 256 bytes and more that are counted separately. */
#define BC_TALLY_LARGE 256u

struct bc_tally {
	uint64_t references;
	uint64_t bytes; /* transferred, by references of known size */
	uint64_t types[BC_REF_TYPES];
	uint64_t type_bytes[BC_REF_TYPES];
	uint64_t letters[256]; /* references with only a type letter */
	uint64_t without_size;
	uint64_t sizes[256];
	struct {
		uint32_t size;
		uint64_t references;
	} large[BC_TALLY_LARGE];
	size_t large_count;
	uint64_t large_others; /* of other sizes */
	uint64_t without_attr;
	uint64_t attrs[256];
	uint64_t without_proc;
	uint64_t procs[BC_TALLY_PROCS];

	/* Records that are not in the totals yet (`pending` of them). Each slot has several
	 * counters, used in turn, so that equal records in a row do not wait for each other. */
	struct bc_tally_slot {
		uint32_t key;
		uint32_t counts[BC_TALLY_COUNTERS];
		uint32_t unused[3]; /* aligns the slot to a multiple of its size */
	} slots[BC_TALLY_SLOTS];
	uint32_t pending;
};

/* Counts BYU records (formats/bus/record.h). An empty tally is all zero; too large for a stack. */
void bc_tally_records(struct bc_tally *tally, const uint8_t *records, size_t n);

/* Counts an entry that is a reference. */
void bc_tally_reference(struct bc_tally *tally, const struct bc_entry *reference);

/* Adds pending records to the totals. Call before reading them. */
void bc_tally_settle(struct bc_tally *tally);

#endif
