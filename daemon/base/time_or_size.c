#include "daemon/base/time_or_size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/rules.h"
#include "formats/base/text.h"

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
