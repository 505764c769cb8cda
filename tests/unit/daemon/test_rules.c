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

	for (size_t i = 0; i < COUNT_OF(good); i++) {
		assert_true(bc_size_read(&bytes, good[i].text, 1000));
		assert_int_equal(bytes, good[i].bytes);
	}
	for (size_t i = 0; i < COUNT_OF(bad); i++)
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

	for (size_t i = 0; i < COUNT_OF(good); i++) {
		assert_true(bc_time_read(&ns, good[i].text));
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_false(bc_time_read(&ns, bad[i]));
}
