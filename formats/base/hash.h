/* XXH3-64 of large blocks. Same result as libxxhash, but three times as fast on processors with
 * AVX2, because distributions build libxxhash without it. */
#ifndef BC_FORMATS_BASE_HASH_H
#define BC_FORMATS_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* XXH3-64, seed 0. */
uint64_t bc_hash(const void *data, size_t bytes);

/* For bc_hash() and its test: whether bc_hash_avx2() was compiled in and the processor has AVX2. */
bool bc_hash_has_avx2(void);

/* XXH3-64, seed 0. Call it only if bc_hash_has_avx2(). */
uint64_t bc_hash_avx2(const void *data, size_t bytes);

#endif
