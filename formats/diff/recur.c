#include "formats/diff/recur.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BASE UINT64_C(0x9E3779B97F4A7C15)

int bc_recur_init(struct bc_recur *recur, size_t items)
{
	*recur = (struct bc_recur){.slot_count = 16, .top = 1};
	while (recur->slot_count < 4 * items)
		recur->slot_count *= 2;
	for (size_t i = 1; i < BC_RECUR_ITEMS; i++)
		recur->top *= BASE;
	recur->slots = calloc(recur->slot_count, sizeof(*recur->slots));
	return recur->slots != NULL ? 0 : -ENOMEM;
}

void bc_recur_free(struct bc_recur *recur)
{
	free(recur->slots);
	recur->slots = NULL;
}

static uint64_t sum(const uint64_t *items)
{
	uint64_t stretch = 0;

	for (size_t i = 0; i < BC_RECUR_ITEMS; i++)
		stretch = stretch * BASE + items[i];
	return stretch;
}

/* Finds the slot of a stretch, or the free slot for it. */
static struct bc_recur_slot *find(const struct bc_recur *recur, uint64_t stretch)
{
	size_t mask = recur->slot_count - 1;
	size_t at = (size_t)((stretch * BASE) >> 20) & mask;

	while (recur->slots[at].end != 0 && recur->slots[at].stretch != stretch)
		at = (at + 1) & mask;
	return &recur->slots[at];
}

void bc_recur_pop(struct bc_recur *recur, const uint64_t *items, size_t count, uint64_t position)
{
	if (count < BC_RECUR_ITEMS)
		return;
	uint64_t end = position + count - BC_RECUR_ITEMS + 1;
	uint64_t from = recur->next > position ? recur->next : position;
	if (recur->used + (end > from ? end - from : 0) > recur->slot_count / 2) {
		memset(recur->slots, 0, recur->slot_count * sizeof(*recur->slots));
		recur->used = 0;
		from = position;
	}
	for (; from < end; from++) {
		const uint64_t *at = items + (from - position);
		bool can_roll = recur->has_any && from == recur->next && from > position;
		recur->stretch = can_roll ? (recur->stretch - at[-1] * recur->top) * BASE +
						    at[BC_RECUR_ITEMS - 1]
					  : sum(at);
		recur->has_any = true;
		recur->next = from + 1;
		struct bc_recur_slot *slot = find(recur, recur->stretch);
		recur->used += slot->end == 0;
		*slot = (struct bc_recur_slot){.stretch = recur->stretch, .end = from + 1};
	}
}

uint64_t bc_recur_end(const struct bc_recur *recur, const uint64_t *items)
{
	return find(recur, sum(items))->end;
}
