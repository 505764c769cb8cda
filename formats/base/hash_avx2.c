#include "formats/base/hash.h"

#include <stdlib.h>

/* xxhash.h inlined and compiled for AVX2, while the rest of the program is compiled for any x86-64.
 * Not with clang: its target pragma does not define __AVX2__, which xxhash.h checks. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2")
#define XXH_INLINE_ALL
#include <xxhash.h>

bool bc_hash_has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

uint64_t bc_hash_avx2(const void *data, size_t bytes)
{
	return XXH3_64bits(data, bytes);
}

#else

bool bc_hash_has_avx2(void)
{
	return false;
}

uint64_t bc_hash_avx2(const void *data, size_t bytes)
{
	(void)data;
	(void)bytes;
	abort();
}

#endif
