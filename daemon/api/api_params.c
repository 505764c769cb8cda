#include "daemon/api/api_params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/api_body.h"
#include "formats/base/json.h"

static const char *const start_names[] = {"label", "metadata", "limits", "pre", "triggers", NULL};
static const char *const snapshot_names[] = {
	"label", "metadata", "pre", "post", "until_stopped", NULL};
static const char *const trigger_names[] = {
	"name", "when", "action", "pre", "post", "text", "holdoff", NULL};
static const char *const limit_names[] = {"duration", "records", "filesize", NULL};
static const char *const mark_names[] = {"text", NULL};
static const char *const note_names[] = {"metadata", NULL};
static const char *const rotate_names[] = {NULL};

static bool parse_label(struct bc_api_params *params, const struct bc_body *body)
{
	if (!bc_body_has(body, "label"))
		return true;
	if (!bc_body_text(body, "label", params->label, sizeof(params->label)))
		return false;
	return bc_word_is_valid(params->label) ||
	       bc_body_fail(body, "label",
		       "must have up to 64 letters, digits, dots, underscores and dashes");
}

static bool parse_limits(struct bc_api_params *params, const struct bc_body *body)
{
	struct bc_stop_rules *limits = &params->start.limits;
	struct bc_body inner;

	return bc_body_object(body, "limits", limit_names, &inner) &&
	       bc_body_time(&inner, "duration", &limits->duration_ns) &&
	       bc_body_integer(&inner, "records", 1, BC_BODY_INTEGER_MAX, &limits->records) &&
	       bc_body_file_size(&inner, "filesize", &limits->file_bytes);
}

static bool parse_time_or_size(
	const struct bc_body *body, const char *name, struct bc_time_or_size *length)
{
	char text[64];
	char message[192];

	if (!bc_body_has(body, name))
		return true;
	if (!bc_body_seconds_or_text(body, name, text, sizeof(text)))
		return false;
	if (!bc_time_or_size_read(length, text, message, sizeof(message)))
		return bc_body_fail(body, name, message);
	return length->unit != BC_TIME_OR_SIZE_NONE ||
	       bc_body_fail(body, name, "must be more than 0");
}

static bool parse_trigger(
	struct bc_trigger *trigger, const struct bc_name_map *names, const struct bc_body *body)
{
	char text[320];
	char message[320];

	if (!bc_body_require(body, "name") || !bc_body_text(body, "name", text, sizeof(text)))
		return false;
	if (!bc_trigger_init(trigger, text, message, sizeof(message)))
		return bc_body_fail(body, "name", message);
	for (unsigned i = 1; trigger_names[i] != NULL; i++) {
		const char *name = trigger_names[i];
		bool is_time = name[0] == 'p' || strcmp(name, "holdoff") == 0;
		if (!bc_body_has(body, name))
			continue;
		if (!(is_time ? bc_body_seconds_or_text(body, name, text, sizeof(text))
			      : bc_body_text(body, name, text, sizeof(text))))
			return false;
		if (!bc_trigger_set(trigger, name, text, message, sizeof(message)))
			return bc_body_fail(body, name, message);
	}
	if (!bc_trigger_find_region(trigger, names, message, sizeof(message)))
		return bc_body_fail(body, "when", message);
	trigger->is_requested = true;
	if (!bc_body_require(body, "when") || !bc_body_require(body, "action"))
		return false;
	return bc_trigger_check(trigger, body->err, body->errlen);
}

/* The triggers of a recording cannot start recordings. */
static bool parse_triggers(struct bc_api_params *params, const struct bc_body *body)
{
	struct bc_body inner;
	unsigned count;

	if (!bc_body_list_size(body, "triggers", BC_TRIGGERS_REQUESTED, &count))
		return false;
	for (unsigned i = 0; i < count; i++) {
		struct bc_trigger *trigger = &params->triggers[i];
		if (!bc_body_element(body, "triggers", i, trigger_names, &inner) ||
			!parse_trigger(trigger, params->names, &inner))
			return false;
		if (trigger->action != BC_ACTION_MARK && trigger->action != BC_ACTION_STOP)
			return bc_body_fail(&inner, "action",
				"must be mark or stop for a trigger of a recording");
		for (unsigned k = 0; k < i; k++)
			if (strcmp(params->triggers[k].name, trigger->name) == 0)
				return bc_body_fail(
					&inner, "name", "already used by another trigger");
	}
	params->start.triggers_count = count;
	return true;
}

static bool parse_metadata(struct bc_api_params *params, const struct bc_body *body)
{
	return bc_body_metadata(body, "metadata", params->metadata);
}

static bool parse_start(struct bc_api_params *params, const struct bc_body *body)
{
	return parse_label(params, body) && parse_metadata(params, body) &&
	       parse_limits(params, body) && parse_time_or_size(body, "pre", &params->start.pre) &&
	       parse_triggers(params, body);
}

/* How long to record after a snapshot: for a time or size, until stopped, or not at all. */
static bool parse_post(struct bc_api_params *params, const struct bc_body *body)
{
	struct bc_start *start = &params->start;

	if (!parse_time_or_size(body, "post", &start->post) ||
		!bc_body_flag(body, "until_stopped", &start->until_stopped))
		return false;
	if (start->post.unit == BC_TIME_OR_SIZE_ALL)
		return bc_body_fail(body, "post", "must be a time or a size");
	return start->post.unit == BC_TIME_OR_SIZE_NONE || !start->until_stopped ||
	       bc_body_fail(body, "post", "cannot be combined with until_stopped");
}

static bool parse_snapshot(struct bc_api_params *params, const struct bc_body *body)
{
	return parse_label(params, body) && parse_metadata(params, body) &&
	       parse_time_or_size(body, "pre", &params->start.pre) && parse_post(params, body);
}

static bool parse_new_trigger(struct bc_api_params *params, const struct bc_body *body)
{
	return parse_trigger(&params->triggers[0], params->names, body);
}

static bool parse_mark(struct bc_api_params *params, const struct bc_body *body)
{
	return bc_body_require(body, "text") &&
	       bc_body_text(body, "text", params->mark, sizeof(params->mark));
}

static bool parse_note(struct bc_api_params *params, const struct bc_body *body)
{
	return bc_body_require(body, "metadata") && parse_metadata(params, body);
}

static bool parse_rotate(struct bc_api_params *params, const struct bc_body *body)
{
	(void)params;
	(void)body;
	return true;
}

bool bc_api_params_parse(struct bc_api_params *params, enum bc_api_params_kind kind,
	const char *text, size_t bytes, char *err, size_t errlen)
{
	static const struct {
		const char *const *names;
		bool (*parse)(struct bc_api_params *params, const struct bc_body *body);
	} kinds[BC_PARAMS_KINDS] = {
		[BC_PARAMS_START] = {start_names, parse_start},
		[BC_PARAMS_SNAPSHOT] = {snapshot_names, parse_snapshot},
		[BC_PARAMS_TRIGGER] = {trigger_names, parse_new_trigger},
		[BC_PARAMS_MARK] = {mark_names, parse_mark},
		[BC_PARAMS_NOTE] = {note_names, parse_note},
		[BC_PARAMS_ROTATE] = {rotate_names, parse_rotate},
	};
	struct bc_body body;

	params->start.label = params->label;
	params->start.metadata = params->metadata;
	params->start.triggers = params->triggers;
	if (!bc_body_parse(&body, text, bytes, kinds[kind].names, err, errlen))
		return false;
	bool is_ok = kinds[kind].parse(params, &body);
	bc_body_free(&body);
	return is_ok;
}
