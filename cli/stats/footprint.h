/* How much memory the references touch, and how soon they reuse it.
 *
 * Footprint: the number of distinct lines and pages touched by reads, by writes, by fetches and in
 * total. A reference touches each line that it spans, one if its size is 0 or unknown.
 *
 * Reuse: for each line touched by a reference, the memory references since it was last touched: a
 * time, not the number of distinct lines used in between (the stack distance).
 *
 * Each touch is one lookup in a hash table of lines. A table that reaches its memory limit stops
 * growing: lines that do not fit are counted as untracked. */
#ifndef BC_CLI_STATS_FOOTPRINT_H
#define BC_CLI_STATS_FOOTPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/trace/entry.h"

/* A hash table of memory lines or pages, with the ways in which each was touched and its last
 * touch. Its memory is bounded.
 *
 * A block is identified by its number (address / size) and its address space. */

/* Bits of a slot's state. */
#define BC_LINE_TOUCH_BITS 3
#define BC_LINE_SPACE_BITS 16
#define BC_LINE_NUMBER_AT  (BC_LINE_TOUCH_BITS + BC_LINE_SPACE_BITS)

/* How a block was touched. */
enum {
	BC_TOUCH_READ = 1u << 0,
	BC_TOUCH_WRITE = 1u << 1,
	BC_TOUCH_FETCH = 1u << 2,
	BC_TOUCH_ALL = 7,
};

/* Limits: distinct address spaces, and numbered touches. */
#define BC_LINE_SPACES  (1u << BC_LINE_SPACE_BITS)
#define BC_LINE_TOUCHES (UINT64_C(1) << 45)

struct bc_line_slot {
	uint64_t block;
	/* Bits from the top: last touch, from 1; address space; BC_TOUCH_*. 0: free. */
	uint64_t state;
};

struct bc_line_table {
	struct bc_line_slot *slots;
	size_t slot_count; /* a power of two */
	size_t slots_max;
	unsigned shift; /* of the hash */
	uint64_t count;
	/* Blocks touched in exactly this set of ways (BC_TOUCH_*). */
	uint64_t touched[BC_TOUCH_ALL + 1];
};

/* The number of blocks touched in at least one of these ways. table->count: in any way. */
uint64_t bc_line_table_count(const struct bc_line_table *table, unsigned touch);

/* Maximum number of lines counted for one reference. More set `is_cut`. */
#define BC_FOOTPRINT_LINES_MAX 65536u

#define BC_REUSE_BUCKETS 46

struct bc_footprint_options {
	uint64_t line_bytes;   /* power of two */
	uint64_t page_bytes;   /* power of two, at least line_bytes */
	uint64_t memory_bytes; /* limit */
};

struct bc_footprint {
	unsigned line_shift;
	unsigned page_shift;
	struct bc_line_table lines;
	struct bc_line_table pages;
	uint64_t references; /* to memory */
	uint64_t others;     /* references other than to memory: I/O, special cycles, ... */
	uint64_t touches;    /* of lines by references */
	uint64_t first;      /* touches of lines not touched before */
	uint64_t untracked;  /* touches of lines that did not fit */
	/* reuse[k]: touches of a line last touched more than 2^(k-1) and up to 2^k references
	 * before: 1 for k = 0, then 2, 3 to 4, 5 to 8, ... */
	uint64_t reuse[BC_REUSE_BUCKETS];
	bool is_cut;     /* counts are lower bounds: a reference had too many lines */
	bool lines_full; /* counts are lower bounds: the table is full */
	bool pages_full;
	uint64_t addr_low; /* of memory references; valid if there are any */
	uint64_t addr_high;
	struct bc_line_table
		spaces; /* its blocks are address spaces, touched once, by their number */
};

/* Returns 0, -ENOMEM, or -EINVAL for invalid options. Call bc_footprint_close() in any case. */
int bc_footprint_open(
	struct bc_footprint *footprint, const struct bc_footprint_options *options) BC_MUST_CHECK;
void bc_footprint_close(struct bc_footprint *footprint);

/* Count the memory touched by BYU records, or by an entry that is a reference. */
void bc_footprint_records(struct bc_footprint *footprint, const uint8_t *records, size_t n);
void bc_footprint_reference(struct bc_footprint *footprint, const struct bc_entry *reference);

#endif
