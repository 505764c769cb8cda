#include "daemon/api_body.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/api_json.h"
#include "daemon/rules.h"
#include "formats/metadata.h"
#include "formats/utf8.h"

/* So much of a client's own words is given back. */
#define QUOTED_MAX 48

/* Each pair is looked for among the others. */
#define PAIRS_MAX 256

bool bc_body_wrong(const struct bc_body *body, const char *name, const char *sentence)
{
	snprintf(body->why, body->room, "%s%.*s: %s", body->where,
		(int)bc_utf8_cut(name, QUOTED_MAX), name, sentence);
	return false;
}

/* Refuses an unknown member with those that there are. */
static bool refuse_member(const struct bc_body *body, const cJSON *member, const char *const *names)
{
	char sentence[256] = "no such member; ";
	size_t n = strlen(sentence);

	if (names[0] == NULL)
		return bc_body_wrong(body, member->string, "no such member; there are none");
	for (unsigned i = 0; names[i] != NULL && n < sizeof(sentence); i++) {
		const char *between = i == 0 ? "" : names[i + 1] == NULL ? " and " : ", ";
		n += (size_t)snprintf(
			sentence + n, sizeof(sentence) - n, "%s%s", between, names[i]);
	}
	if (n < sizeof(sentence))
		snprintf(sentence + n, sizeof(sentence) - n, names[1] == NULL ? " is" : " are");
	return bc_body_wrong(body, member->string, sentence);
}

static bool check_members(const struct bc_body *body, const char *const *names)
{
	const cJSON *member;

	cJSON_ArrayForEach(member, body->object)
	{
		unsigned i = 0;
		while (names[i] != NULL && strcmp(names[i], member->string) != 0)
			i++;
		if (names[i] == NULL)
			return refuse_member(body, member, names);
		if (cJSON_GetObjectItemCaseSensitive(body->object, member->string) != member)
			return bc_body_wrong(body, member->string, "it stands there twice");
	}
	return true;
}

bool bc_body_read(struct bc_body *body, const char *text, size_t bytes, const char *const *names,
	char *why, size_t room)
{
	const char *what;
	const char *end = NULL;
	size_t at;

	*body = (struct bc_body){.why = why, .room = room};
	if (bytes == 0) {
		text = "{}";
		bytes = 2;
	}
	if (!bc_api_json_is_strict(text, bytes, &what, &at)) {
		snprintf(why, room, "the body is no JSON: %s (byte %zu)", what, at + 1);
		return false;
	}
	body->object = cJSON_ParseWithLengthOpts(text, bytes, &end, false);
	if (body->object == NULL) {
		snprintf(why, room, "the body is no JSON, from byte %zu on",
			end != NULL ? (size_t)(end - text) + 1 : 1);
		return false;
	}
	while (end < text + bytes && strchr(" \t\r\n", *end) != NULL)
		end++;
	if (end != text + bytes)
		snprintf(why, room, "something stands behind the body's object, at byte %zu",
			(size_t)(end - text) + 1);
	else if (!cJSON_IsObject(body->object))
		snprintf(why, room, "the body is a JSON object, { }");
	else if (check_members(body, names))
		return true;
	bc_body_free(body);
	return false;
}

void bc_body_free(struct bc_body *body)
{
	cJSON_Delete(body->object);
	body->object = NULL;
}

static const cJSON *find(const struct bc_body *body, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(body->object, name);
}

bool bc_body_has(const struct bc_body *body, const char *name)
{
	return find(body, name) != NULL;
}

bool bc_body_need(const struct bc_body *body, const char *name)
{
	return find(body, name) != NULL || bc_body_wrong(body, name, "it is missing");
}

bool bc_body_text(const struct bc_body *body, const char *name, char *out, size_t room)
{
	const cJSON *item = find(body, name);
	char sentence[64];

	if (item == NULL)
		return true;
	if (!cJSON_IsString(item))
		return bc_body_wrong(body, name, "it is a text");
	size_t n = strlen(item->valuestring);
	if (n < 1 || n >= room) {
		snprintf(sentence, sizeof(sentence), "it has 1 to %zu bytes", room - 1);
		return bc_body_wrong(body, name, sentence);
	}
	memcpy(out, item->valuestring, n + 1);
	return true;
}

bool bc_body_flag(const struct bc_body *body, const char *name, bool *flag)
{
	const cJSON *item = find(body, name);

	if (item == NULL)
		return true;
	if (!cJSON_IsBool(item))
		return bc_body_wrong(body, name, "it is true or false");
	*flag = cJSON_IsTrue(item);
	return true;
}

bool bc_body_number(const struct bc_body *body, const char *name, uint64_t least, uint64_t most,
	uint64_t *number)
{
	const cJSON *item = find(body, name);
	char sentence[96];

	if (item == NULL)
		return true;
	double value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
	if (value >= (double)least && value <= (double)most && !(value > floor(value))) {
		*number = (uint64_t)value;
		return true;
	}
	snprintf(sentence, sizeof(sentence), "it is a whole number from %" PRIu64 " to %" PRIu64,
		least, most);
	return bc_body_wrong(body, name, sentence);
}

bool bc_body_words(const struct bc_body *body, const char *name, char *out, size_t room)
{
	const cJSON *item = find(body, name);

	if (item == NULL || !cJSON_IsNumber(item))
		return bc_body_text(body, name, out, room);
	if (!(item->valuedouble >= 0 && item->valuedouble < 1e10))
		return bc_body_wrong(body, name, "so many seconds are no time");
	snprintf(out, room, "%.9fs", item->valuedouble);
	return true;
}

bool bc_body_time(const struct bc_body *body, const char *name, uint64_t *ns)
{
	char words[64];

	if (!bc_body_has(body, name))
		return true;
	if (!cJSON_IsNumber(find(body, name)) && !cJSON_IsString(find(body, name)))
		return bc_body_wrong(body, name, "it is a number of seconds or a text");
	if (!bc_body_words(body, name, words, sizeof(words)))
		return false;
	return (bc_time_read(ns, words) && *ns != 0) ||
	       bc_body_wrong(body, name,
		       "it is a time above 0: a number of seconds, or a text with ms, s, m, h or "
		       "d");
}

bool bc_body_size(const struct bc_body *body, const char *name, uint64_t *bytes)
{
	const cJSON *item = find(body, name);

	if (item == NULL || cJSON_IsNumber(item))
		return bc_body_number(body, name, 1, BC_BODY_NUMBER_MAX, bytes);
	return (cJSON_IsString(item) && bc_size_read(bytes, item->valuestring, 1) && *bytes != 0) ||
	       bc_body_wrong(body, name,
		       "it is a size above 0: a number of bytes, or a text with K, M, G or T");
}

bool bc_body_metadata(const struct bc_body *body, const char *name, char out[BC_METADATA_MAX])
{
	const cJSON *item = find(body, name);
	const cJSON *pair;

	if (item == NULL)
		return true;
	if (!cJSON_IsObject(item))
		return bc_body_wrong(body, name, "it is an object of texts");
	if (cJSON_GetArraySize(item) > PAIRS_MAX)
		return bc_body_wrong(body, name, "there are 256 pairs at most");
	cJSON_ArrayForEach(pair, item)
	{
		if (cJSON_GetObjectItemCaseSensitive(item, pair->string) != pair)
			return bc_body_wrong(body, name, "a key stands there twice");
	}
	char *text = cJSON_PrintUnformatted(item);
	if (text == NULL)
		return bc_body_wrong(body, name, "memory ran out");
	/* Its sentence names what it is about. */
	bool is_good = bc_metadata_read(out, text, body->why, body->room);
	cJSON_free(text);
	return is_good;
}

/* Makes *inner the view of an object within the body. */
static bool enter(const struct bc_body *body, cJSON *item, const char *where,
	const char *const *names, struct bc_body *inner)
{
	*inner = (struct bc_body){.object = item, .why = body->why, .room = body->room};
	snprintf(inner->where, sizeof(inner->where), "%.20s%.40s.", body->where, where);
	return check_members(inner, names);
}

bool bc_body_object(const struct bc_body *body, const char *name, const char *const *names,
	struct bc_body *inner)
{
	cJSON *item = cJSON_GetObjectItemCaseSensitive(body->object, name);

	if (item != NULL && !cJSON_IsObject(item))
		return bc_body_wrong(body, name, "it is an object");
	return enter(body, item, name, names, inner);
}

bool bc_body_count(const struct bc_body *body, const char *name, unsigned most, unsigned *count)
{
	const cJSON *item = find(body, name);
	char sentence[64];

	*count = 0;
	if (item == NULL)
		return true;
	if (!cJSON_IsArray(item))
		return bc_body_wrong(body, name, "it is a list");
	*count = (unsigned)cJSON_GetArraySize(item);
	if (*count <= most)
		return true;
	snprintf(sentence, sizeof(sentence), "there are %u at most", most);
	return bc_body_wrong(body, name, sentence);
}

bool bc_body_element(const struct bc_body *body, const char *name, unsigned at,
	const char *const *names, struct bc_body *inner)
{
	cJSON *item = cJSON_GetArrayItem(find(body, name), (int)at);
	char where[32];

	snprintf(where, sizeof(where), "%.16s[%u]", name, at);
	if (!cJSON_IsObject(item))
		return bc_body_wrong(body, where, "it is an object");
	return enter(body, item, where, names, inner);
}
