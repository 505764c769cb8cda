#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "formats/bus/page_map.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

static const uint64_t seeds[] = {0, 1, 2, 0x123456789ABCDEF, UINT64_MAX};

#define SEEDS (COUNT_OF(seeds))

/* Computed from the header's description, in another language. */
TEST(the_first_frames_are_those_of_the_seed)
{
	static const struct {
		uint64_t seed;
		uint32_t frames[6]; /* of pages 0, 1, 2, 3, 1023, 1024 */
	} rows[] = {
		{0, {0x29884, 0x04263, 0x2C42D, 0x517BC, 0x38288, 0x8F5F5}},
		{1, {0x10181, 0x65C03, 0x21753, 0x99EDD, 0x4A813, 0x8499B}},
		{UINT64_MAX, {0xB4A1D, 0xE4E33, 0x61819, 0xBABD0, 0xA77BE, 0xCFD7D}},
	};
	static const uint64_t pages[] = {0, 1, 2, 3, 1023, 1024};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct bc_page_map map;
		bc_page_map_init(&map, rows[i].seed);
		assert_int_equal(bc_page_map_touch(&map, 0, 1024), 0);
		for (size_t k = 0; k < 6; k++)
			assert_int_equal(bc_page_map_frame(&map, pages[k]), rows[i].frames[k]);
		bc_page_map_free(&map);
	}
}

/* All frames, each once. Then the table is full, and existing pages keep their frames. */
TEST(every_frame_is_assigned_once)
{
	for (size_t i = 0; i < SEEDS; i += test_stride(5)) {
		struct bc_page_map map;
		uint8_t *seen = calloc(BC_PAGES_MAX, 1);
		assert_non_null(seen);
		bc_page_map_init(&map, seeds[i]);
		for (uint64_t page = 0; page < BC_PAGES_MAX; page++) {
			uint64_t number = page * 0x10000000001 >> 3;
			assert_int_equal(bc_page_map_touch(&map, number, number), 0);
			uint32_t frame = bc_page_map_frame(&map, number);
			assert_true(frame < BC_PAGES_MAX);
			assert_int_equal(seen[frame]++, 0);
		}
		uint32_t last = bc_page_map_frame(&map, 0);
		assert_int_equal(bc_page_map_touch(&map, UINT64_MAX, UINT64_MAX), -ENOSPC);
		assert_int_equal(bc_page_map_touch(&map, 0, 0), 0);
		assert_int_equal(bc_page_map_frame(&map, 0), last);
		bc_page_map_free(&map);
		free(seen);
	}
}

TEST(a_page_keeps_its_frame)
{
	struct dice dice = {.state = 5};
	struct bc_page_map map;
	uint64_t pages[3000];
	uint32_t frames[3000];

	bc_page_map_init(&map, 9);
	for (unsigned i = 0; i < 3000; i++) {
		pages[i] = dice_roll(&dice) >> dice_below(&dice, 52);
		assert_int_equal(bc_page_map_touch(&map, pages[i], pages[i]), 0);
		frames[i] = bc_page_map_frame(&map, pages[i]);
		unsigned before = dice_below(&dice, i + 1);
		assert_int_equal(bc_page_map_touch(&map, pages[before], pages[before]), 0);
		assert_int_equal(bc_page_map_frame(&map, pages[before]), frames[before]);
	}
	for (unsigned i = 0; i < 3000; i++)
		assert_int_equal(bc_page_map_frame(&map, pages[i]), frames[i]);
	bc_page_map_free(&map);
}

TEST(a_range_is_touched_completely_or_not_at_all)
{
	struct bc_page_map map;

	bc_page_map_init(&map, 1);
	assert_int_equal(bc_page_map_touch(&map, 5, 5 + BC_PAGES_MAX), -ENOSPC);
	assert_int_equal(map.count, 0);
	assert_int_equal(bc_page_map_touch(&map, 5, 5), 0);
	assert_int_equal(bc_page_map_touch(&map, 6, 5 + BC_PAGES_MAX), -ENOSPC);
	assert_int_equal(map.count, 1);
	assert_int_equal(bc_page_map_touch(&map, 5, 4 + BC_PAGES_MAX), 0);
	assert_int_equal(map.count, BC_PAGES_MAX);
	assert_int_equal(bc_page_map_touch(&map, 5, 4 + BC_PAGES_MAX), 0);
	assert_int_equal(bc_page_map_touch(&map, 0, UINT64_MAX), -ENOSPC);
	bc_page_map_free(&map);
}
