#include "daemon/api/api_body.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/rules.h"
#include "formats/base/utf8.h"
#include "formats/segment/metadata.h"

/* So much of a client's own words is given back. */
#define QUOTED_MAX 48

bool bc_body_fail(const struct bc_body *body, const char *name, const char *sentence)
{
	snprintf(body->err, body->room, "%s%.*s: %s", body->where,
		(int)bc_utf8_fit(name, QUOTED_MAX), name, sentence);
	return false;
}

/* Refuses an unknown member with those that there are. */
static bool refuse_member(const struct bc_body *body, const char *member, const char *const *names)
{
	char sentence[256] = "no such member; ";
	size_t n = strlen(sentence);

	if (names[0] == NULL)
		return bc_body_fail(body, member, "no such member; there are none");
	for (unsigned i = 0; names[i] != NULL && n < sizeof(sentence); i++) {
		const char *between = i == 0 ? "" : names[i + 1] == NULL ? " and " : ", ";
		n += (size_t)snprintf(
			sentence + n, sizeof(sentence) - n, "%s%s", between, names[i]);
	}
	if (n < sizeof(sentence))
		snprintf(sentence + n, sizeof(sentence) - n, names[1] == NULL ? " is" : " are");
	return bc_body_fail(body, member, sentence);
}

/* jansson quotes the text at the error, and may cut a character of it. */
static void refuse_json(const struct bc_body *body, const json_error_t *error)
{
	char *text = bc_utf8_repair(error->text);

	snprintf(body->err, body->room, "invalid JSON at byte %d: %s", error->position,
		text != NULL ? text : "out of memory");
	free(text);
}

static bool check_members(const struct bc_body *body, const char *const *names)
{
	const char *member;
	json_t *value;

	json_object_foreach(body->object, member, value)
	{
		unsigned i = 0;
		while (names[i] != NULL && strcmp(names[i], member) != 0)
			i++;
		if (names[i] == NULL)
			return refuse_member(body, member, names);
	}
	return true;
}

bool bc_body_parse(struct bc_body *body, const char *text, size_t bytes, const char *const *names,
	char *err, size_t errlen)
{
	json_error_t error;

	*body = (struct bc_body){.err = err, .room = errlen};
	body->object = bytes != 0 ? json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error)
				  : json_object();
	if (body->object == NULL && bytes != 0)
		refuse_json(body, &error);
	else if (body->object == NULL)
		snprintf(err, errlen, "out of memory");
	else if (!json_is_object(body->object))
		snprintf(err, errlen, "the body is a JSON object, { }");
	else if (check_members(body, names))
		return true;
	bc_body_free(body);
	return false;
}

void bc_body_free(struct bc_body *body)
{
	json_decref(body->object);
	body->object = NULL;
}

static json_t *find(const struct bc_body *body, const char *name)
{
	return json_object_get(body->object, name);
}

bool bc_body_has(const struct bc_body *body, const char *name)
{
	return find(body, name) != NULL;
}

bool bc_body_require(const struct bc_body *body, const char *name)
{
	return find(body, name) != NULL || bc_body_fail(body, name, "it is missing");
}

bool bc_body_text(const struct bc_body *body, const char *name, char *out, size_t room)
{
	const json_t *item = find(body, name);
	char sentence[64];

	if (item == NULL)
		return true;
	if (!json_is_string(item))
		return bc_body_fail(body, name, "it is a text");
	size_t n = json_string_length(item);
	if (n < 1 || n >= room) {
		snprintf(sentence, sizeof(sentence), "it has 1 to %zu bytes", room - 1);
		return bc_body_fail(body, name, sentence);
	}
	memcpy(out, json_string_value(item), n + 1);
	return true;
}

bool bc_body_flag(const struct bc_body *body, const char *name, bool *flag)
{
	const json_t *item = find(body, name);

	if (item == NULL)
		return true;
	if (!json_is_boolean(item))
		return bc_body_fail(body, name, "it is true or false");
	*flag = json_is_true(item);
	return true;
}

bool bc_body_integer(const struct bc_body *body, const char *name, uint64_t least, uint64_t most,
	uint64_t *number)
{
	const json_t *item = find(body, name);
	char sentence[96];

	if (item == NULL)
		return true;
	double value = json_is_number(item) ? json_number_value(item) : NAN;
	if (value >= (double)least && value <= (double)most && !(value > floor(value))) {
		*number = (uint64_t)value;
		return true;
	}
	snprintf(sentence, sizeof(sentence), "it is a whole number from %" PRIu64 " to %" PRIu64,
		least, most);
	return bc_body_fail(body, name, sentence);
}

bool bc_body_seconds_or_text(const struct bc_body *body, const char *name, char *out, size_t room)
{
	const json_t *item = find(body, name);

	if (!json_is_number(item))
		return bc_body_text(body, name, out, room);
	double seconds = json_number_value(item);
	if (!(seconds >= 0 && seconds < 1e10))
		return bc_body_fail(body, name, "so many seconds are no time");
	snprintf(out, room, "%.9fs", seconds);
	return true;
}

bool bc_body_time(const struct bc_body *body, const char *name, uint64_t *ns)
{
	char words[64];

	if (!bc_body_has(body, name))
		return true;
	if (!json_is_number(find(body, name)) && !json_is_string(find(body, name)))
		return bc_body_fail(body, name, "it is a number of seconds or a text");
	if (!bc_body_seconds_or_text(body, name, words, sizeof(words)))
		return false;
	return (bc_time_read(ns, words) && *ns != 0) ||
	       bc_body_fail(body, name,
		       "it is a time above 0: a number of seconds, or a text with ms, s, m, h or "
		       "d");
}

bool bc_body_size(const struct bc_body *body, const char *name, uint64_t *bytes)
{
	const json_t *item = find(body, name);

	if (item == NULL || json_is_number(item))
		return bc_body_integer(body, name, 1, BC_BODY_INTEGER_MAX, bytes);
	return (json_is_string(item) && bc_size_read(bytes, json_string_value(item), 1) &&
		       *bytes != 0) ||
	       bc_body_fail(body, name,
		       "it is a size above 0: a number of bytes, or a text with K, M, G or T");
}

bool bc_body_metadata(const struct bc_body *body, const char *name, char out[BC_METADATA_MAX])
{
	const json_t *item = find(body, name);

	if (item == NULL)
		return true;
	if (!json_is_object(item))
		return bc_body_fail(body, name, "it is an object of texts");
	/* Its sentence names the member. */
	return bc_metadata_from_json(out, item, body->err, body->room);
}

/* Makes *inner the view of an object within the body. */
static bool enter(const struct bc_body *body, json_t *item, const char *where,
	const char *const *names, struct bc_body *inner)
{
	*inner = (struct bc_body){.object = item, .err = body->err, .room = body->room};
	snprintf(inner->where, sizeof(inner->where), "%.20s%.40s.", body->where, where);
	return check_members(inner, names);
}

bool bc_body_object(const struct bc_body *body, const char *name, const char *const *names,
	struct bc_body *inner)
{
	json_t *item = find(body, name);

	if (item != NULL && !json_is_object(item))
		return bc_body_fail(body, name, "it is an object");
	return enter(body, item, name, names, inner);
}

bool bc_body_list_size(const struct bc_body *body, const char *name, unsigned most, unsigned *count)
{
	const json_t *item = find(body, name);
	char sentence[64];

	*count = 0;
	if (item == NULL)
		return true;
	if (!json_is_array(item))
		return bc_body_fail(body, name, "it is a list");
	*count = (unsigned)json_array_size(item);
	if (*count <= most)
		return true;
	snprintf(sentence, sizeof(sentence), "there are %u at most", most);
	return bc_body_fail(body, name, sentence);
}

bool bc_body_element(const struct bc_body *body, const char *name, unsigned at,
	const char *const *names, struct bc_body *inner)
{
	json_t *item = json_array_get(find(body, name), at);
	char where[32];

	snprintf(where, sizeof(where), "%.16s[%u]", name, at);
	if (!json_is_object(item))
		return bc_body_fail(body, where, "it is an object");
	return enter(body, item, where, names, inner);
}
