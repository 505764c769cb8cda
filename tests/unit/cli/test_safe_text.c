/* Untrusted text, whatever bytes it has, can't harm a terminal, a line or a JSON text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/term/output.h"
#include "cli/term/text.h"
#include "formats/base/json.h"
#include "tests/support/test.h"

static void assert_safe(const char *text, const char *wanted)
{
	char out[256];

	bc_safe_text(out, sizeof(out), text);
	assert_string_equal(out, wanted);
}

TEST(harmless_text_is_unchanged)
{
	assert_safe("", "");
	assert_safe(NULL, "");
	assert_safe("a b\"'<>&%", "a b\"'<>&%");
	assert_safe(
		"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(control_characters_are_escaped)
{
	assert_safe("\x1b[31m\r\n\t\x7f", "\\x1b[31m\\x0d\\x0a\\x09\\x7f");
	assert_safe("\xc2\x9b"
		    "2J",
		"\\xc2\\x9b"
		"2J");
	assert_safe("\xe2\x80\xae"
		    "x",
		"\\xe2\\x80\\xaex");
	assert_safe("\\x1b", "\\x5cx1b");
}

TEST(bytes_that_are_not_utf8_are_escaped)
{
	assert_safe("\xff\xc3", "\\xff\\xc3");
	assert_safe("\xc0\xaf", "\\xc0\\xaf");                   /* overlong form */
	assert_safe("\xed\xa0\x80", "\\xed\\xa0\\x80");          /* surrogate */
	assert_safe("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* above U+10FFFF */
	assert_safe("\xe2\x82", "\\xe2\\x82");
}

static bool is_harmless(const char *text)
{
	for (; *text != '\0'; text++) {
		const unsigned char *p = (const unsigned char *)text;
		if (p[0] < 0x20 || p[0] == 0x7F || (p[0] == 0xC2 && p[1] >= 0x80 && p[1] < 0xA0))
			return false;
	}
	return true;
}

/* All pairs of bytes. */
TEST(no_pair_of_bytes_is_harmful)
{
	char text[5] = {0};
	char out[64];

	for (unsigned first = 1; first < 256; first++) {
		for (unsigned second = 1; second < 256; second++) {
			text[0] = (char)first;
			text[1] = (char)second;
			text[2] = 'x';
			bc_safe_text(out, sizeof(out), text);
			assert_true(is_harmless(out));
			assert_int_equal(out[strlen(out) - 1], 'x');
		}
	}
}

TEST(text_is_truncated_between_characters)
{
	const char *text = "a\x1b\xc3\xa4z";
	const char *whole = "a\\x1b\xc3\xa4z";

	for (size_t outlen = 1; outlen <= strlen(whole) + 1; outlen++) {
		char out[16];
		memset(out, '?', sizeof(out));
		bc_safe_text(out, outlen, text);
		size_t n = strlen(out);
		assert_true(n < outlen && strncmp(out, whole, n) == 0);
		assert_true(n == 0 || n == 1 || n == 5 || n == 7 || n == 8);
		assert_int_equal(out[outlen], '?');
	}
}

static void assert_escaped(const char *text, const char *wanted)
{
	char out[6001 * 4];

	assert_string_equal(bc_safe_escaped(out, sizeof(out), text), wanted);
}

TEST(escapes_are_not_escaped_again)
{
	char text[6001];
	char wanted[sizeof(text) * 4];
	char *p = wanted;

	assert_escaped("", "");
	assert_escaped("a \\x1b \x1b[2J\n \xc3\xa4 \xff", "a \\x1b \\x1b[2J\\x0a \xc3\xa4 \\xff");
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		text[i] = i % 7 == 0 ? '\x07' : 'x';
		p += sprintf(p, "%s", i % 7 == 0 ? "\\x07" : "x");
	}
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i < 7; i++)
		assert_escaped(text + i, wanted + (i == 0 ? 0 : i + 3));
}

/* Returns what bc_output_json() writes. */
static char *safe_json(const char *json, size_t bytes)
{
	struct bc_output output;
	int ends[2];
	char *out = calloc(1, 8192);

	assert_int_equal(pipe(ends), 0);
	assert_true(bc_output_open_fd(&output, ends[1]));
	bc_output_json(&output, json, bytes);
	bc_output_flush(&output);
	free(output.buffer);
	close(ends[1]);
	assert_true(read(ends[0], out, 8191) > 0);
	close(ends[0]);
	size_t n = strlen(out);
	assert_int_equal(out[n - 1], '\n');
	out[n - 1] = '\0';
	return out;
}

static void assert_json(const char *json, const char *wanted)
{
	char *out = safe_json(json, strlen(json));

	assert_string_equal(out, wanted);
	free(out);
}

TEST(json_becomes_one_line_of_json)
{
	assert_json("{\"a\": [1,\n\t2.50]}", "{\"a\": [1,  2.50]}");
	assert_json("{\"a\":\"\x1b\n\\\"\x07\"}", "{\"a\":\"\\u001b\\u000a\\\"\\u0007\"}");
	assert_json("{\"a\":\"\xc2\x9b\xff\"}", "{\"a\":\"\\u009b\\ufffd\"}");
	assert_json("{\x1b\xff}", "{  }");
	assert_json("{\"\\\\\":\"\x01\"}", "{\"\\\\\":\"\\u0001\"}");
}

/* Each byte in a string. */
TEST(json_with_any_byte_can_be_parsed)
{
	for (unsigned byte = 1; byte < 256; byte++) {
		char json[] = "{\"a\":\"-?-\"}";
		if (byte == '"' || byte == '\\')
			continue;
		json[7] = (char)byte;
		char *out = safe_json(json, sizeof(json) - 1);
		assert_true(is_harmless(out));
		json_t *object = json_loads(out, JSON_ALLOW_NUL, NULL);
		assert_true(json_is_object(object));
		json_decref(object);
		free(out);
	}
}

TEST(quantities_have_three_digits_and_a_unit)
{
	static const struct {
		double bytes;
		const char *text;
	} sizes[] = {{0, "0 B"}, {-1, "0 B"}, {999, "999 B"}, {999.6, "1.00 kB"}, {1235, "1.24 kB"},
		{99960, "100 kB"}, {12345678, "12.3 MB"}, {1e15, "1.00 PB"},
		{1e300, "1000000000000000 PB"}};
	char out[BC_HUMANIZE_MAX];

	for (size_t i = 0; i < COUNT_OF(sizes); i++)
		assert_string_equal(bc_humanize_bytes(out, sizes[i].bytes), sizes[i].text);
	assert_string_equal(bc_humanize_rate(out, 1999968), "2.00 M");
	assert_string_equal(BC_GROUPED(0), "0");
	assert_string_equal(BC_GROUPED(999), "999");
	assert_string_equal(BC_GROUPED(1000), "1,000");
	assert_string_equal(BC_GROUPED(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(times_have_two_units)
{
	static const struct {
		double s;
		const char *text;
	} times[] = {{0, "0 s"}, {-5, "0 s"}, {9.54, "9.5 s"}, {59, "59 s"}, {60, "1 min 0 s"},
		{3599.9, "59 min 59 s"}, {8000, "2 h 13 min"}, {133560, "1 d 13 h"},
		{1e300, "11574074 d 1 h"}};
	char out[BC_HUMANIZE_MAX];

	for (size_t i = 0; i < COUNT_OF(times); i++)
		assert_string_equal(bc_humanize_time(out, times[i].s), times[i].text);
}
