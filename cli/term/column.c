#include "cli/term/column.h"

#include <string.h>

#include "cli/term/humanize.h"
#include "cli/term/json_path.h"
#include "cli/term/safe_text.h"

#define TEXT_MAX  1024
#define WIDTH_MAX 128u

static void write_cell(struct bc_output *o, int width, const char *text)
{
	char safe[TEXT_MAX];

	bc_safe_text(safe, sizeof(safe), text != NULL && *text != '\0' ? text : "-");
	bc_output_format(o, "%-*s  ", width, safe);
}

int bc_column_width(const json_t *array, const char *name, int min_width)
{
	const json_t *row;
	size_t i;
	int width = min_width;

	json_array_foreach(array, i, row)
	{
		const char *text = bc_json_path_text(row, name);
		int n = text != NULL ? (int)strnlen(text, WIDTH_MAX) : 0;
		width = n > width ? n : width;
	}
	return width;
}

void bc_column_text(struct bc_output *o, int width, const json_t *object, const char *name)
{
	write_cell(o, width, bc_json_path_text(object, name));
}

void bc_column_count(struct bc_output *o, int width, const json_t *object, const char *name)
{
	char count[BC_HUMANIZE_MAX] = "-";

	if (json_is_number(bc_json_path(object, name)))
		bc_humanize_count(count, bc_json_path_count(object, name));
	bc_output_format(o, "%*s  ", width, count);
}

void bc_column_time(struct bc_output *o, const json_t *object, const char *name)
{
	const char *text = bc_json_path_text(object, name);
	char time[BC_COLUMN_TIME + 1] = "";

	if (text != NULL)
		strncat(time, text, BC_COLUMN_TIME);
	write_cell(o, BC_COLUMN_TIME, time);
}
