#include <stdlib.h>
#include <xxhash.h>

#include "formats/base/hash.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define LONG ((size_t)1 << 20)

static void check(const uint8_t *data, size_t bytes)
{
	assert_int_equal(bc_hash(data, bytes), XXH3_64bits(data, bytes));
	if (bc_hash_has_avx2())
		assert_int_equal(bc_hash_avx2(data, bytes), XXH3_64bits(data, bytes));
}

TEST(every_length_and_alignment_gives_the_library_s_hash)
{
	uint8_t *data = malloc(LONG + 64);
	struct dice dice = {3};

	assert_non_null(data);
	dice_fill(&dice, data, LONG + 64);
	for (size_t bytes = 0; bytes <= 3000; bytes++)
		check(data + bytes % 64, bytes);
	for (size_t bytes = 3001; bytes <= LONG; bytes += bytes / 7 + bytes % 13)
		check(data + bytes % 64, bytes);
	check(data, LONG);
	free(data);
}
