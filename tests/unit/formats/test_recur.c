#include <string.h>

#include "formats/diff/recur.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define ITEMS 3000u
#define KNOWN 400u

/* Loops with any number of rounds: some stretches recur, and others do not. */
static void make_row(uint64_t *items)
{
	struct dice dice = {.state = 99};

	for (size_t n = 0; n < ITEMS;) {
		uint64_t base = dice_below(&dice, 3);
		for (uint32_t rounds = dice_below(&dice, 300); rounds != 0 && n < ITEMS; rounds--)
			items[n++] = base * 100 + rounds % 5;
		if (n < ITEMS)
			items[n++] = dice_below(&dice, 2);
	}
}

/* 1 + the last position of the stretch in [from, end), found by a linear search. */
static uint64_t look(const uint64_t *row, size_t from, size_t end, const uint64_t *stretch)
{
	for (size_t i = end - BC_RECUR_ITEMS + 1; i-- > from;)
		if (memcmp(row + i, stretch, BC_RECUR_ITEMS * sizeof(*row)) == 0)
			return i + 1;
	return 0;
}

TEST(a_stretch_is_found_at_its_last_position)
{
	uint64_t row[ITEMS];
	struct bc_recur recur;
	struct dice dice = {.state = 5};

	make_row(row);
	assert_int_equal(bc_recur_init(&recur, KNOWN), 0);
	for (size_t at = 0; at + BC_RECUR_ITEMS < ITEMS;) {
		size_t count = ITEMS - at < KNOWN ? ITEMS - at : KNOWN;
		bc_recur_pop(&recur, row + at, count, at);
		for (size_t i = 0; i + BC_RECUR_ITEMS <= ITEMS; i++) {
			uint64_t wanted = look(row, at, at + count, row + i);
			uint64_t end = bc_recur_end(&recur, row + i);
			/* Positions added before may still be known. */
			assert_true(wanted != 0 ? end == wanted : end <= at);
		}
		at += 1 + dice_below(&dice, KNOWN + 100);
	}
	bc_recur_free(&recur);
}

TEST(too_few_items_are_not_a_stretch)
{
	uint64_t row[BC_RECUR_ITEMS] = {0};
	struct bc_recur recur;

	assert_int_equal(bc_recur_init(&recur, 1), 0);
	for (size_t n = 0; n < BC_RECUR_ITEMS; n++) {
		bc_recur_pop(&recur, row, n, 7);
		assert_int_equal(bc_recur_end(&recur, row), 0);
	}
	bc_recur_pop(&recur, row, BC_RECUR_ITEMS, 7);
	assert_int_equal(bc_recur_end(&recur, row), 8);
	bc_recur_free(&recur);
}
