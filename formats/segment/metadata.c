#include "formats/segment/metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/base/utf8.h"

bool bc_word_is_valid(const char *word)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t n = strspn(word, allowed);

	return word[n] == '\0' && n >= 1 && n <= BC_WORD_MAX;
}

static bool check_member(const char *key, const char *value, char *err, size_t errlen)
{
	if (!bc_word_is_valid(key))
		return bc_fail(err, errlen,
			"a metadata key has 1 to 64 letters, digits, '.', '_' and '-'");
	if (value == NULL)
		return bc_fail(err, errlen, "metadata %s: the value is not a string", key);
	size_t bytes = strlen(value);
	if (bytes > BC_METADATA_VALUE_MAX)
		return bc_fail(err, errlen, "metadata %s: the value has %zu bytes; the limit is %u",
			key, bytes, BC_METADATA_VALUE_MAX);
	return true;
}

/* Writes an object as text to `out`. Returns false, with `out` unchanged, if it does not fit. */
static bool write_object(char out[BC_METADATA_MAX], const json_t *object, char *err, size_t errlen)
{
	char *text = json_object_size(object) != 0 ? bc_json_print(object) : strdup("");
	bool fits = text != NULL && strlen(text) < BC_METADATA_MAX;

	if (fits)
		strcpy(out, text);
	else if (text == NULL)
		bc_fail(err, errlen, "out of memory");
	else
		bc_message(
			err, errlen, "the metadata is longer than %d bytes", BC_METADATA_MAX - 1);
	free(text);
	return fits;
}

json_t *bc_metadata_parse(const char *text)
{
	return text != NULL && text[0] != '\0' ? bc_json_parse(text, strlen(text), 0, NULL)
					       : json_object();
}

bool bc_metadata_from_json(
	char out[BC_METADATA_MAX], const json_t *object, char *err, size_t errlen)
{
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		return bc_fail(err, errlen, "the metadata is not a JSON object of strings");
	json_object_foreach((json_t *)object, key, value)
	{
		if (!check_member(key, json_string_value(value), err, errlen))
			return false;
	}
	return write_object(out, object, err, errlen);
}

bool bc_metadata_read(char out[BC_METADATA_MAX], const char *text, char *err, size_t errlen)
{
	json_t *object = bc_json_parse(text, strlen(text), 0, NULL);
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
	if (!bc_utf8_is_valid(value, strlen(value)))
		return bc_fail(err, errlen, "metadata %s: the value is not UTF-8", key);
	json_t *object = bc_metadata_parse(all);
	json_object_del(object, key);
	if (object != NULL &&
		(value[0] == '\0' || json_object_set_new(object, key, json_string(value)) == 0))
		ok = write_object(all, object, err, errlen);
	else
		bc_fail(err, errlen, "out of memory");
	json_decref(object);
	return ok;
}

bool bc_metadata_merge(char all[BC_METADATA_MAX], const char *more, char *err, size_t errlen)
{
	json_t *old = bc_metadata_parse(all);
	json_t *new = bc_metadata_parse(more);
	bool ok = false;

	if (!json_is_object(old) || !json_is_object(new))
		bc_fail(err, errlen, "the metadata is not a JSON object");
	else if (json_object_update(old, new) != 0)
		bc_fail(err, errlen, "out of memory");
	else
		ok = write_object(all, old, err, errlen);
	json_decref(old);
	json_decref(new);
	return ok;
}
