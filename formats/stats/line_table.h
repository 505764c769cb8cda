/* A set of lines or pages of memory, each with what touched it and when last; in bounded memory.
 *
 * A block is known by its number (address / its size) and its address space. */
#ifndef BC_FORMATS_STATS_LINE_TABLE_H
#define BC_FORMATS_STATS_LINE_TABLE_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a block was touched. */
enum {
	BC_TOUCH_READ = 1u << 0,
	BC_TOUCH_WRITE = 1u << 1,
	BC_TOUCH_FETCH = 1u << 2,
	BC_TOUCH_ALL = 7,
};

/* Address spaces that are told apart, and touches that can be numbered. */
#define BC_LINE_SPACES  (1u << 16)
#define BC_LINE_TOUCHES (UINT64_C(1) << 45)

struct bc_line_slot {
	uint64_t block;
	/* The number of the last touch, from 1; the space; and BC_TOUCH_*. 0: a free slot. */
	uint64_t state;
};

struct bc_line_table {
	struct bc_line_slot *slots;
	size_t slot_count; /* a power of two */
	size_t slots_max;
	unsigned shift; /* of the hash */
	uint64_t count;
	/* By set of BC_TOUCH_*: the blocks that were touched in just these ways. */
	uint64_t touched[BC_TOUCH_ALL + 1];
};

/* Takes up to max_bytes as it grows, the old table beside the new one included; less than some 1
 * KiB are taken all the same. Returns 0 or -ENOMEM. */
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
	BC_LINE_FULL,      /* the block is new, and there is no room for it */
	BC_LINE_CHANGED,   /* it is new, or was not touched in this way before */
	BC_LINE_AS_BEFORE, /* it was touched in this way before */
};

/* Touches a block in the ways `touch` (BC_TOUCH_*, or 0); `number` counts touches, from 1 to below
 * BC_LINE_TOUCHES. *before: the number of the block's last touch, 0 if it had none. */
enum bc_line_touch bc_line_table_touch(struct bc_line_table *table, uint64_t block, unsigned space,
	unsigned touch, uint64_t number, uint64_t *before);

/* How many blocks were touched in one of these ways at least. table->count: in any, or none of
 * these. */
uint64_t bc_line_table_count(const struct bc_line_table *table, unsigned touch);

#endif
