#include <string.h>

#include "formats/base/bytes.h"
#include "tests/support/test.h"

#define PLACES 9 /* every alignment, and one more */

/* Distinct bytes with the top bit set. */
static const uint8_t bytes[PLACES + 8] = {0x81, 0x92, 0xA3, 0xB4, 0xC5, 0xD6, 0xE7, 0xF8, 0x89,
	0x9A, 0xAB, 0xBC, 0xCD, 0xDE, 0xEF, 0xF0, 0x80};

static uint64_t by_hand(const uint8_t *p, unsigned n, int is_big)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < n; i++)
		v = v * 256 + p[is_big ? i : n - 1 - i];
	return v;
}

TEST(loads_use_the_right_byte_order_at_any_alignment)
{
	for (unsigned at = 0; at < PLACES; at++) {
		assert_int_equal(bc_le16(bytes + at), by_hand(bytes + at, 2, 0));
		assert_int_equal(bc_le32(bytes + at), by_hand(bytes + at, 4, 0));
		assert_true(bc_le64(bytes + at) == by_hand(bytes + at, 8, 0));
		assert_int_equal(bc_be32(bytes + at), by_hand(bytes + at, 4, 1));
	}
	assert_int_equal(bc_le32((const uint8_t[]){1, 2, 3, 4}), 0x04030201);
	assert_int_equal(bc_be32((const uint8_t[]){1, 2, 3, 4}), 0x01020304);
}

/* Stores `n` bytes at `at` with `store` and checks them, and that no other byte changed. */
#define ASSERT_STORES(store, n, value, is_big)                            \
	for (unsigned at = 0; at < PLACES; at++) {                        \
		uint8_t out[sizeof(bytes)];                               \
		memset(out, 0x5A, sizeof(out));                           \
		store(out + at, (value));                                 \
		assert_true(by_hand(out + at, (n), (is_big)) == (value)); \
		for (unsigned i = 0; i < sizeof(out); i++)                \
			if (i < at || i >= at + (n))                      \
				assert_int_equal(out[i], 0x5A);           \
	}

TEST(stores_change_their_bytes_and_no_other){
	ASSERT_STORES(bc_write_le16, 2, 0x8192, 0) ASSERT_STORES(bc_write_le32, 4, 0xF1E2D3C4, 0)
		ASSERT_STORES(bc_write_le64, 8, UINT64_C(0xF1E2D3C4B5A69788), 0)
			ASSERT_STORES(bc_write_be32, 4, 0xF1E2D3C4, 1)}

TEST(every_bit_is_preserved)
{
	uint8_t out[8];

	for (unsigned bit = 0; bit < 64; bit++) {
		uint64_t v = UINT64_C(1) << bit;
		bc_write_le64(out, v);
		assert_true(bc_le64(out) == v);
		bc_write_le32(out, (uint32_t)v);
		assert_int_equal(bc_le32(out), (uint32_t)v);
		bc_write_be32(out, (uint32_t)v);
		assert_int_equal(bc_be32(out), (uint32_t)v);
		bc_write_le16(out, (uint16_t)v);
		assert_int_equal(bc_le16(out), (uint16_t)v);
	}
}
