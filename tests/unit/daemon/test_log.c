#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "formats/base/utf8.h"
#include "tests/support/log_capture.h"
#include "tests/support/test.h"

/* The log line with this text, without its newline. */
static const char *line_of(const char *text)
{
	static char line[BC_LOG_LINE_MAX];
	size_t length = bc_log_write(line, 0, text);

	assert_int_equal(length, strlen(line));
	assert_int_equal(line[length - 1], '\n');
	line[length - 1] = '\0';
	return line;
}

TEST(control_characters_are_escaped)
{
	for (int byte = 1; byte < 256; byte++) {
		char text[2] = {(char)byte, '\0'};
		char escaped[8];
		snprintf(escaped, sizeof(escaped), "\\x%02x", (unsigned)byte);
		bool is_plain = byte >= ' ' && byte < 0x7F;
		assert_string_equal(line_of(text), is_plain ? text : escaped);
	}
	assert_string_equal(line_of("a\nbuscapd: forged"), "a\\x0abuscapd: forged");
	assert_string_equal(line_of("\x1b[31m"), "\\x1b[31m");
}

TEST(printable_utf8_is_unchanged)
{
	assert_string_equal(line_of("d\xc3\xa9p\xc3\xb4t \xe2\x82\xac \xf0\x9f\x98\x80"),
		"d\xc3\xa9p\xc3\xb4t \xe2\x82\xac \xf0\x9f\x98\x80");
	assert_string_equal(line_of("\xc2\x9b"), "\\xc2\\x9b"); /* CSI */
	assert_string_equal(
		line_of("\xe2\x80\xae"), "\\xe2\\x80\\xae");          /* right-to-left override */
	assert_string_equal(line_of("\xe2\x80\x94"), "\xe2\x80\x94"); /* a dash */
	assert_string_equal(line_of("\xc3"), "\\xc3");
}

/* For each length of text, kind of character, and length of prefix. */
TEST(a_long_line_is_cut_and_marked)
{
	static const char *const characters[] = {"x", "\n", "\xc3\xa9", "\xe2\x82\xac", "\xff"};
	char text[2048];
	char line[BC_LOG_LINE_MAX];

	for (size_t kind = 0; kind < COUNT_OF(characters); kind++) {
		size_t used = 0;
		for (text[0] = '\0'; used < 1500; used += strlen(characters[kind])) {
			for (size_t prefix = used % test_stride(9); prefix < 20;
				prefix += test_stride(9)) {
				memset(line, '.', sizeof(line));
				size_t n = bc_log_write(line, prefix, text);
				bool is_cut = n >= 5 && strcmp(line + n - 4, "...\n") == 0 &&
					      n - prefix > 4;
				assert_true(n < 1000);
				assert_true(bc_utf8_is_valid(line, n));
				assert_true(n > 980 || !is_cut);
				assert_true(is_cut || used < 1000);
			}
			memcpy(text + used, characters[kind], strlen(characters[kind]) + 1);
		}
	}
}

/* For each length of path, plain or of characters that are escaped. */
TEST(the_reason_survives_every_path)
{
	static const char *const characters[] = {"x", "\n", "\xe2\x82\xac", "\xff"};
	static const char reason[] = ": can't open: Permission denied\n";
	static struct log_capture capture;
	static char path[4096];

	for (size_t kind = 0; kind < COUNT_OF(characters); kind++) {
		size_t used = 0;
		for (path[0] = '\0'; used < 4000; used += strlen(characters[kind])) {
			strcpy(path + used, characters[kind]);
			if (used % (5 * test_stride(31)) > 3)
				continue;
			log_capture_start(&capture);
			bc_log(BC_LOG_ERROR, "%s: can't open: Permission denied", path);
			const char *line = log_capture_stop(&capture);
			size_t n = strlen(line);
			assert_true(n < 1000 && n > strlen(reason));
			assert_string_equal(line + n - strlen(reason), reason);
			assert_true(n > 950 || strstr(line, "...") == NULL);
		}
	}
}
