/* Whether a stretch of a row comes up once more further on: a look-up that tells, for little, that
 * there is no use in a search. The row is given as numbers, one an item, and grows at its end. */
#ifndef BC_FORMATS_DIFF_RECUR_H
#define BC_FORMATS_DIFF_RECUR_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Items of a stretch. */
#define BC_RECUR_ITEMS 64u

struct bc_recur_slot {
	uint64_t stretch;
	uint64_t end; /* one more than the last position it was seen at; 0: the slot is free */
};

struct bc_recur {
	struct bc_recur_slot *slots;
	size_t slot_count;
	size_t used;
	uint64_t next;    /* the position to be taken in next */
	uint64_t stretch; /* the number of the one before it */
	uint64_t top;     /* what the oldest item of a stretch is multiplied by */
	bool has_any;
};

/* Takes the memory for rows of which `items` are known at a time. Returns 0 or -ENOMEM, with
 * nothing to free. */
int bc_recur_init(struct bc_recur *recur, size_t items) BC_MUST_CHECK;
void bc_recur_free(struct bc_recur *recur);

/* Takes in the items that are known now, of which the first has this position in the row; what was
 * taken in before is kept while there is room. */
void bc_recur_pop(struct bc_recur *recur, const uint64_t *items, size_t count, uint64_t position);

/* One more than the last position at which the stretch that begins with these BC_RECUR_ITEMS comes
 * up, or 0. Another stretch may hardly be taken for it, but none is missed. */
uint64_t bc_recur_end(const struct bc_recur *recur, const uint64_t *items);

#endif
