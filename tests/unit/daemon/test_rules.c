#include "daemon/base/rules.h"
#include "tests/support/test.h"

TEST(sizes_have_units_of_1024_or_the_given_unit)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {{"0", 0}, {"1", 1000}, {"256", 256000}, {"1K", 1024}, {"3M", 3 << 20},
		{"2G", UINT64_C(2) << 30}, {"5T", UINT64_C(5) << 40},
		{"16777215T", UINT64_C(16777215) << 40}};
	static const char *const bad[] = {"", "K", "-1", "+1", " 1", "1 K", "1k", "1KB", "1.5M",
		"0x10", "16777216T", "18446744073709551616", "99999999999999999999"};
	uint64_t bytes;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(bc_size_read(&bytes, good[i].text, 1000));
		assert_int_equal(bytes, good[i].bytes);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(bc_size_read(&bytes, bad[i], 1000));
}

TEST(times_without_a_unit_are_seconds)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {{"0", 0}, {"1", 1000000000}, {"1s", 1000000000}, {"200ms", 200000000},
		{"2m", UINT64_C(120000000000)}, {"1h", UINT64_C(3600000000000)},
		{"30d", UINT64_C(2592000000000000)}, {"1.5", 1500000000}, {"0.25s", 250000000},
		{"1.5h", UINT64_C(5400000000000)}, {"106751d", UINT64_C(9223286400000000000)}};
	static const char *const bad[] = {
		"", "s", "-1", "1 s", "1S", "1us", "1.5.5", ".5", "106752d", "1,5", "1e3"};
	uint64_t ns;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(bc_time_read(&ns, good[i].text));
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(bc_time_read(&ns, bad[i]));
}

TEST(rotation_rules_are_combined)
{
	struct bc_rotation rotation = {0};
	const char *err;

	assert_true(bc_rotation_read(&rotation, "filesize:256", &err));
	assert_int_equal(rotation.file_bytes, 256000);
	assert_true(bc_rotation_read(&rotation, "filesize:256M", &err));
	assert_int_equal(rotation.file_bytes, 256 << 20);
	assert_true(bc_rotation_read(&rotation, "duration:60", &err));
	assert_true(bc_rotation_read(&rotation, "interval:1h", &err));
	assert_true(bc_rotation_read(&rotation, "files:10", &err));
	assert_int_equal(rotation.file_bytes, 256 << 20);
	assert_int_equal(rotation.duration_ns, UINT64_C(60000000000));
	assert_int_equal(rotation.interval_ns, UINT64_C(3600000000000));
	assert_int_equal(rotation.files, 10);
}

TEST(stop_rules_are_combined)
{
	struct bc_stop_rules rules = {0};
	const char *err;

	assert_true(bc_stop_rule_read(&rules, "duration:10", &err));
	assert_true(bc_stop_rule_read(&rules, "records:18446744073709551615", &err));
	assert_true(bc_stop_rule_read(&rules, "filesize:1G", &err));
	assert_int_equal(rules.duration_ns, UINT64_C(10000000000));
	assert_true(rules.records == UINT64_MAX);
	assert_int_equal(rules.file_bytes, 1 << 30);
}

TEST(an_invalid_rule_is_rejected_with_a_phrase)
{
	static const char *const bad[] = {"", "filesize", "filesize:", "filesize:0", "filesize:-1",
		"duration:0", "duration:x", "files:0", "files:1K", "size:5", "records:0",
		"records:1M", "Filesize:1"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct bc_rotation rotation = {0};
		struct bc_stop_rules rules = {0};
		const char *err = NULL;
		assert_false(bc_rotation_read(&rotation, bad[i], &err));
		assert_non_null(err);
		err = NULL;
		assert_false(bc_stop_rule_read(&rules, bad[i], &err));
		assert_non_null(err);
	}
}
