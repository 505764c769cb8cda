/* Maps virtual 4 KiB pages to the physical frames of a 32-bit bus. A page gets its frame when it is
 * first touched, as from an operating system: frames appear in a random order, given by the seed.
 *
 * The k-th page touched (k from 0) gets frame P(k), a permutation of the 2^20 frames: a Feistel
 * network with four rounds on the two 10-bit halves of k, with keys from the seed. A permutation
 * needs no table of free frames. Arithmetic is modulo 2^64, in the round function modulo 2^32:
 *
 *     key[r] = mix(seed + (r + 1) * 0x9E3779B97F4A7C15) >> 32          r = 0 .. 3
 *     mix(x):  x ^= x >> 30;  x *= 0xBF58476D1CE4E5B9
 *              x ^= x >> 27;  x *= 0x94D049BB133111EB;  x ^= x >> 31
 *     left = k >> 10;  right = k & 1023
 *     each round:  left, right = right, left ^ ((right ^ key[r]) * 0x9E3779B1 >> 22)
 *     P(k) = left << 10 | right
 *
 * Memory: 16 to 32 bytes per touched page, at least 16 KiB, and temporarily half as much again when
 * it grows; 16 MiB with all 2^20 pages. */
#ifndef BC_FORMATS_BUS_PAGE_MAP_H
#define BC_FORMATS_BUS_PAGE_MAP_H

#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/bus/record.h"

#define BC_PAGES_BITS 20
#define BC_PAGES_MAX  (1u << BC_PAGES_BITS)

struct bc_page_map {
	uint64_t *pages;  /* in order of first touch */
	uint32_t *slots;  /* open-addressing hash table: index in `pages` + 1; 0: free */
	uint32_t count;   /* of `pages` */
	uint32_t bits;    /* 2^bits slots for up to half as many pages; 0: no memory allocated */
	uint32_t keys[4]; /* of the permutation */
	uint64_t last_page;
	uint32_t last_frame; /* of last_page; valid if count is not 0 */
};

/* Initializes an empty map. Allocates nothing. */
void bc_page_map_init(struct bc_page_map *map, uint64_t seed);
void bc_page_map_free(struct bc_page_map *map);

/* Touches the pages `first` .. `last`, inclusive, in this order. Page numbers are addresses >>
 * BC_PAGE_BITS. Returns 0; -ENOSPC if there would be more than BC_PAGES_MAX pages; or -ENOMEM. */
int bc_page_map_touch(struct bc_page_map *map, uint64_t first, uint64_t last) BC_MUST_CHECK;

/* The frame of a touched page. */
uint32_t bc_page_map_frame(struct bc_page_map *map, uint64_t page);

#endif
