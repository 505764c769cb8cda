#include "formats/bus/page_map.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define GOLDEN     UINT64_C(0x9E3779B97F4A7C15)
#define FIRST_BITS 11

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
	return x ^ x >> 31;
}

void bc_page_map_init(struct bc_page_map *map, uint64_t seed)
{
	*map = (struct bc_page_map){.bits = 0};
	for (uint64_t r = 0; r < 4; r++)
		map->keys[r] = (uint32_t)(mix(seed + (r + 1) * GOLDEN) >> 32);
}

void bc_page_map_free(struct bc_page_map *map)
{
	free(map->pages);
	free(map->slots);
	map->pages = NULL;
	map->slots = NULL;
	map->count = 0;
	map->bits = 0;
}

static uint32_t permute(const struct bc_page_map *map, uint32_t k)
{
	uint32_t left = k >> 10;
	uint32_t right = k & 1023;

	for (unsigned r = 0; r < 4; r++) {
		uint32_t next = left ^ ((right ^ map->keys[r]) * UINT32_C(0x9E3779B1) >> 22);
		left = right;
		right = next;
	}
	return left << 10 | right;
}

/* The slot of a page, or the free slot where it belongs. */
static uint32_t *find_slot(const struct bc_page_map *map, uint64_t page)
{
	uint32_t mask = (1u << map->bits) - 1;
	uint32_t at = (uint32_t)(page * GOLDEN >> (64 - map->bits));

	while (map->slots[at] != 0 && map->pages[map->slots[at] - 1] != page)
		at = (at + 1) & mask;
	return &map->slots[at];
}

/* Makes room for one more page. */
static int grow_map(struct bc_page_map *map)
{
	uint32_t bits = map->bits != 0 ? map->bits + 1 : FIRST_BITS;

	if (map->bits != 0 && (map->count < 1u << (map->bits - 1) || map->count == BC_PAGES_MAX))
		return 0;
	uint64_t *list = realloc(map->pages, sizeof(*list) << (bits - 1));
	if (list == NULL)
		return -ENOMEM;
	map->pages = list;
	uint32_t *slots = calloc((size_t)1 << bits, sizeof(*slots));
	if (slots == NULL)
		return -ENOMEM;
	free(map->slots);
	map->slots = slots;
	map->bits = bits;
	for (uint32_t i = 0; i < map->count; i++)
		*find_slot(map, list[i]) = i + 1;
	return 0;
}

int bc_page_map_touch(struct bc_page_map *map, uint64_t first, uint64_t last)
{
	assert(first <= last);
	if (map->count != 0 && first == last && first == map->last_page)
		return 0;
	for (uint64_t page = first;; page++) {
		int rc = grow_map(map);
		if (rc != 0)
			return rc;
		uint32_t *slot = find_slot(map, page);
		if (*slot == 0) {
			if (map->count == BC_PAGES_MAX)
				return -ENOSPC;
			map->pages[map->count++] = page;
			*slot = map->count;
		}
		map->last_page = page;
		map->last_frame = permute(map, *slot - 1);
		if (page == last)
			return 0;
	}
}

uint32_t bc_page_map_frame(struct bc_page_map *map, uint64_t page)
{
	assert(map->count != 0);
	if (page != map->last_page) {
		uint32_t slot = *find_slot(map, page);
		assert(slot != 0);
		map->last_page = page;
		map->last_frame = permute(map, slot - 1);
	}
	return map->last_frame;
}
