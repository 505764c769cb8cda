/* A hash table of memory lines or pages, with the ways in which each was touched and its last
 * touch. Its memory is bounded.
 *
 * A block is identified by its number (address / size) and its address space. */
#ifndef BC_FORMATS_STATS_LINE_TABLE_H
#define BC_FORMATS_STATS_LINE_TABLE_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	/* Bits from the top: number of the last touch, from 1; address space; BC_TOUCH_*. 0:
	 * free. */
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

/* The table grows up to max_bytes, counting both the old and the new table while it grows. The
 * minimum is about 1 KiB. Returns 0 or -ENOMEM. */
int bc_line_table_open(struct bc_line_table *table, uint64_t max_bytes) BC_MUST_CHECK;
void bc_line_table_close(struct bc_line_table *table);

static inline size_t bc_line_table_hash(
	const struct bc_line_table *table, uint64_t block, uint64_t space)
{
	return (size_t)(((block ^ space << 48) * UINT64_C(0x9E3779B97F4A7C15)) >> table->shift);
}

static inline void bc_line_table_prefetch(
	const struct bc_line_table *table, uint64_t block, uint64_t space)
{
	__builtin_prefetch(&table->slots[bc_line_table_hash(table, block, space)], 1);
}

enum bc_line_touch {
	BC_LINE_FULL,      /* the block is new and does not fit */
	BC_LINE_CHANGED,   /* the block is new, or had not been touched in this way */
	BC_LINE_UNCHANGED, /* the block had been touched in this way before */
};

/* Records a touch of a block in the ways `touch` (BC_TOUCH_*, or 0). `number` counts touches, from
 * 1 to below BC_LINE_TOUCHES. Sets *before to the number of the block's previous touch, or 0. */
enum bc_line_touch bc_line_table_touch(struct bc_line_table *table, uint64_t block, unsigned space,
	unsigned touch, uint64_t number, uint64_t *before);

/* The same for the usual case: a block of space 0 that was touched in this way before. Returns
 * false in any other case, and changes nothing. */
static inline bool bc_line_table_touch_again(struct bc_line_table *table, uint64_t block,
	unsigned touch, uint64_t number, uint64_t *before)
{
	const uint64_t low_bits = (UINT64_C(1) << BC_LINE_NUMBER_AT) - 1;
	size_t at = bc_line_table_hash(table, block, 0);
	struct bc_line_slot *slot = &table->slots[at];

	while (slot->block != block && slot->state != 0) {
		at = (at + 1) & (table->slot_count - 1);
		slot = &table->slots[at];
	}
	/* The state of a free slot, and of a block of another space, differs. */
	uint64_t state = slot->state;
	if ((state & low_bits) > BC_TOUCH_ALL || (state & touch) != touch || state == 0)
		return false;
	*before = state >> BC_LINE_NUMBER_AT;
	slot->state = number << BC_LINE_NUMBER_AT | (state & low_bits);
	return true;
}

/* The number of blocks touched in at least one of these ways. table->count is the number of all
 * blocks. */
uint64_t bc_line_table_count(const struct bc_line_table *table, unsigned touch);

#endif
