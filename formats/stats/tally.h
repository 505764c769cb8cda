/* Totals of references: the number of each type, size, memory type and processor, and the bytes
 * they transferred.
 *
 * The four bytes of a BYU record that hold these fields serve as a single key. A small hash table
 * has a slot per combination, so a record costs one increment. When another combination takes over
 * a slot, its count is added to the totals field by field. */
#ifndef BC_FORMATS_STATS_TALLY_H
#define BC_FORMATS_STATS_TALLY_H

#include <stddef.h>
#include <stdint.h>

#include "formats/trace/entry.h"

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
	 * counters, used in turn, so that equal records in a row do not wait for each other's
	 * increment. */
	struct bc_tally_slot {
		uint32_t key;
		uint32_t counts[BC_TALLY_COUNTERS];
		uint32_t unused[3]; /* aligns the slot to a multiple of its size */
	} slots[BC_TALLY_SLOTS];
	uint32_t pending;
};

/* Counts BYU records (formats/bus/record.h). An empty tally is all zero; it is too large for a
 * stack. */
void bc_tally_records(struct bc_tally *tally, const uint8_t *records, size_t n);

/* Counts an entry that is a reference. */
void bc_tally_reference(struct bc_tally *tally, const struct bc_entry *reference);

/* Adds pending records to the totals. Call before reading them. */
void bc_tally_settle(struct bc_tally *tally);

#endif
