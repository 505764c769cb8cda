/* Open addressing with linear probing, at most half full, or 3/4 at the memory limit; the top bits
 * of a multiplicative hash choose a block's home, the first slot. A block that is found elsewhere
 * changes places with the one in its home, so that the latest blocks are at home, where the fast
 * path looks for them. Blocks are never removed, so there are no tombstones. Invariant: all slots
 * from a block's home to its own are used.
 *
 * A lookup is made for each reference of a trace, and its cost is the cache miss. One slot of 16
 * bytes therefore has all of a block's state, and the homes of a batch of records are prefetched.
 * Large tables are in huge pages, because page faults are slow.
 *
 * A touch is O(1) on average: doubling the table moves every slot once. A block takes 32 to 64
 * bytes, and 96 while the table grows. Blocks are counted by their set of touches, so reading the
 * counts does not scan the table. */
#include "cli/stats/footprint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/host.h"
#include "formats/bus/record.h"

#define FIRST_SLOTS 32u

/* Larger tables are in huge pages. */
#define SMALL_TABLE_BYTES ((size_t)1 << 20)

enum line_touch {
	LINE_FULL,      /* the block is new and does not fit */
	LINE_CHANGED,   /* the block is new, or had not been touched in this way */
	LINE_UNCHANGED, /* the block had been touched in this way before */
};

/* The index of a block's first slot. */
static inline size_t home_of(unsigned shift, uint64_t block, uint64_t space)
{
	return (size_t)(((block ^ space << 48) * UINT64_C(0x9E3779B97F4A7C15)) >> shift);
}

/* Returns free slots, or NULL if out of memory. */
static struct bc_line_slot *alloc_slots(size_t count)
{
	size_t bytes = count * sizeof(struct bc_line_slot);

	if (bytes <= SMALL_TABLE_BYTES)
		return calloc(1, bytes);
	struct bc_line_slot *slots = bc_huge_alloc(bytes);
	if (slots != NULL)
		memset(slots, 0, bytes);
	return slots;
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
	t->slots = alloc_slots(FIRST_SLOTS);
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
	size_t at = home_of(t->shift, block, space);

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
	t->slots = alloc_slots(old.slot_count * 2);
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
	struct bc_line_slot *home = &t->slots[home_of(t->shift, block, space)];
	unsigned old = (unsigned)slot->state & BC_TOUCH_ALL;
	bool is_new = slot->state == 0;

	*before = slot->state >> BC_LINE_NUMBER_AT;
	if (is_new) {
		if (t->count >= t->slot_count / 2) {
			if (!grow_table(t) && t->count >= t->slot_count / 4 * 3)
				return LINE_FULL;
			slot = find_slot(t, block, space);
		}
		slot->block = block;
		t->count++;
		t->touched[touch]++;
	} else {
		struct bc_line_slot other = *home;
		*home = *slot;
		*slot = other;
		slot = home;
		t->touched[old]--;
		t->touched[old | touch]++;
	}
	slot->state = number << BC_LINE_NUMBER_AT | (uint64_t)space << BC_LINE_TOUCH_BITS | old |
		      touch;
	return is_new || (old | touch) != old ? LINE_CHANGED : LINE_UNCHANGED;
}

uint64_t bc_line_table_count(const struct bc_line_table *t, unsigned touch)
{
	uint64_t sum = 0;

	for (unsigned set = 1; set <= BC_TOUCH_ALL; set++)
		sum += (set & touch) != 0 ? t->touched[set] : 0;
	return sum;
}

/* ---- footprint */

/* Records whose lines are prefetched before they are counted. */
#define BATCH_RECORDS 64u

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
	const int plain = bc_ref_type_plain(type);

	return type == BC_REF_MODIFY                          ? BC_TOUCH_READ | BC_TOUCH_WRITE
	       : type == BC_REF_MISC || type == BC_REF_LETTER ? 0
	       : plain == BC_REQ_FETCH                        ? BC_TOUCH_FETCH
	       : plain == BC_REQ_MEMREAD                      ? BC_TOUCH_READ
	       : plain == BC_REQ_MEMWRITE                     ? BC_TOUCH_WRITE
							      : NO_MEMORY;
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

/* What the fast path must know of a record's type and size. */
struct record_kinds {
	uint64_t needs[256];     /* touch_of() a type; all bits, which no line has, for NO_MEMORY */
	uint32_t addr_mask[256]; /* of bc_burst_start(), by size */
};

static void set_kinds(struct record_kinds *kinds)
{
	for (unsigned i = 0; i < 256; i++) {
		kinds->needs[i] = touch_of(i) != NO_MEMORY ? touch_of(i) : UINT64_MAX;
		kinds->addr_mask[i] = (uint32_t)bc_burst_start(UINT32_MAX, i);
	}
}

/* Counts up to BATCH_RECORDS records, and fewer if the table grows. Returns their number.
 *
 * Most records touch one line, which is at home in space 0, and was touched in this way before.
 * They are counted here; the others are left to touch_range(). */
static size_t count_batch(
	struct bc_footprint *f, const struct record_kinds *kinds, const uint8_t *records, size_t n)
{
	const uint64_t low_bits = (UINT64_C(1) << BC_LINE_NUMBER_AT) - 1;
	struct bc_line_slot *homes[BATCH_RECORDS];
	struct bc_line_slot *slots = f->lines.slots;
	unsigned table_shift = f->lines.shift;
	unsigned line_shift = f->line_shift;
	uint64_t references = f->references;
	uint64_t low = f->addr_low;
	uint64_t high = f->addr_high;
	uint64_t others = 0;
	const uint8_t *p = records;
	size_t i;

	for (i = 0; i < n; i++, p += BC_RECORD_BYTES) {
		uint64_t addr = bc_le32(p) & kinds->addr_mask[p[5]];
		uint64_t line = addr >> line_shift;
		homes[i] = &slots[home_of(table_shift, line, 0)];
		__builtin_prefetch(homes[i], 1);
	}
	p = records;
	for (i = 0; i < n && slots == f->lines.slots; i++, p += BC_RECORD_BYTES) {
		uint64_t need = kinds->needs[p[4]];
		uint64_t addr = bc_le32(p) & kinds->addr_mask[p[5]];
		uint64_t last = addr + p[5] - (p[5] != 0);
		uint64_t line = addr >> line_shift;
		uint64_t state = homes[i]->state;
		/* The state of a free slot, and of a block of another space, differs. */
		if (references < BC_LINE_TOUCHES - 1 && line == last >> line_shift &&
			line == homes[i]->block &&
			(state & ((low_bits & ~(uint64_t)BC_TOUCH_ALL) | need)) == need) {
			low = addr < low ? addr : low;
			high = last > high ? last : high;
			references++;
			homes[i]->state = references << BC_LINE_NUMBER_AT | (state & low_bits);
			f->reuse[log2_up(references - (state >> BC_LINE_NUMBER_AT))]++;
			continue;
		}
		others++;
		if (need > BC_TOUCH_ALL) {
			f->others++;
			continue;
		}
		f->references = references;
		touch_range(f, addr, p[5], 0, (unsigned)need);
		references = f->references;
	}
	f->references = references;
	f->touches += i - others;
	f->addr_low = low < f->addr_low ? low : f->addr_low;
	f->addr_high = high > f->addr_high ? high : f->addr_high;
	return i;
}

void bc_footprint_records(struct bc_footprint *f, const uint8_t *records, size_t n)
{
	struct record_kinds kinds;

	set_kinds(&kinds);
	for (size_t done; n != 0; n -= done, records += done * BC_RECORD_BYTES)
		done = count_batch(f, &kinds, records, n < BATCH_RECORDS ? n : BATCH_RECORDS);
}

/* Finds the number of an address space, or assigns one. Returns false if there are too many. */
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
	if ((reference->traits & BC_TRAIT_SPACE) != 0 && !find_space(f, reference->space, &space)) {
		f->references++;
		count_untracked(f);
		return;
	}
	touch_range(f, bc_entry_start(reference), reference->size, space, how);
}
