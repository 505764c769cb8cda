/* Totals of references: how many of each type, size, memory type and processor, and how many bytes
 * they moved.
 *
 * BYU records are counted by the four bytes that say all this at once, in a small table with a slot
 * for each combination met; what shares a slot with another is added up field by field. */
#ifndef BC_FORMATS_STATS_TALLY_H
#define BC_FORMATS_STATS_TALLY_H

#include <stddef.h>
#include <stdint.h>

#include "formats/trace/entry.h"

#define BC_TALLY_SLOTS 512u
#define BC_TALLY_LANES 4u
#define BC_TALLY_PROCS (1u << 16)

/* Different sizes of 256 bytes and more that are told one by one. */
#define BC_TALLY_LARGE 256u

struct bc_tally {
	uint64_t references;
	uint64_t bytes; /* moved, of those whose size is known */
	uint64_t types[BC_REF_TYPES];
	uint64_t type_bytes[BC_REF_TYPES];
	uint64_t letters[256]; /* of references known by their letter alone */
	uint64_t without_size;
	uint64_t sizes[256];
	struct {
		uint32_t size;
		uint64_t references;
	} large[BC_TALLY_LARGE];
	size_t large_count;
	uint64_t large_others; /* of further sizes */
	uint64_t without_attr;
	uint64_t attrs[256];
	uint64_t without_proc;
	uint64_t procs[BC_TALLY_PROCS];

	/* Records not added to the above yet, `pending` of them. Each lane counts a quarter, so
	 * that equal ones behind one another don't wait for each other's count. */
	struct bc_tally_slot {
		uint32_t key;
		uint32_t counts[BC_TALLY_LANES];
		uint32_t unused[3]; /* a slot begins at a multiple of its length */
	} slots[BC_TALLY_SLOTS];
	uint32_t pending;
};

/* Empty when all zero; it is too large for a stack. Counts BYU records (formats/bus/record.h). */
void bc_tally_records(struct bc_tally *tally, const uint8_t *records, size_t n);

/* Counts an entry that is a reference. */
void bc_tally_reference(struct bc_tally *tally, const struct bc_entry *reference);

/* Adds up what bc_tally_records() left pending: before anything is read off. */
void bc_tally_settle(struct bc_tally *tally);

#endif
