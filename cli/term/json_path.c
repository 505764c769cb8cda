/* Templates and columns print values of a JSON object that another version of the daemon may have
 * made. So every reader has an answer for a value that is missing or of another type, and text is
 * escaped on its way to the terminal. */
#include "cli/term/json_path.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "cli/term/text.h"
#include "formats/base/text.h"

#define NUMBER_MAX 1e18

const char *bc_json_path_text(const json_t *object, const char *path)
{
	const char *text = json_string_value(bc_json_path(object, path));

	return text != NULL && *text != '\0' ? text : NULL;
}

/* A number from 0 to NUMBER_MAX. */
static double number_of(const json_t *item)
{
	double value = json_number_value(item);

	return value > 0 ? fmin(value, NUMBER_MAX) : 0;
}

static uint64_t count_of(const json_t *item)
{
	uint64_t value;

	if (json_is_string(item)) /* a number that is too large for JSON: bc_json_u64() */
		return bc_number_read(&value, json_string_value(item)) ? value : 0;
	if (json_is_integer(item))
		return json_integer_value(item) > 0 ? (uint64_t)json_integer_value(item) : 0;
	return (uint64_t)number_of(item);
}

uint64_t bc_json_path_count(const json_t *object, const char *path)
{
	return count_of(bc_json_path(object, path));
}

double bc_json_path_number(const json_t *object, const char *path)
{
	return number_of(bc_json_path(object, path));
}

json_t *bc_json_parse_object(const char *text, size_t bytes)
{
	json_t *json = bc_json_parse(text, bytes, JSON_ALLOW_NUL, NULL);

	if (json_is_object(json))
		return json;
	json_decref(json);
	return NULL;
}

/* A member named in braces, for example {path B}. */
struct member {
	const json_t *value;
	char word[32];
};

/* Parses "{path word}" at `p`. Returns the rest of the template. */
static const char *read_member(struct member *member, const char *p, const json_t *object)
{
	char path[64] = "";
	size_t n = strcspn(++p, " }");

	strncat(path, p, n < sizeof(path) ? n : sizeof(path) - 1);
	member->value = bc_json_path(object, path);
	p += n + (p[n] == ' ');
	n = strcspn(p, "}");
	member->word[0] = '\0';
	strncat(member->word, p, n < sizeof(member->word) ? n : sizeof(member->word) - 1);
	return p + n + 1;
}

static bool is_present(const struct member *member)
{
	if (json_is_string(member->value))
		return json_string_value(member->value)[0] != '\0';
	if (!json_is_number(member->value) || json_number_value(member->value) < 0)
		return false;
	bool is_counted = member->word[0] != '\0' && strchr("#B", member->word[0]) == NULL;
	return !is_counted || count_of(member->value) != 0;
}

static void print_member(struct bc_output *o, const struct member *member)
{
	uint64_t count = count_of(member->value);
	char text[BC_HUMANIZE_MAX];

	if (strcmp(member->word, "B") == 0)
		bc_output_format(o, "%s", bc_humanize_bytes(text, (double)count));
	else if (strcmp(member->word, "#") == 0)
		bc_output_format(o, "%s", BC_GROUPED(count));
	else if (member->word[0] != '\0')
		bc_output_format(o, "%s %s%s", BC_GROUPED(count), member->word, bc_plural(count));
	else if (!is_present(member))
		bc_output_text(o, "-", 1);
	else if (json_is_string(member->value))
		bc_output_safe(o, json_string_value(member->value));
	else
		bc_output_format(o, "%" PRIu64, count);
}

void bc_template_print(struct bc_output *o, const char *p, const json_t *object)
{
	while (*p != '\0') {
		struct member member;
		size_t n = strcspn(p, "{[]");
		bc_output_text(o, p, n);
		p += n;
		if (*p == '{') {
			p = read_member(&member, p, object);
			print_member(o, &member);
		} else if (*p == '[') {
			read_member(&member, strchr(p, '{'), object);
			p = is_present(&member) ? p + 1 : strchr(p, ']') + 1;
		} else if (*p == ']') {
			p++;
		}
	}
}

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
	bool has_count = json_is_number(bc_json_path(object, name));

	bc_output_format(
		o, "%*s  ", width, has_count ? BC_GROUPED(bc_json_path_count(object, name)) : "-");
}

void bc_column_time(struct bc_output *o, const json_t *object, const char *name)
{
	const char *text = bc_json_path_text(object, name);
	char time[BC_COLUMN_TIME + 1] = "";

	if (text != NULL)
		strncat(time, text, BC_COLUMN_TIME);
	write_cell(o, BC_COLUMN_TIME, time);
}
