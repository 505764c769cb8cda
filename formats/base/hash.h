/* XXH3-64 of large blocks. Same result as libxxhash, but three times as fast on processors with
 * AVX2, because distributions build libxxhash without it. */
#ifndef BC_FORMATS_BASE_HASH_H
#define BC_FORMATS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* XXH3-64, seed 0. */
uint64_t bc_hash(const void *data, size_t bytes);

#endif
