/* Some of the entries of a backlog in the order of their hashes, and of their ticks where these are
 * equal: to find those that say the same at about the same time, without going through all. */
#ifndef BC_FORMATS_DIFF_TICK_ORDER_H
#define BC_FORMATS_DIFF_TICK_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/diff/backlog.h"

struct bc_tick_order {
	size_t *at; /* `count` indices of entries */
	size_t count;
	size_t room;
};

/* Takes the memory for up to `entries`. Returns 0 or -ENOMEM, with nothing to free. */
int bc_tick_order_init(struct bc_tick_order *order, size_t entries) BC_MUST_CHECK;
void bc_tick_order_free(struct bc_tick_order *order);

/* Adds the entries [first, first + n) of a backlog that have a time, in no order yet: no more than
 * there is room for, count 0 to begin with. */
void bc_tick_order_add(
	struct bc_tick_order *order, const struct bc_backlog *backlog, size_t first, size_t n);

/* Puts them in order; good until the backlog is added to. */
void bc_tick_order_sort(struct bc_tick_order *order, const struct bc_backlog *backlog);

/* The place in at[] of the first entry with this hash, and this tick or a later one; what stands
 * there may be another. `count` if it is behind all. */
size_t bc_tick_order_find(const struct bc_tick_order *order, const struct bc_backlog *backlog,
	uint64_t hash, uint64_t tick);

#endif
