#include <stdlib.h>
#include <string.h>

#include "formats/base/utf8.h"
#include "tests/support/test.h"

/* Encodes one character in as few bytes as possible. Returns their number. */
static uint32_t encode(uint8_t *out, uint32_t c)
{
	if (c < 0x80) {
		out[0] = (uint8_t)c;
		return 1;
	}
	uint32_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
	out[0] = (uint8_t)(lead[n] | c >> 6 * (n - 1));
	for (uint32_t i = 1; i < n; i++)
		out[i] = (uint8_t)(0x80 | (c >> 6 * (n - 1 - i) & 0x3F));
	return n;
}

TEST(every_character_but_surrogates_is_valid)
{
	uint8_t bytes[4];

	for (uint32_t c = 0; c < 0x110000; c++) {
		uint32_t n = encode(bytes, c);
		uint32_t wanted = c >= 0xD800 && c <= 0xDFFF ? 0 : n;
		assert_int_equal(bc_utf8_bytes(bytes, n), wanted);
		if (n > 1)
			assert_int_equal(bc_utf8_bytes(bytes, n - 1), 0);
		assert_int_equal(bc_utf8_code(bytes, n), c);
	}
	assert_int_equal(bc_utf8_bytes((const uint8_t *)"\xF4\x90\x80\x80", 4), 0);
	assert_int_equal(bc_utf8_bytes((const uint8_t *)"\xC1\xBF", 2), 0);
	assert_int_equal(bc_utf8_bytes((const uint8_t *)"\xE0\x9F\xBF", 3), 0);
}

TEST(controls_and_invisible_formatting_characters_are_unsafe)
{
	unsigned harmful = 0;

	for (uint32_t c = 0; c < 0x110000; c++)
		harmful += bc_utf8_is_unsafe(c);
	/* 32 controls, DEL and 32 more; 5, 7 and 16 of U+2000 to U+20FF; the byte order mark. */
	assert_int_equal(harmful, 65 + 5 + 7 + 16 + 1);
	assert_true(bc_utf8_is_unsafe(0x1B) && bc_utf8_is_unsafe(0x9F));
	assert_true(bc_utf8_is_unsafe(0x202E) && bc_utf8_is_unsafe(0xFEFF));
	assert_false(bc_utf8_is_unsafe(' ') || bc_utf8_is_unsafe(0xA0));
}

/* All strings of two bytes. */
TEST(repaired_text_is_utf8_and_valid_parts_are_unchanged)
{
	char text[3] = "";

	for (unsigned pair = 0; pair < 65536; pair++) {
		text[0] = (char)(pair & 0xFF);
		text[1] = (char)(pair >> 8);
		char *mended = bc_utf8_repair(text);
		assert_true(bc_utf8_is_valid(mended, strlen(mended)));
		if (bc_utf8_is_valid(text, strlen(text)))
			assert_string_equal(mended, text);
		free(mended);
	}
	char *mended = bc_utf8_repair("a\xFF\xC3\xA9\x80");
	assert_string_equal(mended, "a\xC3\xBF\xC3\xA9\xC2\x80");
	free(mended);
}

TEST(a_text_is_truncated_between_characters)
{
	static const char text[] = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x9A\x8C.";
	static const size_t cuts[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11, 11};

	for (size_t most = 0; most < COUNT_OF(cuts); most++)
		assert_int_equal(bc_utf8_fit(text, most), cuts[most]);
}
