/* A trigger is plain data: it owns no memory and is copied from the configuration or the request
 * into the engine, which counts `fired` and `missed` in its copy. The keys are set one at a time,
 * in any order, because both callers add their own line or field to each error.
 *
 *     bc_trigger_init()          only the name; kind and action are UNSET
 *     bc_trigger_set()           each key
 *     bc_trigger_check()         nothing is missing
 *     bc_trigger_find_region()   a region in `when` has its ranges; until then it matches nothing,
 *                                because the files with names are read after the configuration
 *
 * The last two may be called in either order, before the trigger is armed.
 *
 * Invariant: kind, filter and idle_ns are what `when` says. So bc_trigger_equal() compares only the
 * text, and a region can be looked up by parsing it again. */
#include "daemon/ingest/trigger.h"

#include <stdio.h>
#include <string.h>

#include "formats/base/json.h"
#include "formats/base/text.h"
#include "formats/base/utf8.h"
#include "formats/trace/filter_parse.h"

static const char *const actions[] = {
	[BC_ACTION_START] = "start",
	[BC_ACTION_STOP] = "stop",
	[BC_ACTION_TOGGLE] = "toggle",
	[BC_ACTION_SNAPSHOT] = "snapshot",
	[BC_ACTION_MARK] = "mark",
};

#define ACTIONS (sizeof(actions) / sizeof(actions[0]))

bool bc_trigger_init(struct bc_trigger *trigger, const char *name, char *err, size_t errlen)
{
	memset(trigger, 0, sizeof(*trigger));
	if (!bc_setting_name_is_valid(name))
		return bc_fail(
			err, errlen, "the name must have up to 32 letters, digits, '_' and '-'");
	memcpy(trigger->name, name, strlen(name));
	bc_filter_init(&trigger->filter);
	return true;
}

static bool set_when(struct bc_trigger *t, const char *value, char *err, size_t errlen)
{
	struct bc_filter filter;
	enum bc_trigger_kind kind = BC_TRIGGER_RECORD;
	uint64_t idle_ns = 0;

	bc_filter_init(&filter);
	if (strlen(value) >= sizeof(t->when))
		return bc_fail(err, errlen, "too long; the limit is 255 bytes");
	if (strcmp(value, "board") == 0) {
		kind = BC_TRIGGER_BOARD;
	} else if (strcmp(value, "gap") == 0) {
		kind = BC_TRIGGER_GAP;
	} else if (strncmp(value, "idle", 4) == 0 && (value[4] == ' ' || value[4] == '\0')) {
		const char *time = value + 4 + strspn(value + 4, " ");
		kind = BC_TRIGGER_IDLE;
		if (*time != '\0' &&
			!bc_quantity_read(&idle_ns, BC_QUANTITY_TIME, time, err, errlen))
			return false;
		if (idle_ns == 0)
			return bc_fail(err, errlen, "idle needs a time above 0, such as idle 10ms");
	}
	if (kind == BC_TRIGGER_RECORD && !bc_filter_parse(&filter, NULL, value, err, errlen))
		return false;
	t->kind = kind;
	t->filter = filter;
	t->idle_ns = idle_ns;
	if (kind == BC_TRIGGER_IDLE) {
		char time[BC_QUANTITY_TEXT_MAX];
		bc_quantity_write(time, BC_QUANTITY_TIME, idle_ns);
		snprintf(t->when, sizeof(t->when), "idle %s", time);
	} else {
		snprintf(t->when, sizeof(t->when), "%s", value);
	}
	return true;
}

static bool set_action(struct bc_trigger *t, const char *value, char *err, size_t errlen)
{
	for (size_t i = BC_ACTION_START; i < ACTIONS; i++) {
		if (strcmp(value, actions[i]) != 0)
			continue;
		t->action = (enum bc_trigger_action)i;
		return true;
	}
	return bc_fail(err, errlen, "must be start, stop, toggle, snapshot or mark");
}

static bool set_pre(struct bc_trigger *t, const char *value, char *err, size_t errlen)
{
	return bc_time_or_size_read(&t->pre, value, err, errlen);
}

static bool set_post(struct bc_trigger *t, const char *value, char *err, size_t errlen)
{
	struct bc_time_or_size post;

	if (!bc_time_or_size_read(&post, value, err, errlen))
		return false;
	if (post.unit == BC_TIME_OR_SIZE_ALL)
		return bc_fail(err, errlen, "must be a time or a size");
	t->post = post;
	return true;
}

static bool set_text(struct bc_trigger *t, const char *value, char *err, size_t errlen)
{
	if (strlen(value) > BC_TRIGGER_TEXT_MAX || !bc_utf8_is_valid(value, strlen(value)))
		return bc_fail(err, errlen, "must be up to 256 bytes of UTF-8");
	memset(t->text, 0, sizeof(t->text));
	strcpy(t->text, value);
	return true;
}

static bool set_holdoff(struct bc_trigger *t, const char *value, char *err, size_t errlen)
{
	return bc_quantity_read(&t->holdoff_ns, BC_QUANTITY_TIME, value, err, errlen);
}

bool bc_trigger_set(
	struct bc_trigger *trigger, const char *key, const char *value, char *err, size_t errlen)
{
	static const struct {
		const char *key;
		bool (*set)(struct bc_trigger *t, const char *value, char *err, size_t errlen);
	} keys[] = {
		{"when", set_when},
		{"action", set_action},
		{"pre", set_pre},
		{"post", set_post},
		{"text", set_text},
		{"holdoff", set_holdoff},
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(key, keys[i].key) == 0)
			return keys[i].set(trigger, value, err, errlen);
	return bc_fail(err, errlen, "no such key; use when, action, pre, post, text or holdoff");
}

bool bc_trigger_find_region(
	struct bc_trigger *t, const struct bc_name_map *names, char *err, size_t errlen)
{
	return t->kind != BC_TRIGGER_RECORD ||
	       bc_filter_parse(&t->filter, names, t->when, err, errlen);
}

bool bc_trigger_check(const struct bc_trigger *t, char *err, size_t errlen)
{
	bool starts = t->action == BC_ACTION_START || t->action == BC_ACTION_TOGGLE ||
		      t->action == BC_ACTION_SNAPSHOT;
	bool has_post = t->action == BC_ACTION_START || t->action == BC_ACTION_STOP ||
			t->action == BC_ACTION_SNAPSHOT;
	const char *what = NULL;

	if (t->kind == BC_TRIGGER_UNSET)
		what = "when is missing";
	else if (t->action == BC_ACTION_UNSET)
		what = "action is missing";
	else if (t->pre.unit != BC_TIME_OR_SIZE_NONE && !starts)
		what = "pre needs action start, toggle or snapshot";
	else if (t->post.unit != BC_TIME_OR_SIZE_NONE && !has_post)
		what = "post needs action start, stop or snapshot";
	if (what != NULL)
		bc_message(err, errlen, "trigger %s: %s", t->name, what);
	return what == NULL;
}

bool bc_trigger_equal(const struct bc_trigger *a, const struct bc_trigger *b)
{
	return strcmp(a->name, b->name) == 0 && a->kind == b->kind &&
	       strcmp(a->when, b->when) == 0 && a->action == b->action &&
	       a->pre.unit == b->pre.unit && a->pre.value == b->pre.value &&
	       a->post.unit == b->post.unit && a->post.value == b->post.value &&
	       strcmp(a->text, b->text) == 0 && a->holdoff_ns == b->holdoff_ns &&
	       a->is_requested == b->is_requested;
}

const char *bc_trigger_action_name(enum bc_trigger_action action)
{
	return action > BC_ACTION_UNSET && action < ACTIONS ? actions[action] : "none";
}

const char *bc_trigger_text(const struct bc_trigger *trigger)
{
	return trigger->text[0] != '\0' ? trigger->text : trigger->name;
}

static json_t *length_json(struct bc_time_or_size length)
{
	char text[BC_QUANTITY_TEXT_MAX];

	bc_time_or_size_print(text, length);
	return bc_json_text(length.unit != BC_TIME_OR_SIZE_NONE ? text : NULL);
}

json_t *bc_trigger_json(const struct bc_trigger *t)
{
	const struct bc_time_or_size holdoff = {
		.unit = t->holdoff_ns != 0 ? BC_TIME_OR_SIZE_TIME : BC_TIME_OR_SIZE_NONE,
		.value = t->holdoff_ns,
	};

	return BC_JSON_OBJECT({"name", bc_json_text(t->name)}, {"when", bc_json_text(t->when)},
		{"action", bc_json_text(bc_trigger_action_name(t->action))},
		{"pre", length_json(t->pre)}, {"post", length_json(t->post)},
		{"text", bc_json_text(bc_trigger_text(t))}, {"holdoff", length_json(holdoff)},
		{"fired", bc_json_u64(t->fired)}, {"missed", bc_json_u64(t->missed)},
		{"from", bc_json_text(t->is_requested ? "request" : "configuration")});
}
