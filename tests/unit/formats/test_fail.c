#include <stdio.h>
#include <string.h>

#include "formats/base/text.h"
#include "formats/base/utf8.h"
#include "tests/support/test.h"

#define REASON "can't open: Permission denied; try as root"

/* A path of this many bytes, in parts of up to 100. */
static const char *path_of(size_t bytes, const char *part)
{
	static char path[4096];
	size_t used = 0;

	while (used + strlen(part) + 1 <= bytes) {
		used += (size_t)sprintf(path + used, "/%s", part);
	}
	while (used < bytes)
		path[used++] = 'z';
	path[used] = '\0';
	return path;
}

TEST(a_text_that_fits_is_unchanged)
{
	for (size_t bytes = 0; bytes < 300; bytes++) {
		char text[512];
		bc_message(text, bytes + 1 + strlen(": " REASON), "%s: " REASON,
			path_of(bytes, "ab cd"));
		assert_int_equal(strlen(text), bytes + strlen(": " REASON));
		assert_null(strstr(text, "..."));
	}
}

/* For each length of path, and some of the buffer. */
TEST(the_reason_survives_every_path)
{
	static const char *const parts[] = {"rec", "\xc3\xa9\xe2\x82\xac", "\xff\xbf\x80", "a b"};
	char text[1200];

	for (size_t p = 0; p < COUNT_OF(parts); p++)
		for (size_t bytes = 1; bytes < 4096; bytes += test_stride(37))
			for (size_t size = 100; size < sizeof(text); size += 36 + test_stride(25)) {
				const char *path = path_of(bytes, parts[p]);
				memset(text, 'x', sizeof(text));
				bc_message(text, size, "%s: " REASON, path);
				size_t n = strlen(text);
				assert_true(n < size && n > strlen(REASON) + 2);
				assert_string_equal(text + n - strlen(": " REASON), ": " REASON);
				bool fits = bytes + strlen(": " REASON) < size;
				assert_true(fits == (strstr(text, "...") == NULL));
				assert_true(p == 2 || bc_utf8_is_valid(text, n));
				/* Nothing is given away: but for split characters it is full. */
				assert_true(fits || p != 0 || n == size - 1);
			}
}

TEST(both_ends_of_a_path_are_left)
{
	char text[128];

	bc_message(text, sizeof(text), "%s/20260101T000000Z-3f9a2c-00001.byu.lz4: " REASON,
		path_of(4000, "srv"));
	assert_memory_equal(text, "/srv/srv/", 9);
	assert_non_null(strstr(text, "-3f9a2c-00001.byu.lz4: " REASON));
}

/* What is between the paths survives, too. */
TEST(a_message_with_three_paths_keeps_its_words)
{
	char text[256];
	char paths[3][4096];

	for (size_t i = 0; i < 3; i++)
		strcpy(paths[i], path_of(4095, i == 0 ? "one" : i == 1 ? "two" : "three"));
	assert_false(bc_fail(text, sizeof(text),
		"%s: contents differ; kept as %s; to read it: "
		"buscap recover %s -o OUT",
		paths[0], paths[1], paths[2]));
	assert_non_null(strstr(text, ": contents differ; kept as /two"));
	assert_non_null(strstr(text, "; to read it: buscap recover /three"));
	assert_string_equal(text + strlen(text) - 7, " -o OUT");
}

/* Even where no word is long, and in buffers too small for anything. */
TEST(every_text_fits)
{
	char text[2000];

	for (size_t max = 0; max < 1500; max++) {
		static const char *const pieces[] = {
			"a", "ab ", "\xe2\x82\xac", "words of a sentence ", "\x80"};
		for (size_t i = 0; i < COUNT_OF(pieces); i++) {
			size_t used = 0;
			while (used + 30 < sizeof(text))
				used += (size_t)sprintf(text + used, "%s", pieces[i]);
			bc_shorten(text, max);
			assert_true(strlen(text) <= max);
			assert_true(i == 4 || bc_utf8_is_valid(text, strlen(text)));
		}
	}
	text[0] = 'x';
	bc_message(text, 0, "%s", "y");
	assert_int_equal(text[0], 'x');
	bc_message(text, 1, "%s", "y");
	assert_int_equal(text[0], '\0');
}
