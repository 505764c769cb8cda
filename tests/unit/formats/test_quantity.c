#include <stdio.h>
#include <string.h>

#include "formats/base/quantity.h"
#include "tests/support/dice.h"
#include "tests/support/test.h"

#define COUNT BC_QUANTITY_COUNT
#define SIZE  BC_QUANTITY_SIZE
#define TIME  BC_QUANTITY_TIME

static char err[BC_QUANTITY_ERROR_MAX];

TEST(each_unit_has_one_meaning)
{
	static const struct {
		enum bc_quantity quantity;
		const char *text;
		uint64_t value;
	} good[] = {{COUNT, "0", 0}, {COUNT, "1k", 1000}, {COUNT, "1K", 1000},
		{COUNT, "1.5M", 1500000}, {COUNT, "1e6", 1000000}, {COUNT, "1.25e+2", 125},
		{COUNT, "18446744073709551615", UINT64_MAX}, {COUNT, "2 G", 2000000000},
		{COUNT, "66MHz", 66000000}, {COUNT, "33.3 MHz", 33300000}, {COUNT, "5Hz", 5},
		{SIZE, "1", 1}, {SIZE, "7B", 7}, {SIZE, "10MB", 10000000}, {SIZE, "10M", 10000000},
		{SIZE, "10MiB", 10 << 20}, {SIZE, "1kB", 1000}, {SIZE, "1KB", 1000},
		{SIZE, "1KiB", 1024}, {SIZE, "1.5GiB", UINT64_C(1536) << 20},
		{SIZE, "2 GB", 2000000000}, {SIZE, "5TiB", UINT64_C(5) << 40},
		{SIZE, "1e3K", 1000000}, {SIZE, "16777215TiB", UINT64_C(16777215) << 40},
		{TIME, "1", 1000000000}, {TIME, "1ns", 1}, {TIME, "3us", 3000},
		{TIME, "200ms", 200000000}, {TIME, "1.5", 1500000000},
		{TIME, "1min", UINT64_C(60000000000)}, {TIME, "1m", UINT64_C(60000000000)},
		{TIME, "1.5 h", UINT64_C(5400000000000)}, {TIME, "30d", UINT64_C(2592000000000000)},
		{SIZE, "800Mi", UINT64_C(800) << 20}, {SIZE, "8Gi", UINT64_C(8) << 30},
		{SIZE, "1.5 Ti", UINT64_C(1536) << 30}, {SIZE, "3Ki", 3072},
		{TIME, "1m30s", UINT64_C(90000000000)},
		{TIME, "1 h 2 min", UINT64_C(3720000000000)},
		{TIME, "1.5m2s", UINT64_C(92000000000)}, {TIME, "0.6ns", 1}, {TIME, "0.05ns", 0},
		{TIME, "106751d", UINT64_C(9223286400000000000)}};

	for (size_t i = 0; i < COUNT_OF(good); i++) {
		uint64_t value;
		if (!bc_quantity_read(&value, good[i].quantity, good[i].text, err, sizeof(err)))
			fail_msg("%s: %s", good[i].text, err);
		if (value != good[i].value)
			fail_msg("%s: %llu", good[i].text, (unsigned long long)value);
	}
}

TEST(an_error_names_the_unit_that_is_not_known_and_those_that_are)
{
	static const struct {
		enum bc_quantity quantity;
		const char *text;
		const char *words;
	} bad[] = {{SIZE, "10XB", "unknown unit XB; use KB, MB"}, {SIZE, "1m", "unknown unit m"},
		{TIME, "10M", "unknown unit M; use ns"}, {COUNT, "5s", "unknown unit s; use K"},
		{COUNT, "1MB", "unknown unit MB"}, {COUNT, "", "not a decimal number"},
		{COUNT, "M", "not a decimal number"}, {COUNT, "-1", "not a decimal number"},
		{COUNT, " 1", "not a decimal number"}, {COUNT, "0x10", "unknown unit x10"},
		{COUNT, "1,5", "not a decimal number"}, {COUNT, "1 ", "not a decimal number"},
		{COUNT, "1.", "not a decimal number"}, {COUNT, ".5", "not a decimal number"},
		{COUNT, "1.5", "not a whole number"}, {COUNT, "1e20", "too large"},
		{COUNT, "18446744073709551616", "not a decimal number"},
		{SIZE, "1.0001K", "not a whole number"}, {SIZE, "16777216TiB", "too large"},
		{TIME, "30s1m", "not a time"}, {TIME, "1m1m", "not a time"},
		{TIME, "1m30", "not a time"}, {TIME, "30 1m", "not a time"},
		{TIME, "1m ", "not a time"}, {TIME, "1m  2s", "not a time"},
		{TIME, "1m3x", "unknown unit x; use ns"}, {SIZE, "1M2K", "unknown unit M2K"},
		{TIME, "106751d24h", "too large"}, {TIME, "106752d", "too large"},
		{TIME, "1.5.5", "not a time"}};

	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		uint64_t value;
		if (bc_quantity_read(&value, bad[i].quantity, bad[i].text, err, sizeof(err)))
			fail_msg("'%s' was accepted", bad[i].text);
		if (strstr(err, bad[i].words) == NULL)
			fail_msg("'%s': %s", bad[i].text, err);
	}
}

TEST(a_time_of_several_units_is_their_sum)
{
	static const struct {
		const char *name;
		uint64_t ns;
		uint32_t most;
	} units[] = {{"d", UINT64_C(86400000000000), 1000}, {"h", UINT64_C(3600000000000), 24},
		{"min", UINT64_C(60000000000), 60}, {"s", 1000000000, 60}, {"ms", 1000000, 1000},
		{"us", 1000, 1000}, {"ns", 1, 1000}};
	struct dice dice = {8};

	for (int round = 0; round < 2000; round++) {
		char text[200] = "";
		uint64_t wanted = 0;
		uint64_t value = 1;
		for (size_t i = 0; i < COUNT_OF(units); i++) {
			uint32_t n = dice_below(&dice, units[i].most);
			size_t used = strlen(text);
			if (dice_below(&dice, 2) == 0 && (i < 6 || used != 0))
				continue;
			wanted += n * units[i].ns;
			snprintf(text + used, sizeof(text) - used, "%s%u%s%s",
				used != 0 && dice_below(&dice, 2) == 0 ? " " : "", n,
				dice_below(&dice, 2) == 0 ? " " : "", units[i].name);
		}
		if (!bc_quantity_read(&value, TIME, text, err, sizeof(err)) || value != wanted)
			fail_msg("%s: %llu, %s", text, (unsigned long long)value, err);
	}
}

TEST(what_is_written_is_read_as_the_same)
{
	static const struct {
		enum bc_quantity quantity;
		uint64_t value;
		const char *text;
	} good[] = {{COUNT, 1000, "1000"}, {SIZE, 0, "0"}, {SIZE, 1, "1B"},
		{SIZE, 64000000, "64MB"}, {SIZE, 64 << 20, "64MiB"}, {SIZE, 1000, "1KB"},
		{TIME, 0, "0"}, {TIME, UINT64_C(120000000000), "2min"},
		{TIME, 1500000000, "1500ms"}, {TIME, 1500, "1500ns"},
		{TIME, 1234500000, "1234500us"}, {TIME, UINT64_C(86400000000000), "1d"}};

	for (size_t i = 0; i < COUNT_OF(good); i++) {
		char text[BC_QUANTITY_TEXT_MAX];
		uint64_t value = 1;
		bc_quantity_write(text, good[i].quantity, good[i].value);
		assert_string_equal(text, good[i].text);
		assert_true(bc_quantity_read(&value, good[i].quantity, text, err, sizeof(err)));
		assert_true(value == good[i].value);
	}
}
