/* Compares formats/diff/tick_order.h with a linear search. */

#include "formats/diff/compare.h"
#include "formats/diff/tick_order.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define ENTRIES 40u
#define FIELDS  (BC_FIELD_KIND | BC_FIELD_ADDR)

static void fill(struct bc_backlog *backlog, struct dice *dice)
{
	for (unsigned i = 0; i < ENTRIES; i++) {
		struct bc_entry entry;
		bc_entry_reference(&entry, BC_REQ_MEMREAD, dice_below(dice, 3), i);
		entry.has = dice_below(dice, 5) != 0 ? BC_HAS_TIME : 0;
		entry.tick = dice_below(dice, 10);
		assert_true(bc_backlog_add(backlog, &entry, FIELDS));
	}
}

/* Checks the entries with a hash, from a tick on, ordered by tick and index. */
static void check(
	const struct bc_tick_order *order, const struct bc_backlog *b, uint64_t hash, uint64_t tick)
{
	size_t found = bc_tick_order_find(order, b, hash, tick);
	size_t wanted = 0;

	for (size_t i = 0; i < order->count; i++)
		wanted += b->hashes[order->at[i]] == hash && b->ticks[order->at[i]] >= tick;
	for (size_t n = 0; n < wanted; n++) {
		size_t at = order->at[found + n];
		assert_true(b->hashes[at] == hash && b->ticks[at] >= tick);
		if (n == 0)
			continue;
		size_t before = order->at[found + n - 1];
		assert_true(b->ticks[before] < b->ticks[at] ||
			    (b->ticks[before] == b->ticks[at] && before < at));
	}
	if (found + wanted < order->count)
		assert_true(b->hashes[order->at[found + wanted]] != hash);
}

TEST(entries_are_found_by_hash_and_tick)
{
	struct dice dice = {.state = 5};

	for (unsigned round = 0; round < 200; round++) {
		struct bc_backlog backlog;
		struct bc_tick_order order;
		size_t timed = 0;
		assert_int_equal(bc_backlog_init(&backlog, ENTRIES), 0);
		assert_int_equal(bc_tick_order_init(&order, ENTRIES), 0);
		fill(&backlog, &dice);
		bc_tick_order_add(&order, &backlog, backlog.begin, 7);
		bc_tick_order_add(&order, &backlog, backlog.begin + 7, ENTRIES - 7);
		bc_tick_order_sort(&order, &backlog);
		for (unsigned i = 0; i < ENTRIES; i++) {
			timed += (backlog.entries[i].has & BC_HAS_TIME) != 0;
			for (uint64_t tick = 0; tick < 12; tick++)
				check(&order, &backlog, backlog.hashes[i], tick);
		}
		assert_int_equal(order.count, timed);
		check(&order, &backlog, UINT64_MAX, 0);
		bc_tick_order_free(&order);
		bc_backlog_free(&backlog);
	}
}
