/* Tells whether a stretch of a row occurs again later in the row. This cheap lookup avoids useless
 * searches. The row is given as one hash per item and grows at its end. */
#ifndef BC_FORMATS_DIFF_RECUR_H
#define BC_FORMATS_DIFF_RECUR_H

#include "formats/base/must_check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of a stretch. */
#define BC_RECUR_ITEMS 64u

struct bc_recur_slot {
	uint64_t stretch;
	uint64_t end; /* 1 + the last position where it was seen; 0: free */
};

struct bc_recur {
	struct bc_recur_slot *slots;
	size_t slot_count;
	size_t used;
	uint64_t next;    /* next position to add */
	uint64_t stretch; /* rolling hash of the previous stretch */
	uint64_t top;     /* factor of the oldest item in the hash */
	bool has_any;
};

/* Allocates memory for rows of which `items` are known at a time. Returns 0, or -ENOMEM with
 * nothing to free. */
int bc_recur_init(struct bc_recur *recur, size_t items) BC_MUST_CHECK;
void bc_recur_free(struct bc_recur *recur);

/* Adds the items known now; the first is at this position in the row. Items added before are kept
 * while there is room. */
void bc_recur_pop(struct bc_recur *recur, const uint64_t *items, size_t count, uint64_t position);

/* 1 + the last position of the stretch that starts with these BC_RECUR_ITEMS items, or 0. A hash
 * collision may give a false position, but an occurrence is never missed. */
uint64_t bc_recur_end(const struct bc_recur *recur, const uint64_t *items);

#endif
