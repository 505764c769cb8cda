/* Indices of entries in a backlog, sorted by hash and then by tick, to find equal entries at about
 * the same time quickly. */
#ifndef BC_FORMATS_DIFF_TICK_ORDER_H
#define BC_FORMATS_DIFF_TICK_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/diff/backlog.h"

struct bc_tick_order {
	size_t *at; /* `count` indices */
	size_t count;
	size_t room;
};

/* Allocates memory for up to `entries`. Returns 0, or -ENOMEM with nothing to free. */
int bc_tick_order_init(struct bc_tick_order *order, size_t entries) BC_MUST_CHECK;
void bc_tick_order_free(struct bc_tick_order *order);

/* Appends those of the entries [first, first + n) of a backlog that have a time, unsorted. There
 * must be room for them. Set count to 0 before the first call. */
void bc_tick_order_add(
	struct bc_tick_order *order, const struct bc_backlog *backlog, size_t first, size_t n);

/* Sorts the indices. They are valid until the next bc_backlog_add(). */
void bc_tick_order_sort(struct bc_tick_order *order, const struct bc_backlog *backlog);

/* Index in at[] of the first entry with this hash and this tick or a later one. The entry found may
 * be a different one. Returns `count` if there is none. */
size_t bc_tick_order_find(const struct bc_tick_order *order, const struct bc_backlog *backlog,
	uint64_t hash, uint64_t tick);

#endif
