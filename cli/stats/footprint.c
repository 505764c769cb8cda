/* Open addressing with linear probing, at most 3/4 full; the top bits of a multiplicative hash
 * choose the first slot. A lookup is made for each reference of a trace, and its cost is the cache
 * miss. One slot of 16 bytes therefore has all of a block's state, and a probe usually stays in one
 * cache line, which the caller can prefetch. Blocks are never removed, so there are no tombstones.
 *
 * A touch is O(1) on average: doubling the table moves every slot once. A block takes 21 to 43
 * bytes, and 64 while the table grows. Blocks are counted by their set of touches, so reading the
 * counts does not scan the table. */
#include "cli/stats/footprint.h"

#include <errno.h>
#include <stdlib.h>

#include "formats/bus/record.h"

#define FIRST_SLOTS 32u

enum line_touch {
	LINE_FULL,      /* the block is new and does not fit */
	LINE_CHANGED,   /* the block is new, or had not been touched in this way */
	LINE_UNCHANGED, /* the block had been touched in this way before */
};

static inline size_t line_table_hash(
	const struct bc_line_table *table, uint64_t block, uint64_t space)
{
	return (size_t)(((block ^ space << 48) * UINT64_C(0x9E3779B97F4A7C15)) >> table->shift);
}

static inline void line_table_prefetch(
	const struct bc_line_table *table, uint64_t block, uint64_t space)
{
	__builtin_prefetch(&table->slots[line_table_hash(table, block, space)], 1);
}

/* The table grows up to max_bytes, counting both the old and the new table while it grows. The
 * minimum is about 1 KiB. Returns 0 or -ENOMEM. */
static int line_table_open(struct bc_line_table *t, uint64_t max_bytes)
{
	*t = (struct bc_line_table){.slot_count = FIRST_SLOTS, .slots_max = FIRST_SLOTS};
	/* Growing needs the old table and one of twice its size at the same time. */
	while (t->slots_max <= SIZE_MAX / 2 / sizeof(*t->slots) / 2 &&
		t->slots_max * 2 + t->slots_max <= max_bytes / sizeof(*t->slots))
		t->slots_max *= 2;
	t->shift = 64 - (unsigned)__builtin_ctzll(FIRST_SLOTS);
	t->slots = calloc(FIRST_SLOTS, sizeof(*t->slots));
	return t->slots != NULL ? 0 : -ENOMEM;
}

static void line_table_close(struct bc_line_table *t)
{
	free(t->slots);
	t->slots = NULL;
}

static bool is_slot_of(const struct bc_line_slot *slot, uint64_t block, uint64_t space)
{
	return slot->block == block &&
	       (slot->state >> BC_LINE_TOUCH_BITS & ((1u << BC_LINE_SPACE_BITS) - 1)) == space;
}

static struct bc_line_slot *find_slot(const struct bc_line_table *t, uint64_t block, uint64_t space)
{
	size_t mask = t->slot_count - 1;
	size_t at = line_table_hash(t, block, space);

	while (t->slots[at].state != 0 && !is_slot_of(&t->slots[at], block, space))
		at = (at + 1) & mask;
	return &t->slots[at];
}

/* Doubles the table. Returns false at the limit or if out of memory; the table is then full. */
static bool grow_table(struct bc_line_table *t)
{
	struct bc_line_table old = *t;

	if (t->slot_count == t->slots_max)
		return false;
	t->slots = calloc(old.slot_count * 2, sizeof(*t->slots));
	if (t->slots == NULL) {
		t->slots = old.slots;
		t->slots_max = t->slot_count;
		return false;
	}
	t->slot_count = old.slot_count * 2;
	t->shift--;
	for (size_t i = 0; i < old.slot_count; i++) {
		const struct bc_line_slot *slot = &old.slots[i];
		uint64_t space = slot->state >> BC_LINE_TOUCH_BITS &
				 ((1u << BC_LINE_SPACE_BITS) - 1);
		if (slot->state != 0)
			*find_slot(t, slot->block, space) = *slot;
	}
	free(old.slots);
	return true;
}

/* Records a touch of a block in the ways `touch` (BC_TOUCH_*, or 0). `number` counts touches, from
 * 1 to below BC_LINE_TOUCHES. Sets *before to the number of the block's previous touch, or 0. */
static enum line_touch line_table_touch(struct bc_line_table *t, uint64_t block, unsigned space,
	unsigned touch, uint64_t number, uint64_t *before)
{
	struct bc_line_slot *slot = find_slot(t, block, space);
	unsigned old = (unsigned)slot->state & BC_TOUCH_ALL;
	bool is_new = slot->state == 0;

	*before = slot->state >> BC_LINE_NUMBER_AT;
	if (is_new) {
		if (t->count >= t->slot_count / 4 * 3) {
			if (!grow_table(t))
				return LINE_FULL;
			slot = find_slot(t, block, space);
		}
		slot->block = block;
		t->count++;
		t->touched[touch]++;
	} else if ((old | touch) != old) {
		t->touched[old]--;
		t->touched[old | touch]++;
	}
	slot->state = number << BC_LINE_NUMBER_AT | (uint64_t)space << BC_LINE_TOUCH_BITS | old |
		      touch;
	return is_new || (old | touch) != old ? LINE_CHANGED : LINE_UNCHANGED;
}

/* The same for the usual case: a block of space 0 that was touched in this way before. Returns
 * false in any other case, and changes nothing. */
static inline bool line_table_touch_again(struct bc_line_table *table, uint64_t block,
	unsigned touch, uint64_t number, uint64_t *before)
{
	const uint64_t low_bits = (UINT64_C(1) << BC_LINE_NUMBER_AT) - 1;
	size_t at = line_table_hash(table, block, 0);
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

uint64_t bc_line_table_count(const struct bc_line_table *t, unsigned touch)
{
	uint64_t sum = 0;

	for (unsigned set = 1; set <= BC_TOUCH_ALL; set++)
		sum += (set & touch) != 0 ? t->touched[set] : 0;
	return sum;
}

/* ---- footprint */

/* Records to prefetch ahead, so that a line's slot is in the cache when it is needed. */
#define PREFETCH_AHEAD 16

#define NO_MEMORY 0xFF

/* Enough for BC_LINE_SPACES blocks. */
#define SPACES_BYTES (4u << 20)

static bool is_power_of_two(uint64_t n)
{
	return n != 0 && (n & (n - 1)) == 0;
}

int bc_footprint_open(struct bc_footprint *f, const struct bc_footprint_options *options)
{
	*f = (struct bc_footprint){.addr_low = UINT64_MAX};
	if (!is_power_of_two(options->line_bytes) || !is_power_of_two(options->page_bytes) ||
		options->page_bytes < options->line_bytes)
		return -EINVAL;
	f->line_shift = (unsigned)__builtin_ctzll(options->line_bytes);
	f->page_shift = (unsigned)__builtin_ctzll(options->page_bytes);
	/* There are at least as many lines as pages, and usually many more. */
	if (line_table_open(&f->lines, options->memory_bytes / 4 * 3) != 0 ||
		line_table_open(&f->pages, options->memory_bytes / 4) != 0 ||
		line_table_open(&f->spaces, SPACES_BYTES) != 0)
		return -ENOMEM;
	return 0;
}

void bc_footprint_close(struct bc_footprint *f)
{
	line_table_close(&f->lines);
	line_table_close(&f->pages);
	line_table_close(&f->spaces);
}

/* How a reference of this type touches memory, or NO_MEMORY. */
static unsigned touch_of(unsigned type)
{
	switch (type) {
	case BC_REQ_FETCH:
		return BC_TOUCH_FETCH;
	case BC_REQ_MEMREAD:
	case BC_REQ_MEMREADINV:
		return BC_TOUCH_READ;
	case BC_REQ_MEMWRITE:
	case BC_REF_COPYBACK:
		return BC_TOUCH_WRITE;
	case BC_REF_MODIFY:
		return BC_TOUCH_READ | BC_TOUCH_WRITE;
	case BC_REF_MISC:
	case BC_REF_LETTER:
		return 0;
	default:
		return NO_MEMORY;
	}
}

/* n is at least 1. */
static inline unsigned log2_up(uint64_t n)
{
	return 63 - (unsigned)__builtin_clzll((n - 1) << 1 | 1);
}

static inline void touch_line(struct bc_footprint *f, uint64_t line, unsigned space, unsigned how)
{
	uint64_t page = line >> (f->page_shift - f->line_shift);
	uint64_t before;
	enum line_touch found = line_table_touch(
		&f->lines, line, space, how, f->references, &before);

	f->touches++;
	if (found == LINE_FULL) {
		f->lines_full = true;
		f->untracked++;
	} else if (before == 0) {
		f->first++;
	} else {
		f->reuse[log2_up(f->references - before)]++;
	}
	/* If the line was touched in this way before, so was its page. */
	if (found != LINE_UNCHANGED &&
		line_table_touch(&f->pages, page, space, how, 1, &before) == LINE_FULL)
		f->pages_full = true;
}

static void count_untracked(struct bc_footprint *f)
{
	f->touches++;
	f->untracked++;
	f->lines_full = f->pages_full = true;
}

static inline void touch_range(
	struct bc_footprint *f, uint64_t addr, uint32_t size, unsigned space, unsigned how)
{
	uint64_t last;

	/* An access beyond the last address is cut there. */
	if (__builtin_add_overflow(addr, size != 0 ? size - 1 : 0, &last))
		last = UINT64_MAX;
	f->addr_low = addr < f->addr_low ? addr : f->addr_low;
	f->addr_high = last > f->addr_high ? last : f->addr_high;
	if (++f->references >= BC_LINE_TOUCHES) {
		count_untracked(f);
		return;
	}
	uint64_t line = addr >> f->line_shift;
	uint64_t lines = (last >> f->line_shift) - line;
	if (lines >= BC_FOOTPRINT_LINES_MAX) {
		lines = BC_FOOTPRINT_LINES_MAX - 1;
		f->is_cut = true;
	}
	for (uint64_t i = 0; i <= lines; i++)
		touch_line(f, line + i, space, how);
}

/* Most records touch one line, which was touched in this way before. They are counted here; the
 * others are left to touch_range(). */
void bc_footprint_records(struct bc_footprint *f, const uint8_t *records, size_t n)
{
	uint8_t touches[256]; /* touch_of() */
	uint64_t low = f->addr_low;
	uint64_t high = f->addr_high;
	bool is_countable = f->references + n < BC_LINE_TOUCHES;

	for (unsigned type = 0; type < 256; type++)
		touches[type] = (uint8_t)touch_of(type);
	for (size_t i = 0; i < n; i++) {
		const uint8_t *p = records + i * BC_RECORD_BYTES;
		unsigned how = touches[p[4]];
		uint64_t before;
		if (i + PREFETCH_AHEAD < n)
			line_table_prefetch(&f->lines,
				(uint64_t)bc_le32(p + PREFETCH_AHEAD * BC_RECORD_BYTES) >>
					f->line_shift,
				0);
		if (how == NO_MEMORY) {
			f->others++;
			continue;
		}
		uint64_t addr = bc_burst_start(bc_le32(p), p[5]);
		uint64_t last = addr + p[5] - (p[5] != 0);
		uint64_t line = addr >> f->line_shift;
		if (line != last >> f->line_shift || !is_countable ||
			!line_table_touch_again(&f->lines, line, how, f->references + 1, &before)) {
			touch_range(f, addr, p[5], 0, how);
			continue;
		}
		low = addr < low ? addr : low;
		high = last > high ? last : high;
		f->references++;
		f->touches++;
		f->reuse[log2_up(f->references - before)]++;
	}
	f->addr_low = low < f->addr_low ? low : f->addr_low;
	f->addr_high = high > f->addr_high ? high : f->addr_high;
}

/* Finds or assigns the number of an address space, the count at its only touch. Returns false if
 * there are too many. */
static bool find_space(struct bc_footprint *f, uint32_t space, unsigned *number)
{
	const struct bc_line_slot *slot = find_slot(&f->spaces, space, 0);
	uint64_t before;

	if (slot->state == 0) {
		if (f->spaces.count == BC_LINE_SPACES ||
			line_table_touch(&f->spaces, space, 0, 0, f->spaces.count + 1, &before) ==
				LINE_FULL)
			return false;
		slot = find_slot(&f->spaces, space, 0);
	}
	*number = (unsigned)(slot->state >> BC_LINE_NUMBER_AT) - 1;
	return true;
}

void bc_footprint_reference(struct bc_footprint *f, const struct bc_entry *reference)
{
	unsigned how = touch_of(reference->type);
	unsigned space = 0;

	if (how == NO_MEMORY) {
		f->others++;
		return;
	}
	if ((reference->has & BC_HAS_SPACE) != 0 && !find_space(f, reference->space, &space)) {
		f->references++;
		count_untracked(f);
		return;
	}
	touch_range(f, bc_entry_start(reference), reference->size, space, how);
}
