/* XXH3-64 for processors with AVX2. Private to formats/base/hash.h. */
#ifndef BC_FORMATS_BASE_HASH_AVX2_H
#define BC_FORMATS_BASE_HASH_AVX2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether bc_hash_avx2() was compiled in and the processor has AVX2. */
bool bc_hash_has_avx2(void);

/* XXH3-64, seed 0. Call it only if bc_hash_has_avx2(). */
uint64_t bc_hash_avx2(const void *data, size_t bytes);

#endif
