/* How often fully associative LRU caches of 2^k lines miss: all sizes in one pass. Exact for traces
 * of few lines and for small caches, otherwise estimated from a sample of the lines. */
#ifndef BC_CLI_STATS_LRU_STACK_H
#define BC_CLI_STATS_LRU_STACK_H

#include <stdint.h>

#include "formats/base/must_check.h"

#define BC_LRU_STACK_LINES 65536u

/* Exact for fewer than max_lines lines, and then for caches of up to max_lines / 16. max_lines: a
 * power of two from 32 to BC_LRU_STACK_LINES. The caller frees it. NULL if out of memory. */
struct bc_lru_stack *bc_lru_stack_open(uint32_t max_lines) BC_MUST_CHECK;

void bc_lru_stack_touch(struct bc_lru_stack *stack, uint64_t line, unsigned space);

/* Returns the number of touches that missed in a cache of 2^k lines. Sets *shift: it is estimated
 * from one line in 2^shift; 0 if it is exact. */
uint64_t bc_lru_stack_misses(const struct bc_lru_stack *stack, unsigned k, unsigned *shift);

#endif
