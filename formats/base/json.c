#include "formats/base/json.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/utf8.h"

/* Doubles represent all integers up to this one exactly. */
#define DOUBLE_EXACT_MAX (UINT64_C(1) << 53)

json_t *bc_json_text(const char *text)
{
	if (text == NULL)
		return json_null();
	json_t *string = json_string(text);
	if (string != NULL)
		return string;
	char *repaired = bc_utf8_repair(text);
	string = repaired != NULL ? json_string(repaired) : NULL;
	free(repaired);
	return string;
}

json_t *bc_json_text_or_null(const char *text)
{
	return text[0] != '\0' ? bc_json_text(text) : json_null();
}

json_t *bc_json_u64(uint64_t value)
{
	char digits[24];

	if (value <= INT64_MAX)
		return json_integer((json_int_t)value);
	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	return json_string(digits);
}

json_t *bc_json_double(double value)
{
	if (!isfinite(value))
		return json_null();
	if (fabs(value) <= (double)DOUBLE_EXACT_MAX && !(fabs(value) > floor(fabs(value))))
		return json_integer((json_int_t)value);
	return json_real(value);
}

json_t *bc_json_object(const struct bc_json_member *members)
{
	json_t *object = json_object();
	bool ok = true;

	for (; members->name != NULL; members++)
		ok = json_object_set_new(object, members->name, members->value) == 0 && ok;
	if (ok)
		return object;
	json_decref(object);
	return NULL;
}

/* The text printed so far. */
struct printed {
	char *text;
	size_t bytes;
	size_t size;
	bool has_failed;
};

static int append_printed(const char *piece, size_t bytes, void *context)
{
	struct printed *p = context;

	if (p->size - p->bytes < bytes) {
		size_t size = 2 * p->size + bytes + 256;
		char *text = realloc(p->text, size);
		p->has_failed = p->has_failed || text == NULL;
		if (text == NULL)
			return -1;
		p->text = text;
		p->size = size;
	}
	memcpy(p->text + p->bytes, piece, bytes);
	p->bytes += bytes;
	return 0;
}

/* Not with json_dumps(): while jansson prints a member's name, it ignores errors (2.14). Out of
 * memory would leave out the name. */
static char *print_compact(const json_t *json)
{
	struct printed p = {.text = NULL};
	/* With 17 digits, 0.1 would be printed as 0.10000000000000001. */
	size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15);

	if (json != NULL && json_dump_callback(json, append_printed, &p, flags) == 0 &&
		append_printed("", 1, &p) == 0 && !p.has_failed)
		return p.text;
	free(p.text);
	return NULL;
}

char *bc_json_print(const json_t *json)
{
	char *text = print_compact(json);

	/* jansson writes \u001B. Segment headers have always had \u001b. */
	for (char *p = text; p != NULL && (p = strchr(p, '\\')) != NULL; p += 2)
		if (p[1] == 'u')
			for (int i = 4; i < 6; i++)
				p[i] = (char)tolower((unsigned char)p[i]);
	return text;
}

void bc_json_member_text(const json_t *object, const char *name, char *out, size_t outlen)
{
	const char *text = json_string_value(json_object_get(object, name));

	snprintf(out, outlen, "%s", text != NULL ? text : "");
}

uint64_t bc_json_member_u64(const json_t *object, const char *name)
{
	const json_t *item = json_object_get(object, name);

	if (json_is_integer(item))
		return json_integer_value(item) > 0 ? (uint64_t)json_integer_value(item) : 0;
	double value = json_real_value(item);
	if (value >= (double)DOUBLE_EXACT_MAX)
		return DOUBLE_EXACT_MAX;
	return value > 0 ? (uint64_t)value : 0;
}
