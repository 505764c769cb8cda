#include "cli/term/humanize.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/number.h"

static const char *scaled(char *out, double value, const char *const *units, unsigned count)
{
	unsigned unit = 0;

	if (!(value > 0)) /* or NaN */
		value = 0;
	while (value >= 999.5 && unit + 1 < count) {
		value /= 1000;
		unit++;
	}
	if (value > 1e15)
		value = 1e15;
	int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
	snprintf(out, BC_HUMANIZE_MAX, "%.*f%s%s", digits, value, *units[unit] != '\0' ? " " : "",
		units[unit]);
	return out;
}

const char *bc_humanize_bytes(char out[BC_HUMANIZE_MAX], double bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};

	return scaled(out, bytes, units, 6);
}

const char *bc_humanize_rate(char out[BC_HUMANIZE_MAX], double per_s)
{
	static const char *const units[] = {"", "k", "M", "G"};

	return scaled(out, per_s, units, 4);
}

const char *bc_humanize_count(char out[BC_HUMANIZE_MAX], uint64_t count)
{
	return bc_number_group(out, count);
}

const char *bc_humanize_time(char out[BC_HUMANIZE_MAX], double seconds)
{
	static const struct {
		double s;
		const char *name;
		double part_s;
		const char *part;
	} units[] = {{86400, "d", 3600, "h"}, {3600, "h", 60, "min"}, {60, "min", 1, "s"}};

	if (!(seconds > 0))
		seconds = 0;
	if (seconds > 1e12)
		seconds = 1e12;
	for (unsigned i = 0; i < 3; i++) {
		if (seconds < units[i].s)
			continue;
		uint64_t parts = (uint64_t)(seconds / units[i].part_s);
		uint64_t each = (uint64_t)(units[i].s / units[i].part_s);
		snprintf(out, BC_HUMANIZE_MAX, "%" PRIu64 " %s %" PRIu64 " %s", parts / each,
			units[i].name, parts % each, units[i].part);
		return out;
	}
	snprintf(out, BC_HUMANIZE_MAX, seconds < 10 && seconds > 0 ? "%.1f s" : "%.0f s", seconds);
	return out;
}
