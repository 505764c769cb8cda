/* Virtual pages of 4 KiB to physical frames of a 32-bit bus, on first touch, as an operating system
 * would hand them out: in an order that looks like none and is the same for the same seed.
 *
 * The k-th page that is touched (k from 0) gets frame P(k), P being a permutation of the 2^20
 * frames drawn from the seed: a Feistel network of four rounds over the two halves of 10 bits of k.
 * All arithmetic is modulo 2^64, the round function's modulo 2^32:
 *
 *     key[r] = mix(seed + (r + 1) * 0x9E3779B97F4A7C15) >> 32          r = 0 .. 3
 *     mix(x):  x ^= x >> 30;  x *= 0xBF58476D1CE4E5B9
 *              x ^= x >> 27;  x *= 0x94D049BB133111EB;  x ^= x >> 31
 *     left = k >> 10;  right = k & 1023
 *     each round:  left, right = right, left ^ ((right ^ key[r]) * 0x9E3779B1 >> 22)
 *     P(k) = left << 10 | right
 *
 * Memory: 16 to 32 bytes a page touched, 16 KiB at least, and half as much again for a
 * moment when it grows; with all 2^20 pages 16 MiB. */
#ifndef BC_FORMATS_BUS_PAGE_MAP_H
#define BC_FORMATS_BUS_PAGE_MAP_H

#include "formats/base/must_check.h"

#include <stdint.h>

#define BC_PAGE_BITS  12
#define BC_PAGES_BITS 20
#define BC_PAGES_MAX  (1u << BC_PAGES_BITS)

struct bc_page_map {
	uint64_t *pages;  /* by the order of their first touch */
	uint32_t *slots;  /* a hash table: 1 + place in `pages`; 0 is free */
	uint32_t count;   /* of pages touched */
	uint32_t bits;    /* there are 2^bits slots, half as many pages at most; 0: none */
	uint32_t keys[4]; /* of the permutation */
	uint64_t last_page;
	uint32_t last_frame; /* of last_page, when count is not 0 */
};

/* An empty map; it takes memory when pages are touched. */
void bc_page_map_init(struct bc_page_map *map, uint64_t seed);
void bc_page_map_free(struct bc_page_map *map);

/* Touches the pages from `first` to `last`, both included, in their order. Page numbers are
 * addresses >> BC_PAGE_BITS. Returns 0; or, with nothing changed, -ENOSPC when there would be more
 * than BC_PAGES_MAX pages, or -ENOMEM. */
int bc_page_map_touch(struct bc_page_map *map, uint64_t first, uint64_t last) BC_MUST_CHECK;

/* The frame of a page that was touched. */
uint32_t bc_page_map_frame(struct bc_page_map *map, uint64_t page);

#endif
