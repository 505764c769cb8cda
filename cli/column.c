#include "cli/column.h"

#include <string.h>

#include "cli/quantity.h"
#include "cli/safe_text.h"
#include "formats/json.h"

#define TEXT_MAX  1024
#define WIDTH_MAX 128u

static void put(struct bc_output *o, int width, const char *text)
{
	char safe[TEXT_MAX];

	bc_safe_text(safe, sizeof(safe), text != NULL && *text != '\0' ? text : "-");
	bc_output_format(o, "%-*s  ", width, safe);
}

int bc_column_width(const cJSON *array, const char *name, int least)
{
	const cJSON *row;
	int width = least;

	cJSON_ArrayForEach(row, array)
	{
		const char *text = cJSON_GetStringValue(
			cJSON_GetObjectItemCaseSensitive(row, name));
		int n = text != NULL ? (int)strnlen(text, WIDTH_MAX) : 0;
		width = n > width ? n : width;
	}
	return width;
}

void bc_column_text(struct bc_output *o, int width, const cJSON *object, const char *name)
{
	put(o, width, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name)));
}

void bc_column_count(struct bc_output *o, int width, const cJSON *object, const char *name)
{
	char count[BC_QUANTITY_MAX] = "-";

	if (cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(object, name)))
		bc_quantity_count(count, bc_json_get_u64(object, name));
	bc_output_format(o, "%*s  ", width, count);
}

void bc_column_time(struct bc_output *o, const cJSON *object, const char *name)
{
	char time[BC_COLUMN_TIME + 1];

	bc_json_get_text(object, name, time, sizeof(time));
	put(o, BC_COLUMN_TIME, time);
}
