/* XXH3-64 for processors with AVX2. Private to formats/base/hash.h. */
#ifndef BC_FORMATS_BASE_HASH_AVX2_H
#define BC_FORMATS_BASE_HASH_AVX2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the compiler could make it, and the processor has it. */
bool bc_hash_has_avx2(void);

/* Only where it has. */
uint64_t bc_hash_avx2(const void *data, size_t bytes);

#endif
