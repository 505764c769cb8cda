/* How much memory references touch, and how soon they come back.
 *
 * Footprint: the distinct lines and pages that were touched, by reads, writes, fetches, and in all.
 * A reference of several lines touches each; one whose size is unknown, or 0, touches one.
 *
 * Reuse: for each line that a reference touches, how many references ago it was touched last. It is
 * the time between two uses, counted in references to memory, not the number of different lines
 * used between them (the stack distance). */
#ifndef BC_FORMATS_STATS_FOOTPRINT_H
#define BC_FORMATS_STATS_FOOTPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/stats/line_table.h"
#include "formats/trace/entry.h"

/* Of one reference, so many lines are touched at most; more make `is_cut`. */
#define BC_FOOTPRINT_LINES_MAX 65536u

#define BC_REUSE_BUCKETS 46

struct bc_footprint_options {
	uint64_t line_bytes; /* powers of two, the page at least as large as the line */
	uint64_t page_bytes;
	uint64_t memory_bytes; /* to be used at most */
};

struct bc_footprint {
	unsigned line_shift;
	unsigned page_shift;
	struct bc_line_table lines;
	struct bc_line_table pages;
	uint64_t references; /* to memory */
	uint64_t others;     /* references that are none: I/O, special cycles, ... */
	uint64_t touches;    /* of lines by references */
	uint64_t first;      /* touches of lines that no reference had touched before */
	uint64_t untracked;  /* touches of lines that there was no room for */
	/* Touches of a line that was touched last up to 2^k references before, and more than
	 * 2^(k-1): 1 for k = 0, 2, 3 to 4, 5 to 8, ... */
	uint64_t reuse[BC_REUSE_BUCKETS];
	bool is_cut;     /* what is counted is counted at least: a reference had more lines */
	bool lines_full; /* the same, for want of room */
	bool pages_full;
	uint64_t addr_low; /* of a memory reference; meant when there are any */
	uint64_t addr_high;
	/* The address spaces met, `space_count` of them, in a hash table of up to 1 MiB. */
	struct bc_retention_slot {
		uint32_t space;
		uint32_t number; /* from 1; 0: a free slot */
	} * spaces;
	size_t space_slots;
	uint32_t space_count;
	struct bc_retention_slot space; /* the last one looked up */
};

/* Returns 0, -ENOMEM, or -EINVAL for options that are not as they should be. Close it in any case.
 */
int bc_footprint_open(
	struct bc_footprint *footprint, const struct bc_footprint_options *options) BC_MUST_CHECK;
void bc_footprint_close(struct bc_footprint *footprint);

/* Touches what BYU records, or an entry that is a reference, refer to. */
void bc_footprint_records(struct bc_footprint *footprint, const uint8_t *records, size_t n);
void bc_footprint_reference(struct bc_footprint *footprint, const struct bc_entry *reference);

#endif
