/* XXH3-64 of large pieces of data: what libxxhash computes, three times as fast on processors with
 * AVX2, which a distribution's library is not built for. */
#ifndef BC_FORMATS_BASE_HASH_H
#define BC_FORMATS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* XXH3-64, seed 0. */
uint64_t bc_hash(const void *data, size_t bytes);

#endif
