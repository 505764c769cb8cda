#include "daemon/api/api_params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/api/api_body.h"

static const char *const start_names[] = {"label", "metadata", "limits", "pre", "triggers", NULL};
static const char *const snapshot_names[] = {"label", "metadata", "pre", "post", "go_on", NULL};
static const char *const replay_names[] = {
	"path", "format", "clock_hz", "speed", "label", "metadata", "limits", "triggers", NULL};
static const char *const trigger_names[] = {
	"name", "when", "action", "pre", "post", "text", "holdoff", NULL};
static const char *const limit_names[] = {"duration", "records", "filesize", NULL};
static const char *const mark_names[] = {"text", NULL};
static const char *const note_names[] = {"metadata", NULL};
static const char *const no_names[] = {NULL};

static bool read_label(struct bc_api_params *asked, const struct bc_body *body)
{
	if (!bc_body_has(body, "label"))
		return true;
	if (!bc_body_text(body, "label", asked->label, sizeof(asked->label)))
		return false;
	return bc_label_is_valid(asked->label) ||
	       bc_body_error(body, "label",
		       "it has up to 64 letters, digits, points, underscores and dashes");
}

static bool read_limits(struct bc_api_params *asked, const struct bc_body *body)
{
	struct bc_stop_rules *limits = &asked->start.limits;
	struct bc_body inner;

	return bc_body_object(body, "limits", limit_names, &inner) &&
	       bc_body_time(&inner, "duration", &limits->duration_ns) &&
	       bc_body_number(&inner, "records", 1, BC_BODY_NUMBER_MAX, &limits->records) &&
	       bc_body_size(&inner, "filesize", &limits->file_bytes);
}

static bool read_length(
	const struct bc_body *body, const char *name, struct bc_time_or_size *length)
{
	char words[64];
	char what[192];

	if (!bc_body_has(body, name))
		return true;
	if (!bc_body_words(body, name, words, sizeof(words)))
		return false;
	if (!bc_time_or_size_read(length, words, what, sizeof(what)))
		return bc_body_error(body, name, what);
	return length->unit != BC_TIME_OR_SIZE_NONE ||
	       bc_body_error(body, name, "it is more than 0");
}

static bool read_trigger(struct bc_trigger *trigger, const struct bc_body *body)
{
	char words[320];
	char what[320];

	if (!bc_body_need(body, "name") || !bc_body_text(body, "name", words, sizeof(words)))
		return false;
	if (!bc_trigger_init(trigger, words, what, sizeof(what)))
		return bc_body_error(body, "name", what);
	for (unsigned i = 1; trigger_names[i] != NULL; i++) {
		const char *name = trigger_names[i];
		bool is_time = name[0] == 'p' || strcmp(name, "holdoff") == 0;
		if (!bc_body_has(body, name))
			continue;
		if (!(is_time ? bc_body_words(body, name, words, sizeof(words))
			      : bc_body_text(body, name, words, sizeof(words))))
			return false;
		if (!bc_trigger_set(trigger, name, words, what, sizeof(what)))
			return bc_body_error(body, name, what);
	}
	trigger->is_requested = true;
	if (!bc_body_need(body, "when") || !bc_body_need(body, "action"))
		return false;
	return bc_trigger_check(trigger, body->err, body->room);
}

/* Those of one recording, which they can't begin. */
static bool read_triggers(struct bc_api_params *asked, const struct bc_body *body)
{
	struct bc_body inner;
	unsigned count;

	if (!bc_body_count(body, "triggers", BC_TRIGGERS_REQUESTED, &count))
		return false;
	for (unsigned i = 0; i < count; i++) {
		struct bc_trigger *trigger = &asked->triggers[i];
		if (!bc_body_element(body, "triggers", i, trigger_names, &inner) ||
			!read_trigger(trigger, &inner))
			return false;
		if (trigger->action != BC_ACTION_MARK && trigger->action != BC_ACTION_STOP)
			return bc_body_error(
				&inner, "action", "a recording's own triggers mark or stop");
		for (unsigned k = 0; k < i; k++)
			if (strcmp(asked->triggers[k].name, trigger->name) == 0)
				return bc_body_error(&inner, "name", "another has it, too");
	}
	asked->start.triggers_count = count;
	return true;
}

static bool read_metadata(struct bc_api_params *asked, const struct bc_body *body)
{
	return bc_body_metadata(body, "metadata", asked->metadata);
}

static void point(struct bc_api_params *asked)
{
	asked->start.label = asked->label;
	asked->start.metadata = asked->metadata;
	asked->start.triggers = asked->triggers;
}

bool bc_api_params_start(
	struct bc_api_params *asked, const char *text, size_t bytes, char *err, size_t errlen)
{
	struct bc_body body;

	point(asked);
	if (!bc_body_read(&body, text, bytes, start_names, err, errlen))
		return false;
	bool is_good = read_label(asked, &body) && read_metadata(asked, &body) &&
		       read_limits(asked, &body) && read_length(&body, "pre", &asked->start.pre) &&
		       read_triggers(asked, &body);
	bc_body_free(&body);
	return is_good;
}

/* How long a snapshot goes on: for so much, until it is stopped, or not at all. */
static bool read_end(struct bc_api_params *asked, const struct bc_body *body)
{
	struct bc_start *start = &asked->start;

	if (!read_length(body, "post", &start->post) ||
		!bc_body_flag(body, "go_on", &start->until_stopped))
		return false;
	if (start->post.unit == BC_TIME_OR_SIZE_ALL)
		return bc_body_error(body, "post", "it is a time or a size");
	return start->post.unit == BC_TIME_OR_SIZE_NONE || !start->until_stopped ||
	       bc_body_error(body, "post", "it doesn't go with go_on");
}

bool bc_api_params_snapshot(
	struct bc_api_params *asked, const char *text, size_t bytes, char *err, size_t errlen)
{
	struct bc_body body;

	point(asked);
	if (!bc_body_read(&body, text, bytes, snapshot_names, err, errlen))
		return false;
	bool is_good = read_label(asked, &body) && read_metadata(asked, &body) &&
		       read_length(&body, "pre", &asked->start.pre) && read_end(asked, &body);
	bc_body_free(&body);
	return is_good;
}

static bool read_path(struct bc_api_params *asked, const struct bc_body *body)
{
	if (!bc_body_need(body, "path") ||
		!bc_body_text(body, "path", asked->path, sizeof(asked->path)))
		return false;
	return asked->path[0] == '/' ||
	       bc_body_error(body, "path", "it is absolute: it begins with /");
}

static bool read_format(struct bc_api_params *asked, const struct bc_body *body)
{
	char name[32];

	if (!bc_body_has(body, "format"))
		return true;
	if (!bc_body_text(body, "format", name, sizeof(name)))
		return false;
	asked->replay.format = bc_format_by_name(name);
	return bc_format_is_bus(asked->replay.format) ||
	       bc_body_error(body, "format",
		       "it is segment, bcp1, raw6, byu, byu16, byu24 or byu-be; what else there is "
		       "buscap convert makes one of them");
}

static bool read_speed(struct bc_api_params *asked, const struct bc_body *body)
{
	const json_t *item = json_object_get(body->object, "speed");
	const char *word = json_string_value(item);
	double *speed = &asked->replay.speed;

	if (item == NULL || (word != NULL && strcmp(word, "max") == 0)) {
		*speed = 0;
		return true;
	}
	if (word != NULL && strcmp(word, "realtime") == 0) {
		*speed = 1;
		return true;
	}
	*speed = json_number_value(item);
	return (*speed >= 1e-6 && *speed <= 1e6) ||
	       bc_body_error(body, "speed",
		       "it is \"max\", \"realtime\", or how many times that, up to 1000000");
}

bool bc_api_params_replay(
	struct bc_api_params *asked, const char *text, size_t bytes, char *err, size_t errlen)
{
	struct bc_body body;

	point(asked);
	asked->replay.path = asked->path;
	if (!bc_body_read(&body, text, bytes, replay_names, err, errlen))
		return false;
	bool is_good = read_path(asked, &body) && read_format(asked, &body) &&
		       bc_body_number(
			       &body, "clock_hz", 1, BC_BODY_NUMBER_MAX, &asked->replay.clock_hz) &&
		       read_speed(asked, &body) && read_label(asked, &body) &&
		       read_metadata(asked, &body) && read_limits(asked, &body) &&
		       read_triggers(asked, &body);
	asked->replay.start = asked->start;
	bc_body_free(&body);
	return is_good;
}

bool bc_api_params_trigger(
	struct bc_api_params *asked, const char *text, size_t bytes, char *err, size_t errlen)
{
	struct bc_body body;

	if (!bc_body_read(&body, text, bytes, trigger_names, err, errlen))
		return false;
	bool is_good = read_trigger(&asked->triggers[0], &body);
	bc_body_free(&body);
	return is_good;
}

bool bc_api_params_mark(
	struct bc_api_params *asked, const char *text, size_t bytes, char *err, size_t errlen)
{
	struct bc_body body;

	if (!bc_body_read(&body, text, bytes, mark_names, err, errlen))
		return false;
	bool is_good = bc_body_need(&body, "text") &&
		       bc_body_text(&body, "text", asked->mark, sizeof(asked->mark));
	bc_body_free(&body);
	return is_good;
}

bool bc_api_params_note(
	struct bc_api_params *asked, const char *text, size_t bytes, char *err, size_t errlen)
{
	struct bc_body body;

	if (!bc_body_read(&body, text, bytes, note_names, err, errlen))
		return false;
	bool is_good = bc_body_need(&body, "metadata") && read_metadata(asked, &body);
	bc_body_free(&body);
	return is_good;
}

bool bc_api_params_nothing(const char *text, size_t bytes, char *err, size_t errlen)
{
	struct bc_body body;

	if (!bc_body_read(&body, text, bytes, no_names, err, errlen))
		return false;
	bc_body_free(&body);
	return true;
}
