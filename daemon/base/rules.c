#include "daemon/base/rules.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/text.h"

static bool multiply(uint64_t *value, uint64_t by)
{
	return !__builtin_mul_overflow(*value, by, value);
}

bool bc_size_read(uint64_t *bytes, const char *text, uint64_t unit)
{
	static const struct {
		const char *suffix;
		uint64_t bytes;
	} units[] = {{"K", 1ull << 10}, {"M", 1ull << 20}, {"G", 1ull << 30}, {"T", 1ull << 40}};
	const char *rest;

	if (!bc_number_read_start(bytes, text, &rest))
		return false;
	if (*rest == '\0')
		return multiply(bytes, unit);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(rest, units[i].suffix) == 0)
			return multiply(bytes, units[i].bytes);
	return false;
}

/* Parses the digits after a decimal point, in billionths. */
static uint64_t read_fraction(const char **rest)
{
	uint64_t billionths = 0;
	uint64_t place = 100000000;

	for ((*rest)++; isdigit((unsigned char)**rest); (*rest)++, place /= 10)
		billionths += place * (uint64_t)(**rest - '0');
	return billionths;
}

bool bc_time_read(uint64_t *ns, const char *text)
{
	static const struct {
		const char *suffix;
		uint64_t ns;
	} units[] = {{"", 1000000000}, {"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000},
		{"h", 3600000000000}, {"d", 86400000000000}};
	const char *rest;
	uint64_t billionths = 0;

	if (!bc_number_read_start(ns, text, &rest))
		return false;
	if (*rest == '.')
		billionths = read_fraction(&rest);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(rest, units[i].suffix) != 0)
			continue;
		uint64_t part = (uint64_t)((double)billionths * 1e-9 * (double)units[i].ns + 0.5);
		return multiply(ns, units[i].ns) && !__builtin_add_overflow(*ns, part, ns) &&
		       *ns <= INT64_MAX;
	}
	return false;
}

bool bc_setting_name_is_valid(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	return n != 0 && n <= BC_SETTING_NAME_MAX && name[n] == '\0';
}

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

static bool is_size(const char *text)
{
	size_t n = strlen(text);

	return n != 0 && strchr("KMGT", text[n - 1]) != NULL;
}

bool bc_time_or_size_read(
	struct bc_time_or_size *length, const char *text, char *err, size_t errlen)
{
	struct bc_time_or_size read = {
		.unit = is_size(text) ? BC_TIME_OR_SIZE_BYTES : BC_TIME_OR_SIZE_TIME};
	bool is_good = true;

	if (strcmp(text, "all") == 0)
		read.unit = BC_TIME_OR_SIZE_ALL;
	else if (read.unit == BC_TIME_OR_SIZE_BYTES)
		is_good = bc_size_read(&read.value, text, 1);
	else
		is_good = bc_time_read(&read.value, text);
	if (read.unit != BC_TIME_OR_SIZE_ALL && read.value == 0)
		read.unit = BC_TIME_OR_SIZE_NONE;
	if (is_good)
		*length = read;
	else
		bc_message(err, errlen, "not a length; try 10s, 64M, all");
	return is_good;
}

void bc_time_or_size_print(char out[BC_TIME_OR_SIZE_TEXT_MAX], struct bc_time_or_size length)
{
	static const char units[] = "KMGT";
	uint64_t value = length.value;
	unsigned unit = 0;

	switch (length.unit) {
	case BC_TIME_OR_SIZE_NONE:
		snprintf(out, BC_TIME_OR_SIZE_TEXT_MAX, "0");
		break;
	case BC_TIME_OR_SIZE_ALL:
		snprintf(out, BC_TIME_OR_SIZE_TEXT_MAX, "all");
		break;
	case BC_TIME_OR_SIZE_TIME:
		if (value % NS_PER_S == 0)
			snprintf(out, BC_TIME_OR_SIZE_TEXT_MAX, "%" PRIu64 "s", value / NS_PER_S);
		else if (value % NS_PER_MS == 0)
			snprintf(out, BC_TIME_OR_SIZE_TEXT_MAX, "%" PRIu64 "ms", value / NS_PER_MS);
		else
			snprintf(out, BC_TIME_OR_SIZE_TEXT_MAX, "%" PRIu64 ".%09" PRIu64 "s",
				value / NS_PER_S, value % NS_PER_S);
		break;
	case BC_TIME_OR_SIZE_BYTES:
		for (value = value / 1024 + (value % 1024 != 0); value % 1024 == 0 && unit < 3;
			unit++)
			value /= 1024;
		snprintf(out, BC_TIME_OR_SIZE_TEXT_MAX, "%" PRIu64 "%c", value, units[unit]);
		break;
	}
}
