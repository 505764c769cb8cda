#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/fast_text.h"
#include "formats/codec/block_parse.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

/* A simple reference: the number of leading hex digits, and their value. */
static unsigned hex_by_byte(const char *at, unsigned most, uint64_t *value)
{
	unsigned n = 0;

	for (*value = 0; n < most && bc_hex_value[(uint8_t)at[n]] <= 15; n++)
		*value = *value << 4 | bc_hex_value[(uint8_t)at[n]];
	return n;
}

static void assert_hex(const char *at)
{
	uint64_t expected;
	uint64_t value = 1;
	uint32_t half = 1;
	unsigned n = hex_by_byte(at, 16, &expected);

	assert_int_equal(bc_hex16(at, &value), n);
	assert_true(value == expected);
	assert_int_equal(bc_hex16_plain(at, &value), n);
	assert_true(value == expected);
	n = hex_by_byte(at, 8, &expected);
	assert_int_equal(bc_hex8_plain(at, &half), n);
	assert_true(half == expected);
}

static void assert_blanks(const char *at)
{
	uint32_t expected = 0;

	for (unsigned i = 0; i < 16; i++)
		expected |= (uint32_t)((uint8_t)at[i] <= ' ') << i;
	assert_int_equal(bc_blanks16(at), expected);
	assert_int_equal(bc_blanks16_plain(at), expected);
	expected = 0;
	for (unsigned i = 0; i < 16; i++)
		expected |= (uint32_t)((uint8_t)at[i] < ' ') << i;
	assert_int_equal(bc_controls16(at), expected);
	assert_int_equal(bc_controls16_plain(at), expected);
}

TEST(every_byte_is_classified_at_every_place)
{
	for (unsigned place = 0; place < 16; place++) {
		for (unsigned byte = 0; byte < 256; byte++) {
			char text[32];
			memset(text, 'e', sizeof(text));
			text[place] = (char)byte;
			assert_hex(text);
			assert_blanks(text);
			memset(text, 0xFF, sizeof(text));
			text[place] = (char)byte;
			assert_hex(text);
			assert_blanks(text);
		}
	}
}

TEST(any_bytes_are_parsed_like_the_reference)
{
	static const char near[] = "0123456789abcdefABCDEF \n\t,x/:@G`g";
	struct dice dice = {.state = 4};

	for (unsigned round = 0; round < 100000; round++) {
		char text[32];
		for (size_t i = 0; i < sizeof(text); i++)
			text[i] = dice_below(&dice, 8) != 0 ? near[dice_below(&dice, 22)]
							    : near[dice_below(&dice, 34)];
		assert_hex(text);
		assert_blanks(text);
		assert_int_equal(bc_blanks32(text),
			bc_blanks16_plain(text) | bc_blanks16_plain(text + 16) << 16);
	}
}

/* In both cases, with leading zeros. */
TEST(hex_has_up_to_64_bits_after_leading_zeros)
{
	struct dice dice = {.state = 6};

	for (unsigned digits = 1; digits <= 20; digits++) {
		for (unsigned zeros = 0; zeros <= 20; zeros++) {
			char text[128];
			memset(text, '0', sizeof(text));
			text[zeros] = '8';
			for (unsigned i = 1; i < digits; i++)
				text[zeros + i] = "0123456789abcdefABCDEF"[dice_below(&dice, 22)];
			text[zeros + digits] = '\n';
			for (int is_block = 0; is_block < 2; is_block++) {
				const char *at = text;
				uint64_t value = 0;
				uint64_t expected;
				bool ok = is_block ? bc_parse_hex_block(&at, &value)
						   : bc_parse_hex(&at, &value);
				assert_int_equal(ok, digits <= 16);
				assert_ptr_equal(at, text + zeros + (digits <= 16 ? digits : 16));
				hex_by_byte(text, zeros + digits, &expected);
				if (ok)
					assert_true(value == expected);
			}
		}
	}
}

TEST(decimals_up_to_the_last_value_of_64_bits_are_parsed)
{
	static const struct {
		const char *text;
		bool is_unsigned;
		bool is_signed;
	} cases[] = {
		{"0", true, true},
		{"18446744073709551615", true, false},
		{"18446744073709551616", false, false},
		{"18446744073709551620", false, false},
		{"99999999999999999999", false, false},
		{"0000000000000000000018446744073709551615", true, false},
		{"9223372036854775807", true, true},
		{"9223372036854775808", true, false},
		{"-9223372036854775808", false, true},
		{"-9223372036854775809", false, false},
		{"-0", false, true},
		{"-", false, false},
		{"--1", false, false},
		{"", false, false},
		{"x", false, false},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char text[64];
		uint64_t u = 0;
		int64_t s = 0;
		const char *at = text;
		snprintf(text, sizeof(text), "%s\n", cases[i].text);
		assert_int_equal(bc_parse_decimal(&at, &u), cases[i].is_unsigned);
		if (cases[i].is_unsigned) {
			assert_int_equal(*at, '\n');
			char back[64];
			snprintf(back, sizeof(back), "%" PRIu64, u);
			assert_string_equal(back, cases[i].text + (i == 5 ? 20 : 0));
		}
		at = text;
		assert_int_equal(bc_parse_signed(&at, &s), cases[i].is_signed);
		if (cases[i].is_signed && s != 0) {
			char back[64];
			snprintf(back, sizeof(back), "%" PRId64, s);
			assert_string_equal(back, cases[i].text);
		}
	}
}

TEST(short_decimals_are_parsed)
{
	struct dice dice = {.state = 12};

	for (unsigned digits = 1; digits <= 8; digits++) {
		for (unsigned round = 0; round < 2000; round++) {
			char text[16];
			uint32_t value = 0;
			uint32_t expected = 0;
			bool is_good = true;
			memset(text, '-', sizeof(text));
			for (unsigned i = 8 - digits; i < 8; i++) {
				unsigned c = round < 256 && i == 7 ? round
								   : '0' + dice_below(&dice, 10);
				text[i] = (char)c;
				is_good = is_good && c - '0' <= 9;
				expected = expected * 10 + c - '0';
			}
			assert_int_equal(bc_decimal8_before(text + 8, digits, &value), is_good);
			if (is_good)
				assert_int_equal(value, expected);
		}
	}
}

TEST(numbers_are_written_like_printf)
{
	struct dice dice = {.state = 8};

	for (unsigned round = 0; round < 20000; round++) {
		uint64_t v = round < 64    ? UINT64_C(1) << round
			     : round < 128 ? (UINT64_C(1) << (round - 64)) - 1
					   : dice_roll(&dice) >> dice_below(&dice, 64);
		char expected[32];
		char out[64];
		*bc_write_hex(out, v) = '\0';
		snprintf(expected, sizeof(expected), "%" PRIx64, v);
		assert_string_equal(out, expected);
		*bc_write_hex64(out, v) = '\0';
		snprintf(expected, sizeof(expected), "%016" PRIx64, v);
		assert_string_equal(out, expected);
		*bc_write_hex32(out, (uint32_t)v) = '\0';
		snprintf(expected, sizeof(expected), "%08" PRIx32, (uint32_t)v);
		assert_string_equal(out, expected);
		*bc_write_decimal(out, v) = '\0';
		snprintf(expected, sizeof(expected), "%" PRIu64, v);
		assert_string_equal(out, expected);
	}
}
