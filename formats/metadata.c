#include "formats/metadata.h"

#include <stdio.h>
#include <string.h>

#include "formats/json.h"
#include "formats/utf8.h"

/* What cJSON_PrintPreallocated() wants beyond the text. */
#define PRINT_SLACK 5

static bool complain(char *why, size_t room, const char *text)
{
	snprintf(why, room, "%s", text);
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

/* An escaped zero would end a string of C before its time. */
static bool has_zero(const char *json)
{
	for (; *json != '\0'; json++) {
		if (*json != '\\')
			continue;
		if (strncmp(json, "\\u0000", 6) == 0)
			return true;
		if (*++json == '\0')
			return false;
	}
	return false;
}

static bool check_member(const cJSON *member, char *why, size_t room)
{
	const char *value = cJSON_GetStringValue(member);

	if (!bc_metadata_key_is_valid(member->string))
		return complain(why, room,
			"a key of the metadata has 1 to 64 letters, digits, points, underscores "
			"and dashes");
	if (value == NULL) {
		snprintf(why, room, "metadata %s: a value is a string", member->string);
		return false;
	}
	size_t bytes = strlen(value);
	if (bytes > BC_METADATA_VALUE_MAX) {
		snprintf(why, room, "metadata %s: a value has up to %u bytes, and this has %zu",
			member->string, BC_METADATA_VALUE_MAX, bytes);
		return false;
	}
	if (!bc_utf8_is_valid(value, bytes)) {
		snprintf(why, room, "metadata %s: the value is not UTF-8", member->string);
		return false;
	}
	return true;
}

/* Prints an object to `out`. Returns false, with `out` as it was, when it doesn't fit. */
static bool print(char out[BC_METADATA_MAX], cJSON *object, char *why, size_t room)
{
	char text[BC_METADATA_MAX + PRINT_SLACK];

	if (object->child == NULL) {
		out[0] = '\0';
		return true;
	}
	if (!cJSON_PrintPreallocated(object, text, sizeof(text), false) ||
		strlen(text) >= BC_METADATA_MAX) {
		snprintf(why, room, "the metadata are longer than %d bytes in all",
			BC_METADATA_MAX - 1);
		return false;
	}
	memcpy(out, text, strlen(text) + 1);
	return true;
}

/* Adds a member, or gives the one of its name another value. */
static bool set_member(cJSON *all, const cJSON *member)
{
	cJSON *copy = cJSON_Duplicate(member, true);

	if (copy == NULL)
		return false;
	bool is_set = cJSON_GetObjectItemCaseSensitive(all, member->string) != NULL
			      ? cJSON_ReplaceItemInObjectCaseSensitive(all, member->string, copy)
			      : cJSON_AddItemToObject(all, member->string, copy);
	if (!is_set)
		cJSON_Delete(copy);
	return is_set;
}

static bool set_members(cJSON *all, const cJSON *more)
{
	const cJSON *member;

	cJSON_ArrayForEach(member, more) if (!set_member(all, member)) return false;
	return true;
}

bool bc_metadata_read(char out[BC_METADATA_MAX], const char *text, char *why, size_t room)
{
	cJSON *given = has_zero(text) ? NULL : cJSON_ParseWithOpts(text, NULL, true);
	cJSON *all = cJSON_CreateObject();
	const cJSON *member;
	bool is_good = false;

	if (!cJSON_IsObject(given) || all == NULL) {
		complain(why, room, "the metadata are a JSON object of strings");
		goto out;
	}
	is_good = true;
	cJSON_ArrayForEach(member, given) is_good = is_good && check_member(member, why, room);
	if (!is_good)
		goto out;
	/* One by one: of two of a name the last is meant. */
	is_good = set_members(all, given) || complain(why, room, "not enough memory");
	is_good = is_good && print(out, all, why, room);
out:
	cJSON_Delete(all);
	cJSON_Delete(given);
	return is_good;
}

bool bc_metadata_merge(char all[BC_METADATA_MAX], const char *more, char *why, size_t room)
{
	cJSON *old = cJSON_Parse(all[0] != '\0' ? all : "{}");
	cJSON *new = cJSON_Parse(more[0] != '\0' ? more : "{}");
	bool is_good = cJSON_IsObject(old) && cJSON_IsObject(new);

	if (!is_good)
		complain(why, room, "the metadata are no JSON object");
	else if (!set_members(old, new))
		is_good = complain(why, room, "not enough memory");
	else
		is_good = print(all, old, why, room);
	cJSON_Delete(old);
	cJSON_Delete(new);
	return is_good;
}
