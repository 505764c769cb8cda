#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/log_limit.h"
#include "tests/support/log_capture.h"
#include "tests/support/test.h"

#define SECOND UINT64_C(1000000000)
#define WEEK   (7 * 24 * 3600 * SECOND)

/* Returns how many lines a fault causes that occurs every `step` for `time`. *reported is the
 * number of occurrences that these lines account for. */
static unsigned lines_of(uint64_t step, uint64_t time, uint64_t *reported)
{
	struct bc_log_limit limit = {.kind = NULL};
	uint64_t start = 123456789;
	uint64_t next = start;
	unsigned lines = 0;
	double seconds;

	*reported = 0;
	for (uint64_t now = start; now < start + time; now += SECOND / 4) {
		for (; next <= now; next += step) {
			bool is_admitted = bc_log_limit_admits(&limit, now);
			lines += is_admitted;
			*reported += is_admitted;
		}
		uint64_t counted = bc_log_limit_due(&limit, now, &seconds);
		lines += counted != 0;
		*reported += counted;
	}
	*reported += limit.counted;
	return lines;
}

TEST(further_lines_are_summarized_after_the_window)
{
	struct bc_log_limit limit = {.kind = NULL};
	double seconds;

	for (unsigned i = 0; i < 70; i++)
		(void)bc_log_limit_admits(&limit, SECOND * (i + 1));
	assert_int_equal(bc_log_limit_due(&limit, SECOND * 71 - 1, &seconds), 0);
	assert_int_equal(bc_log_limit_due(&limit, SECOND * 71, &seconds), 60);
	assert_true(seconds > 59.9 && seconds < 60.1);
	assert_int_equal(bc_log_limit_due(&limit, SECOND * 1000, &seconds), 0);
}

TEST(the_summary_comes_sooner_when_the_fault_has_stopped)
{
	struct bc_log_limit limit = {.kind = NULL};
	double seconds;

	for (unsigned i = 0; i < 20; i++)
		(void)bc_log_limit_admits(&limit, SECOND);
	assert_int_equal(bc_log_limit_due(&limit, SECOND * 16 - 1, &seconds), 0);
	assert_int_equal(bc_log_limit_due(&limit, SECOND * 16, &seconds), 10);
}

TEST(after_a_quiet_period_lines_are_logged_in_full_again)
{
	struct bc_log_limit limit = {.kind = NULL};
	double seconds;
	uint64_t now = SECOND;

	for (unsigned i = 0; i < 20; i++)
		(void)bc_log_limit_admits(&limit, now);
	now += BC_LOG_WINDOW_NS;
	assert_int_equal(bc_log_limit_due(&limit, now, &seconds), 10);
	assert_false(bc_log_limit_admits(&limit, now + 1)); /* the fault continues */
	now += 2 * BC_LOG_WINDOW_NS;
	assert_int_equal(bc_log_limit_due(&limit, now, &seconds), 1);
	now += BC_LOG_QUIET_NS;
	for (unsigned i = 0; i < BC_LOG_BURST; i++)
		assert_true(bc_log_limit_admits(&limit, now));
	assert_false(bc_log_limit_admits(&limit, now));
}

/* For a week, from 100 per second to one per hour; the summaries account for every one. */
TEST(a_fault_for_a_week_causes_a_few_hundred_lines)
{
	static const uint64_t steps[] = {SECOND / 100, SECOND / 4, SECOND, 5 * SECOND, 7 * SECOND,
		14 * SECOND, 15 * SECOND, 16 * SECOND, 20 * SECOND, 31 * SECOND, 59 * SECOND,
		61 * SECOND, 119 * SECOND, 121 * SECOND, 599 * SECOND, 899 * SECOND, 901 * SECOND,
		1799 * SECOND, 1801 * SECOND, 3599 * SECOND, 3601 * SECOND};
	uint64_t reported;

	for (size_t i = 0; i < COUNT_OF(steps); i++) {
		unsigned lines = lines_of(steps[i], WEEK, &reported);
		assert_in_range(lines, 100, 700);
		assert_int_equal(reported, (WEEK - SECOND / 4) / steps[i] + 1);
	}
}

/* Sets the times in the text to 0.0, because a slow machine needs longer. */
static char *without_times(char *text)
{
	static const char before[] = " in the last ";

	for (char *at = text; (at = strstr(at, before)) != NULL;) {
		at += strlen(before);
		size_t digits = strspn(at, "0123456789");
		assert_true(digits >= 1 && at[digits] == '.' && at[digits + 2] == ' ');
		memmove(at + 1, at + digits, strlen(at + digits) + 1);
		at[0] = at[2] = '0';
	}
	return text;
}

/* From then on, lines have their level. */
static void start_log(void)
{
	bc_log_start();
	bc_log_stop();
}

TEST(kinds_have_their_own_limits_and_the_summary_has_the_latest_line)
{
	static struct log_capture capture;
	struct bc_log_limits limits = {.count = 0};

	start_log();
	log_capture_start(&capture);
	for (int i = 0; i < 12; i++)
		bc_log_limited(&limits, BC_LOG_WARNING, "a%d", i);
	bc_log_limited(&limits, BC_LOG_ERROR, "b %s", "once");
	bc_log_limits_end(&limits);
	bc_log_limits_end(&limits);
	assert_string_equal(without_times(log_capture_stop(&capture)),
		"buscapd: warning: a0\nbuscapd: warning: a1\nbuscapd: warning: a2\n"
		"buscapd: warning: a3\nbuscapd: warning: a4\nbuscapd: warning: a5\n"
		"buscapd: warning: a6\nbuscapd: warning: a7\nbuscapd: warning: a8\n"
		"buscapd: warning: a9\nbuscapd: error: b once\n"
		"buscapd: warning: 2 more times in the last 0.0 s; the latest: a11\n");
}

TEST(kinds_beyond_the_maximum_share_a_limit)
{
	static struct log_capture capture;
	static const char kinds[BC_LOG_KINDS + 20];
	struct bc_log_limits limits = {.count = 0};
	unsigned lines = 0;

	log_capture_start(&capture);
	for (unsigned i = 0; i < sizeof(kinds); i++)
		bc_log_limited_text(&limits, BC_LOG_WARNING, &kinds[i], "x");
	bc_log_limits_end(&limits);
	for (const char *at = log_capture_stop(&capture); (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	assert_int_equal(limits.count, BC_LOG_KINDS);
	assert_int_equal(lines, BC_LOG_KINDS - 1 + BC_LOG_BURST + 1);
}

TEST(lines_below_the_log_level_do_not_use_up_a_limit)
{
	static const char format[] = "trigger %s has hit";
	static struct log_capture capture;
	struct bc_log_limits limits = {.count = 0};

	log_capture_start(&capture);
	for (unsigned i = 0; i < 1000; i++) {
		bc_log_limited(&limits, BC_LOG_DEBUG, format, "mark");
		bc_log_limited_text(&limits, BC_LOG_DEBUG, format, "mark");
	}
	bc_log_limited(&limits, BC_LOG_INFO, format, "start");
	bc_log_limits_end(&limits);
	assert_string_equal(log_capture_stop(&capture), "buscapd: trigger start has hit\n");
}

TEST(a_shared_limit_logs_at_the_most_urgent_level)
{
	static struct log_capture capture;
	static const char kinds[BC_LOG_KINDS + BC_LOG_BURST];
	struct bc_log_limits limits = {.count = 0};

	start_log();
	log_capture_start(&capture);
	for (unsigned i = 0; i < sizeof(kinds); i++)
		bc_log_limited_text(&limits, BC_LOG_INFO, &kinds[i], "x");
	bc_log_limited(&limits, BC_LOG_ERROR | BC_LOG_DAMAGED, "bad");
	bc_log_limited(&limits, BC_LOG_INFO, "good");
	bc_log_limits_end(&limits);
	assert_non_null(strstr(log_capture_stop(&capture), "buscapd: error: 3 more times"));
}

TEST(a_long_text_is_shortened_in_the_summary)
{
	static struct log_capture capture;
	static const char kind[] = "kind";
	struct bc_log_limits limits;
	char text[600];
	char *seen;

	for (size_t bytes = 395; bytes < 405; bytes++) {
		size_t n = bytes - bytes % 2;
		for (size_t i = 0; i < n; i += 2)
			memcpy(text + i, "\xc3\xa9", 2);
		snprintf(text + n, sizeof(text) - n, "%s", bytes % 2 == 0 ? "" : "x");
		memset(&limits, 0, sizeof(limits));
		log_capture_start(&capture);
		for (unsigned i = 0; i <= BC_LOG_BURST; i++)
			bc_log_limited_text(&limits, BC_LOG_INFO, kind, text);
		bc_log_limits_end(&limits);
		seen = strstr(log_capture_stop(&capture), "latest: ") + strlen("latest: ");
		seen[strcspn(seen, "\n")] = '\0';
		if (bytes < sizeof(limits.of[0].latest)) {
			assert_string_equal(seen, text);
			continue;
		}
		assert_in_range(strlen(seen), 396, 399);
		assert_non_null(strstr(seen, "\xc3\xa9...\xc3\xa9"));
		assert_string_equal(seen + strlen(seen) - 2, text + strlen(text) - 2);
	}
}
