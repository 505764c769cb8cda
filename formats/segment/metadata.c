#include "formats/segment/metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/json.h"
#include "formats/base/utf8.h"

static bool complain(char *err, size_t errlen, const char *text)
{
	snprintf(err, errlen, "%s", text);
	return false;
}

static bool is_key_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

bool bc_metadata_key_is_valid(const char *key)
{
	size_t n = strlen(key);

	for (size_t i = 0; i < n; i++)
		if (!is_key_char(key[i]))
			return false;
	return n >= 1 && n <= BC_METADATA_KEY_MAX;
}

static bool check_member(const char *key, const char *value, char *err, size_t errlen)
{
	if (!bc_metadata_key_is_valid(key))
		return complain(err, errlen,
			"a key of the metadata has 1 to 64 letters, digits, points, underscores "
			"and dashes");
	if (value == NULL) {
		snprintf(err, errlen, "metadata %s: a value is a string", key);
		return false;
	}
	size_t bytes = strlen(value);
	if (bytes > BC_METADATA_VALUE_MAX) {
		snprintf(err, errlen, "metadata %s: a value has up to %u bytes, and this has %zu",
			key, BC_METADATA_VALUE_MAX, bytes);
		return false;
	}
	return true;
}

/* Prints an object to `out`. Returns false, with `out` as it was, when it doesn't fit. */
static bool print(char out[BC_METADATA_MAX], const json_t *object, char *err, size_t errlen)
{
	char *text = json_object_size(object) != 0 ? bc_json_print(object) : strdup("");
	bool fits = text != NULL && strlen(text) < BC_METADATA_MAX;

	if (fits)
		strcpy(out, text);
	else if (text == NULL)
		complain(err, errlen, "out of memory");
	else
		snprintf(err, errlen, "the metadata are longer than %d bytes in all",
			BC_METADATA_MAX - 1);
	free(text);
	return fits;
}

json_t *bc_metadata_parse(const char *text)
{
	return text != NULL && text[0] != '\0' ? json_loads(text, 0, NULL) : json_object();
}

bool bc_metadata_from_json(
	char out[BC_METADATA_MAX], const json_t *object, char *err, size_t errlen)
{
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		return complain(err, errlen, "the metadata are a JSON object of strings");
	json_object_foreach((json_t *)object, key, value)
	{
		if (!check_member(key, json_string_value(value), err, errlen))
			return false;
	}
	return print(out, object, err, errlen);
}

bool bc_metadata_read(char out[BC_METADATA_MAX], const char *text, char *err, size_t errlen)
{
	json_t *object = json_loads(text, 0, NULL);
	bool ok = bc_metadata_from_json(out, object, err, errlen);

	json_decref(object);
	return ok;
}

bool bc_metadata_set(
	char all[BC_METADATA_MAX], const char *key, const char *value, char *err, size_t errlen)
{
	bool ok = false;

	if (!check_member(key, value, err, errlen))
		return false;
	if (!bc_utf8_is_valid(value, strlen(value))) {
		snprintf(err, errlen, "metadata %s: the value is not UTF-8", key);
		return false;
	}
	json_t *object = bc_metadata_parse(all);
	json_object_del(object, key);
	if (value[0] == '\0' || json_object_set_new(object, key, json_string(value)) == 0)
		ok = print(all, object, err, errlen);
	else
		complain(err, errlen, "out of memory");
	json_decref(object);
	return ok;
}

bool bc_metadata_merge(char all[BC_METADATA_MAX], const char *more, char *err, size_t errlen)
{
	json_t *old = bc_metadata_parse(all);
	json_t *new = bc_metadata_parse(more);
	bool ok = false;

	if (!json_is_object(old) || !json_is_object(new))
		complain(err, errlen, "the metadata are no JSON object");
	else if (json_object_update(old, new) != 0)
		complain(err, errlen, "out of memory");
	else
		ok = print(all, old, err, errlen);
	json_decref(old);
	json_decref(new);
	return ok;
}
