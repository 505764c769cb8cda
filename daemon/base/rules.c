#include "daemon/base/rules.h"

#include <ctype.h>
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
