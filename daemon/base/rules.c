#include "daemon/base/rules.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "formats/base/quantity.h"
#include "formats/base/text.h"

bool bc_setting_name_is_valid(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	return n != 0 && n <= BC_SETTING_NAME_MAX && name[n] == '\0';
}

/* Only units of sizes end in these. */
static bool is_size(const char *text)
{
	size_t n = strlen(text);

	return n != 0 && strchr("kKMGTB", text[n - 1]) != NULL;
}

bool bc_time_or_size_read(
	struct bc_time_or_size *length, const char *text, char *err, size_t errlen)
{
	struct bc_time_or_size read = {
		.unit = is_size(text) ? BC_TIME_OR_SIZE_BYTES : BC_TIME_OR_SIZE_TIME};
	enum bc_quantity quantity = read.unit == BC_TIME_OR_SIZE_BYTES ? BC_QUANTITY_SIZE
								       : BC_QUANTITY_TIME;

	if (strcmp(text, "all") == 0)
		read.unit = BC_TIME_OR_SIZE_ALL;
	else if (!isdigit((unsigned char)text[0]))
		return bc_fail(err, errlen, "not a time or size; try 10s, 64M or all");
	else if (!bc_quantity_read(&read.value, quantity, text, err, errlen))
		return false;
	else if (read.value == 0)
		read.unit = BC_TIME_OR_SIZE_NONE;
	*length = read;
	return true;
}

void bc_time_or_size_print(char out[BC_QUANTITY_TEXT_MAX], struct bc_time_or_size length)
{
	switch (length.unit) {
	case BC_TIME_OR_SIZE_NONE:
		snprintf(out, BC_QUANTITY_TEXT_MAX, "0");
		break;
	case BC_TIME_OR_SIZE_ALL:
		snprintf(out, BC_QUANTITY_TEXT_MAX, "all");
		break;
	case BC_TIME_OR_SIZE_TIME:
		bc_quantity_write(out, BC_QUANTITY_TIME, length.value);
		break;
	case BC_TIME_OR_SIZE_BYTES:
		bc_quantity_write(out, BC_QUANTITY_SIZE, length.value);
		break;
	}
}
