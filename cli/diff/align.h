/* Aligns two sequences of keys: finds which items of one correspond to which of the other, so that
 * few items remain without a counterpart. docs/diff.md explains the method.
 *
 * Equal items have equal keys. */
#ifndef BC_CLI_DIFF_ALIGN_H
#define BC_CLI_DIFF_ALIGN_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"

/* a[a, a + n) corresponds to b[b, b + n). */
struct bc_block {
	size_t a;
	size_t b;
	size_t n;
};

/* Appends a block, or extends the last one; nothing if n is 0. Returns the number of blocks. */
size_t bc_block_append(struct bc_block *blocks, size_t count, size_t a, size_t b, size_t n);

struct bc_align;

/* Returns 0 or -ENOMEM. Sequences have at most `items`, up to 1,000,000, of 280 bytes each. */
int bc_align_open(struct bc_align **align, size_t items) BC_MUST_CHECK;
void bc_align_close(struct bc_align *align);

/* Aligns a[0, n) and b[0, m). Writes at most min(n, m) blocks, in increasing order in both
 * sequences, and returns their number. */
size_t bc_align_run(struct bc_align *align, const uint64_t *a, size_t n, const uint64_t *b,
	size_t m, struct bc_block *blocks);

struct bc_pair {
	uint32_t a;
	uint32_t b;
};

/* Reduces pairs to the longest chain in which both numbers increase. `pairs` must be sorted by `a`
 * and, if that is equal, by `b` downwards; `work` needs room for 2 * count numbers. Returns the
 * length of the chain, which is at the start of `pairs`. */
size_t bc_longest_chain(struct bc_pair *pairs, size_t count, uint32_t *work);

#endif
