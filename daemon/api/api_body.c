#include "daemon/api/api_body.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/rules.h"
#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/base/utf8.h"
#include "formats/segment/segment_header.h"

/* Error messages quote at most this many bytes of a client's text. */
#define QUOTED_MAX 48

bool bc_body_fail(const struct bc_body *body, const char *name, const char *message)
{
	snprintf(body->err, body->errlen, "%s%.*s: %s", body->prefix,
		(int)bc_utf8_fit(name, QUOTED_MAX), name, message);
	return false;
}

/* Lists the allowed members in the error message. */
static bool fail_unknown_member(
	const struct bc_body *body, const char *member, const char *const *names)
{
	char message[256] = "unknown member; expected ";
	size_t n = strlen(message);

	if (names[0] == NULL)
		return bc_body_fail(body, member, "unknown member; none are allowed");
	for (unsigned i = 0; names[i] != NULL && n < sizeof(message); i++) {
		const char *between = i == 0 ? "" : names[i + 1] == NULL ? " or " : ", ";
		n += (size_t)snprintf(message + n, sizeof(message) - n, "%s%s", between, names[i]);
	}
	return bc_body_fail(body, member, message);
}

/* jansson's message quotes some of the input, and may cut a UTF-8 character. */
static void fail_json(const struct bc_body *body, const json_error_t *error)
{
	char *text = bc_utf8_repair(error->text);

	snprintf(body->err, body->errlen, "invalid JSON at byte %d: %s", error->position,
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
			return fail_unknown_member(body, member, names);
	}
	return true;
}

bool bc_body_parse(struct bc_body *body, const char *text, size_t bytes, const char *const *names,
	char *err, size_t errlen)
{
	json_error_t error;
	json_t *object = bytes != 0 ? bc_json_parse(text, bytes, JSON_REJECT_DUPLICATES, &error)
				    : json_object();

	*body = (struct bc_body){.object = object, .err = err, .errlen = errlen};
	if (object == NULL && bytes != 0)
		fail_json(body, &error);
	else if (object == NULL)
		bc_message(err, errlen, "out of memory");
	else if (!json_is_object(object))
		bc_message(err, errlen, "the body must be a JSON object");
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

static json_t *member_of(const struct bc_body *body, const char *name)
{
	return json_object_get(body->object, name);
}

bool bc_body_has(const struct bc_body *body, const char *name)
{
	return member_of(body, name) != NULL;
}

bool bc_body_require(const struct bc_body *body, const char *name)
{
	return member_of(body, name) != NULL || bc_body_fail(body, name, "required");
}

bool bc_body_text(const struct bc_body *body, const char *name, char *out, size_t size)
{
	const json_t *item = member_of(body, name);
	char message[64];

	if (item == NULL)
		return true;
	if (!json_is_string(item))
		return bc_body_fail(body, name, "must be a string");
	size_t n = json_string_length(item);
	if (n < 1 || n >= size) {
		snprintf(message, sizeof(message), "must have 1 to %zu bytes", size - 1);
		return bc_body_fail(body, name, message);
	}
	memcpy(out, json_string_value(item), n + 1);
	return true;
}

bool bc_body_flag(const struct bc_body *body, const char *name, bool *flag)
{
	const json_t *item = member_of(body, name);

	if (item == NULL)
		return true;
	if (!json_is_boolean(item))
		return bc_body_fail(body, name, "must be true or false");
	*flag = json_is_true(item);
	return true;
}

bool bc_body_integer(
	const struct bc_body *body, const char *name, uint64_t min, uint64_t max, uint64_t *number)
{
	const json_t *item = member_of(body, name);
	char message[96];

	if (item == NULL)
		return true;
	double value = json_is_number(item) ? json_number_value(item) : NAN;
	if (value >= (double)min && value <= (double)max && !(value > floor(value))) {
		*number = (uint64_t)value;
		return true;
	}
	snprintf(message, sizeof(message), "must be an integer from %" PRIu64 " to %" PRIu64, min,
		max);
	return bc_body_fail(body, name, message);
}

bool bc_body_seconds_or_text(const struct bc_body *body, const char *name, char *out, size_t size)
{
	const json_t *item = member_of(body, name);

	if (item == NULL || json_is_string(item))
		return bc_body_text(body, name, out, size);
	if (!json_is_number(item))
		return bc_body_fail(body, name, "must be a number of seconds or a string");
	double seconds = json_number_value(item);
	if (!(seconds >= 0 && seconds < 1e10))
		return bc_body_fail(body, name, "not a valid number of seconds");
	snprintf(out, size, "%.9fs", seconds);
	return true;
}

bool bc_body_time(const struct bc_body *body, const char *name, uint64_t *ns)
{
	char text[64];

	if (!bc_body_has(body, name))
		return true;
	if (!bc_body_seconds_or_text(body, name, text, sizeof(text)))
		return false;
	return (bc_time_read(ns, text) && *ns != 0) ||
	       bc_body_fail(body, name,
		       "must be a duration above 0: a number of seconds, or a string with ms, s, "
		       "m, h or d");
}

bool bc_body_file_size(const struct bc_body *body, const char *name, uint64_t *bytes)
{
	const json_t *item = member_of(body, name);
	uint64_t kilobytes = 0;

	if (item == NULL)
		return true;
	if (json_is_number(item)) {
		bool is_ok = bc_body_integer(
			body, name, 1, BC_BODY_INTEGER_MAX / BC_FILE_SIZE_UNIT, &kilobytes);
		*bytes = kilobytes * BC_FILE_SIZE_UNIT;
		return is_ok;
	}
	return (json_is_string(item) &&
		       bc_size_read(bytes, json_string_value(item), BC_FILE_SIZE_UNIT) &&
		       *bytes != 0) ||
	       bc_body_fail(body, name,
		       "must be a size above 0: a number of kB, or a string with K, M, G or T");
}

bool bc_body_metadata(const struct bc_body *body, const char *name, char out[BC_METADATA_MAX])
{
	const json_t *item = member_of(body, name);

	if (item == NULL)
		return true;
	if (!json_is_object(item))
		return bc_body_fail(body, name, "must be an object of strings");
	/* The message already names the member. */
	return bc_metadata_from_json(out, item, body->err, body->errlen);
}

/* Sets *inner to an inner object of the body. */
static bool open_inner(const struct bc_body *body, json_t *item, const char *prefix,
	const char *const *names, struct bc_body *inner)
{
	*inner = (struct bc_body){.object = item, .err = body->err, .errlen = body->errlen};
	snprintf(inner->prefix, sizeof(inner->prefix), "%.20s%.40s.", body->prefix, prefix);
	return check_members(inner, names);
}

bool bc_body_object(const struct bc_body *body, const char *name, const char *const *names,
	struct bc_body *inner)
{
	json_t *item = member_of(body, name);

	if (item != NULL && !json_is_object(item))
		return bc_body_fail(body, name, "must be an object");
	return open_inner(body, item, name, names, inner);
}

bool bc_body_list_size(const struct bc_body *body, const char *name, unsigned max, unsigned *count)
{
	const json_t *item = member_of(body, name);
	char message[64];

	*count = 0;
	if (item == NULL)
		return true;
	if (!json_is_array(item))
		return bc_body_fail(body, name, "must be an array");
	*count = (unsigned)json_array_size(item);
	if (*count <= max)
		return true;
	snprintf(message, sizeof(message), "must have at most %u elements", max);
	return bc_body_fail(body, name, message);
}

bool bc_body_element(const struct bc_body *body, const char *name, unsigned index,
	const char *const *names, struct bc_body *inner)
{
	json_t *item = json_array_get(member_of(body, name), index);
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "%.16s[%u]", name, index);
	if (!json_is_object(item))
		return bc_body_fail(body, prefix, "must be an object");
	return open_inner(body, item, prefix, names, inner);
}
