#include "cli/term/json_path.h"

#include <math.h>

#include "formats/base/text.h"

#define NUMBER_MAX 1e18

const char *bc_json_path_text(const json_t *object, const char *path)
{
	const char *text = json_string_value(bc_json_path(object, path));

	return text != NULL && *text != '\0' ? text : NULL;
}

uint64_t bc_json_path_count(const json_t *object, const char *path)
{
	const json_t *item = bc_json_path(object, path);
	uint64_t value;

	if (json_is_string(item)) /* a number that is too large for JSON: bc_json_u64() */
		return bc_number_read(&value, json_string_value(item)) ? value : 0;
	if (json_is_integer(item))
		return json_integer_value(item) > 0 ? (uint64_t)json_integer_value(item) : 0;
	return (uint64_t)bc_json_path_number(object, path);
}

double bc_json_path_number(const json_t *object, const char *path)
{
	double value = json_number_value(bc_json_path(object, path));

	return value > 0 ? fmin(value, NUMBER_MAX) : 0;
}

json_t *bc_json_parse_object(const char *text, size_t bytes)
{
	json_t *json = bc_json_parse(text, bytes, JSON_ALLOW_NUL, NULL);

	if (json_is_object(json))
		return json;
	json_decref(json);
	return NULL;
}
