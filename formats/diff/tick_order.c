#include "formats/diff/tick_order.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int bc_tick_order_init(struct bc_tick_order *order, size_t entries)
{
	*order = (struct bc_tick_order){.room = entries};
	order->at = calloc(entries, sizeof(*order->at));
	return order->at != NULL ? 0 : -ENOMEM;
}

void bc_tick_order_free(struct bc_tick_order *order)
{
	free(order->at);
	order->at = NULL;
}

void bc_tick_order_add(
	struct bc_tick_order *order, const struct bc_backlog *backlog, size_t first, size_t n)
{
	for (size_t i = first; i < first + n; i++) {
		if ((backlog->entries[i].has & BC_HAS_TIME) == 0)
			continue;
		assert(order->count < order->room);
		order->at[order->count++] = i;
	}
}

static bool is_before(const struct bc_backlog *backlog, size_t i, uint64_t hash, uint64_t tick)
{
	return backlog->hashes[i] != hash ? backlog->hashes[i] < hash : backlog->ticks[i] < tick;
}

static int compare(const void *x, const void *y, void *context)
{
	const struct bc_backlog *backlog = context;
	size_t i = *(const size_t *)x;
	size_t j = *(const size_t *)y;

	if (is_before(backlog, i, backlog->hashes[j], backlog->ticks[j]))
		return -1;
	if (is_before(backlog, j, backlog->hashes[i], backlog->ticks[i]))
		return 1;
	return (i > j) - (i < j);
}

void bc_tick_order_sort(struct bc_tick_order *order, const struct bc_backlog *backlog)
{
	qsort_r(order->at, order->count, sizeof(*order->at), compare, (void *)(uintptr_t)backlog);
}

size_t bc_tick_order_find(const struct bc_tick_order *order, const struct bc_backlog *backlog,
	uint64_t hash, uint64_t tick)
{
	size_t low = 0;
	size_t high = order->count;

	while (low != high) {
		size_t middle = low + (high - low) / 2;
		if (is_before(backlog, order->at[middle], hash, tick))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
