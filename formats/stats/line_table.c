/* Open addressing with linear probing, at most 3/4 full; the top bits of a multiplicative hash
 * choose the first slot. A lookup is made for each reference of a trace, and its cost is the cache
 * miss. One slot of 16 bytes therefore has all of a block's state, and a probe usually stays in one
 * cache line, which the caller can prefetch. Blocks are never removed, so there are no tombstones.
 *
 * A touch is O(1) on average: doubling the table moves every slot once. A block takes 21 to 43
 * bytes, and 64 while the table grows. Blocks are counted by their set of touches, so reading the
 * counts does not scan the table. */
#include "formats/stats/line_table.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SLOTS 32u

int bc_line_table_open(struct bc_line_table *t, uint64_t max_bytes)
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

void bc_line_table_close(struct bc_line_table *t)
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
	size_t at = bc_line_table_hash(t, block, space);

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

enum bc_line_touch bc_line_table_touch(struct bc_line_table *t, uint64_t block, unsigned space,
	unsigned touch, uint64_t number, uint64_t *before)
{
	struct bc_line_slot *slot = find_slot(t, block, space);
	unsigned old = (unsigned)slot->state & BC_TOUCH_ALL;
	bool is_new = slot->state == 0;

	*before = slot->state >> BC_LINE_NUMBER_AT;
	if (is_new) {
		if (t->count >= t->slot_count / 4 * 3) {
			if (!grow_table(t))
				return BC_LINE_FULL;
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
	return is_new || (old | touch) != old ? BC_LINE_CHANGED : BC_LINE_UNCHANGED;
}

uint64_t bc_line_table_count(const struct bc_line_table *t, unsigned touch)
{
	uint64_t sum = 0;

	for (unsigned set = 1; set <= BC_TOUCH_ALL; set++)
		sum += (set & touch) != 0 ? t->touched[set] : 0;
	return sum;
}
