/* Strict parsing of the bodies of requests. A table lists the members of each kind of object, with
 * the function that parses each. Invalid JSON (RFC 8259) and members that are unknown, given twice,
 * of the wrong type or out of range are errors, whose message names the member.
 *
 * Invariant: a member that is absent leaves its parameter 0; only the JSON is allocated. */
#include "daemon/api/api_params.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/rules.h"
#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/base/utf8.h"

/* Error messages quote at most this many bytes of a client's text. */
#define QUOTED_MAX 48

/* The largest integer: up to here, JSON numbers are exact in every implementation. */
#define INTEGER_MAX UINT64_C(9007199254740991)

struct parser {
	struct bc_api_params *params;
	char *err; /* the caller's */
	size_t errlen;
	char prefix[64]; /* of member names: "limits.", "triggers[2]."; empty for the body itself */
};

struct member {
	const char *name;
	/* Parses the value into `out`. NULL: has been parsed. */
	bool (*parse)(const struct parser *p, const char *name, json_t *value, void *out);
	size_t offset; /* of `out` in struct bc_api_params */
	bool is_required;
};

/* Writes "NAME: MESSAGE" as the error. Returns false. */
__attribute__((format(printf, 3, 4))) static bool fail(
	const struct parser *p, const char *name, const char *format, ...)
{
	char message[320];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	snprintf(p->err, p->errlen, "%s%.*s: %s", p->prefix, (int)bc_utf8_fit(name, QUOTED_MAX),
		name, message);
	return false;
}

/* Objects */

/* Lists the allowed members in the error message. */
static bool fail_unknown(const struct parser *p, const char *name, const struct member *members)
{
	char message[256] = "unknown member; use ";
	size_t n = strlen(message);

	if (members[0].name == NULL)
		return fail(p, name, "unknown member; none are allowed");
	for (unsigned i = 0; members[i].name != NULL && n < sizeof(message); i++) {
		const char *between = i == 0 ? "" : members[i + 1].name == NULL ? " or " : ", ";
		n += (size_t)snprintf(
			message + n, sizeof(message) - n, "%s%s", between, members[i].name);
	}
	return fail(p, name, "%s", message);
}

static bool parse_object(const struct parser *p, json_t *object, const struct member *members)
{
	const char *name;
	json_t *value;

	json_object_foreach(object, name, value)
	{
		const struct member *m = members;
		while (m->name != NULL && strcmp(m->name, name) != 0)
			m++;
		if (m->name == NULL)
			return fail_unknown(p, name, members);
		if (m->parse != NULL && !m->parse(p, name, value, (char *)p->params + m->offset))
			return false;
	}
	for (const struct member *m = members; m->name != NULL; m++)
		if (m->is_required && json_object_get(object, m->name) == NULL)
			return fail(p, m->name, "required");
	return true;
}

/* Values */

static bool parse_text(
	const struct parser *p, const char *name, const json_t *value, char *out, size_t size)
{
	if (!json_is_string(value))
		return fail(p, name, "must be a string");
	size_t n = json_string_length(value);
	if (n < 1 || n >= size)
		return fail(p, name, "must have 1 to %zu bytes", size - 1);
	memcpy(out, json_string_value(value), n + 1);
	return true;
}

static bool parse_mark(const struct parser *p, const char *name, json_t *value, void *out)
{
	return parse_text(p, name, value, out, BC_MARK_TEXT_MAX + 1);
}

static bool parse_label(const struct parser *p, const char *name, json_t *value, void *out)
{
	if (!parse_text(p, name, value, out, BC_LABEL_MAX + 1))
		return false;
	return bc_word_is_valid(out) ||
	       fail(p, name, "must have up to 64 letters, digits, '.', '_' and '-'");
}

static bool parse_metadata(const struct parser *p, const char *name, json_t *value, void *out)
{
	if (!json_is_object(value))
		return fail(p, name, "must be an object of strings");
	/* The message already names the member. */
	return bc_metadata_from_json(out, value, p->err, p->errlen);
}

static bool parse_flag(const struct parser *p, const char *name, json_t *value, void *out)
{
	if (!json_is_boolean(value))
		return fail(p, name, "must be true or false");
	*(bool *)out = json_is_true(value);
	return true;
}

static bool parse_count(const struct parser *p, const char *name, json_t *value, void *out)
{
	double number = json_is_number(value) ? json_number_value(value) : NAN;

	if (!(number >= 1 && number <= (double)INTEGER_MAX) || number > floor(number))
		return fail(p, name, "must be an integer from 1 to %" PRIu64, INTEGER_MAX);
	*(uint64_t *)out = (uint64_t)number;
	return true;
}

/* A string, or a number of seconds, which becomes "1.500000000s". */
static bool parse_seconds_or_text(
	const struct parser *p, const char *name, const json_t *value, char *out, size_t size)
{
	if (json_is_string(value))
		return parse_text(p, name, value, out, size);
	if (!json_is_number(value))
		return fail(p, name, "must be a number of seconds or a string");
	double seconds = json_number_value(value);
	if (!(seconds >= 0 && seconds < 1e10))
		return fail(p, name, "must be a number of seconds from 0 to 9999999999");
	snprintf(out, size, "%.9fs", seconds);
	return true;
}

static bool parse_time(const struct parser *p, const char *name, json_t *value, void *out)
{
	uint64_t *ns = out;
	char text[64];

	if (!parse_seconds_or_text(p, name, value, text, sizeof(text)))
		return false;
	char message[BC_QUANTITY_ERROR_MAX];
	if (!bc_quantity_read(ns, BC_QUANTITY_TIME, text, message, sizeof(message)))
		return fail(p, name, "%s", message);
	return *ns != 0 || fail(p, name, "must be a time above 0");
}

/* A number is in bytes, as in configuration and options. */
static bool parse_size(const struct parser *p, const char *name, json_t *value, void *out)
{
	uint64_t *bytes = out;
	char text[64];
	char message[BC_QUANTITY_ERROR_MAX];

	if (!json_is_string(value))
		return parse_count(p, name, value, out);
	if (!parse_text(p, name, value, text, sizeof(text)))
		return false;
	if (!bc_quantity_read(bytes, BC_QUANTITY_SIZE, text, message, sizeof(message)))
		return fail(p, name, "%s", message);
	return *bytes != 0 || fail(p, name, "must be a size above 0");
}

static bool parse_length(const struct parser *p, const char *name, json_t *value, void *out)
{
	struct bc_time_or_size *length = out;
	char text[64];
	char message[192];

	if (!parse_seconds_or_text(p, name, value, text, sizeof(text)))
		return false;
	if (!bc_time_or_size_read(length, text, message, sizeof(message)))
		return fail(p, name, "%s", message);
	return length->unit != BC_TIME_OR_SIZE_NONE ||
	       fail(p, name, "must be a time or size above 0");
}

/* How long to record after a snapshot. */
static bool parse_post(const struct parser *p, const char *name, json_t *value, void *out)
{
	const struct bc_time_or_size *post = out;

	return parse_length(p, name, value, out) &&
	       (post->unit != BC_TIME_OR_SIZE_ALL || fail(p, name, "must be a time or a size"));
}

#define AT(member) offsetof(struct bc_api_params, member)

static const struct member limit_members[] = {
	{"duration", parse_time, AT(start.limits.duration_ns), false},
	{"records", parse_count, AT(start.limits.records), false},
	{"filesize", parse_size, AT(start.limits.file_bytes), false},
	{NULL, NULL, 0, false},
};

static bool parse_limits(const struct parser *p, const char *name, json_t *value, void *out)
{
	struct parser inner = *p;

	(void)out;
	snprintf(inner.prefix, sizeof(inner.prefix), "%s.", name);
	return json_is_object(value) ? parse_object(&inner, value, limit_members)
				     : fail(p, name, "must be an object");
}

/* Triggers */

/* A trigger sets its keys from text, as in the configuration. */
static bool parse_key(const struct parser *p, const char *name, json_t *value, void *out)
{
	struct bc_trigger *trigger = &p->params->triggers[p->params->start.triggers_count];
	bool is_time = name[0] == 'p' || strcmp(name, "holdoff") == 0;
	char text[320];
	char message[320];

	(void)out;
	if (!(is_time ? parse_seconds_or_text(p, name, value, text, sizeof(text))
		      : parse_text(p, name, value, text, sizeof(text))))
		return false;
	return bc_trigger_set(trigger, name, text, message, sizeof(message)) ||
	       fail(p, name, "%s", message);
}

static const struct member trigger_members[] = {
	{"name", NULL, 0, true},
	{"when", parse_key, 0, true},
	{"action", parse_key, 0, true},
	{"pre", parse_key, 0, false},
	{"post", parse_key, 0, false},
	{"text", parse_key, 0, false},
	{"holdoff", parse_key, 0, false},
	{NULL, NULL, 0, false},
};

/* Parses the next trigger of the parameters. */
static bool parse_trigger(const struct parser *p, json_t *object)
{
	struct bc_trigger *trigger = &p->params->triggers[p->params->start.triggers_count];
	json_t *name = json_object_get(object, "name");
	char text[320];
	char message[320] = "";

	if (name != NULL && !parse_text(p, "name", name, text, sizeof(text)))
		return false;
	if (name != NULL && !bc_trigger_init(trigger, text, message, sizeof(message)))
		return fail(p, "name", "%s", message);
	if (!parse_object(p, object, trigger_members))
		return false;
	if (!bc_trigger_find_region(trigger, p->params->names, message, sizeof(message)))
		return fail(p, "when", "%s", message);
	trigger->is_requested = true;
	return bc_trigger_check(trigger, p->err, p->errlen);
}

/* A recording's triggers cannot start recordings. */
static bool parse_own_trigger(const struct parser *p, json_t *object)
{
	const struct bc_api_params *params = p->params;
	const struct bc_trigger *trigger = &params->triggers[params->start.triggers_count];

	if (!parse_trigger(p, object))
		return false;
	if (trigger->action != BC_ACTION_MARK && trigger->action != BC_ACTION_STOP)
		return fail(p, "action", "must be mark or stop for a trigger of a recording");
	for (const struct bc_trigger *other = params->triggers; other != trigger; other++)
		if (strcmp(other->name, trigger->name) == 0)
			return fail(p, "name", "already used by another trigger");
	return true;
}

static bool parse_triggers(const struct parser *p, const char *name, json_t *value, void *out)
{
	unsigned *count = out;
	struct parser inner = *p;
	char element[64];
	json_t *object;
	size_t i;

	if (!json_is_array(value))
		return fail(p, name, "must be an array");
	if (json_array_size(value) > BC_TRIGGERS_REQUESTED)
		return fail(p, name, "must have at most %u elements", BC_TRIGGERS_REQUESTED);
	json_array_foreach(value, i, object)
	{
		snprintf(element, sizeof(element), "%s[%zu]", name, i);
		snprintf(inner.prefix, sizeof(inner.prefix), "%s[%zu].", name, i);
		if (!json_is_object(object))
			return fail(p, element, "must be an object");
		if (!parse_own_trigger(&inner, object))
			return false;
		++*count;
	}
	return true;
}

/* Bodies */

static const struct member start_members[] = {
	{"label", parse_label, AT(label), false},
	{"metadata", parse_metadata, AT(metadata), false},
	{"limits", parse_limits, 0, false},
	{"pre", parse_length, AT(start.pre), false},
	{"triggers", parse_triggers, AT(start.triggers_count), false},
	{NULL, NULL, 0, false},
};

static const struct member snapshot_members[] = {
	{"label", parse_label, AT(label), false},
	{"metadata", parse_metadata, AT(metadata), false},
	{"pre", parse_length, AT(start.pre), false},
	{"post", parse_post, AT(start.post), false},
	{"until_stopped", parse_flag, AT(start.until_stopped), false},
	{NULL, NULL, 0, false},
};

static const struct member mark_members[] = {
	{"text", parse_mark, AT(mark), true},
	{NULL, NULL, 0, false},
};

static const struct member note_members[] = {
	{"metadata", parse_metadata, AT(metadata), true},
	{NULL, NULL, 0, false},
};

static const struct member rotate_members[] = {
	{NULL, NULL, 0, false},
};

static bool parse_body(const struct parser *p, enum bc_api_params_kind kind, json_t *body)
{
	static const struct member *const members[BC_PARAMS_KINDS] = {
		[BC_PARAMS_START] = start_members,
		[BC_PARAMS_SNAPSHOT] = snapshot_members,
		[BC_PARAMS_MARK] = mark_members,
		[BC_PARAMS_NOTE] = note_members,
		[BC_PARAMS_ROTATE] = rotate_members,
	};
	const struct bc_start *start = &p->params->start;

	if (kind == BC_PARAMS_TRIGGER)
		return parse_trigger(p, body);
	if (!parse_object(p, body, members[kind]))
		return false;
	return start->post.unit == BC_TIME_OR_SIZE_NONE || !start->until_stopped ||
	       fail(p, "post", "can't be combined with until_stopped");
}

/* jansson's message quotes some of the input, and may cut a UTF-8 character. */
static void fail_json(const struct parser *p, const json_error_t *error)
{
	char *text = bc_utf8_repair(error->text);

	snprintf(p->err, p->errlen, "invalid JSON at byte %d: %s", error->position,
		text != NULL ? text : "out of memory");
	free(text);
}

bool bc_api_params_parse(struct bc_api_params *params, enum bc_api_params_kind kind,
	const char *text, size_t bytes, char *err, size_t errlen)
{
	const struct parser p = {.params = params, .err = err, .errlen = errlen};
	json_error_t error;
	json_t *body = bytes != 0 ? bc_json_parse(text, bytes, JSON_REJECT_DUPLICATES, &error)
				  : json_object();
	bool is_ok = false;

	params->start.label = params->label;
	params->start.metadata = params->metadata;
	params->start.triggers = params->triggers;
	if (body == NULL && bytes != 0)
		fail_json(&p, &error);
	else if (!json_is_object(body))
		bc_message(err, errlen,
			body == NULL ? "out of memory" : "the body must be a JSON object");
	else
		is_ok = parse_body(&p, kind, body);
	json_decref(body);
	return is_ok;
}
