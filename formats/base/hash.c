#include "formats/base/hash.h"

#include <xxhash.h>

uint64_t bc_hash(const void *data, size_t bytes)
{
	return bc_hash_has_avx2() ? bc_hash_avx2(data, bytes) : XXH3_64bits(data, bytes);
}
