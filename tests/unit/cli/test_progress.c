/* The progress line: its text, and when it is not shown. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/term/console.h"
#include "tests/support/test.h"

#define SECOND UINT64_C(1000000000)

static void check(uint64_t done, uint64_t total, uint64_t elapsed_ns, const char *wanted)
{
	char text[BC_PROGRESS_TEXT_MAX];

	bc_progress_print(text, done, total, elapsed_ns);
	assert_string_equal(text, wanted);
}

TEST(a_line_has_bytes_share_rate_and_time_left)
{
	check(UINT64_C(1200000000), UINT64_C(4000000000), 5 * SECOND,
		"1.20 GB of 4.00 GB (30 %), 240 MB/s, 0:12 left");
	check(999, 2000, SECOND, "999 B of 2.00 kB (50 %), 999 B/s, 0:02 left");
	check(1000000, UINT64_C(7201000000), SECOND,
		"1.00 MB of 7.20 GB (0 %), 1.00 MB/s, 120:01 left");
	check(5000, 5000, SECOND, "5.00 kB of 5.00 kB (100 %), 5.00 kB/s, 0:01 left");
}

TEST(without_a_total_the_line_has_bytes_and_rate)
{
	check(25000000, 0, 10 * SECOND, "25.0 MB, 2.50 MB/s");
	/* A file that grows while it is being read. */
	check(25000000, 24000000, 10 * SECOND, "25.0 MB, 2.50 MB/s");
}

TEST(extreme_values_fit_the_line)
{
	static const uint64_t values[] = {0, 1, 999, 1000, UINT64_MAX / 2, UINT64_MAX};
	char text[BC_PROGRESS_TEXT_MAX];

	for (unsigned i = 0; i < 6 * 6 * 6; i++) {
		bc_progress_print(text, values[i % 6], values[i / 6 % 6], values[i / 36]);
		assert_true(strlen(text) < BC_PROGRESS_TEXT_MAX - 1);
	}
}

TEST(a_total_with_an_unknown_part_is_unknown)
{
	char *err = NULL;
	size_t err_bytes;
	struct bc_progress progress = {.err = NULL};
	struct bc_console console = {
		.err = open_memstream(&err, &err_bytes), .command = "merge", .progress = &progress};

	bc_progress_extend(&console, 100);
	bc_progress_extend(&console, 20);
	assert_int_equal(progress.total_bytes, 120);
	bc_progress_extend(&console, 0);
	assert_int_equal(progress.total_bytes, 0);
	bc_progress_extend(&console, 20);
	assert_int_equal(progress.total_bytes, 0);
	fclose(console.err);
	free(err);
}

TEST(nothing_is_shown_unless_standard_error_is_a_terminal)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	struct bc_progress progress = {.err = NULL};
	struct bc_console console = {
		.err = fdopen(ends[1], "w"), .command = "convert", .progress = &progress};
	bc_progress_extend(&console, 100);
	assert_null(progress.err);
	bc_progress_clear(&console);
	fclose(console.err);
	char byte;
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
}
