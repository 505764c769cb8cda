#include "daemon/hook/event_command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/hook/hook.h"
#include "formats/base/clock.h"
#include "formats/base/json.h"

static const char *const names[BC_ALERTS] = {
	[BC_ALERT_LOSS] = "loss",
	[BC_ALERT_DISK_LOW] = "disk-low",
	[BC_ALERT_DISK_ERROR] = "disk-error",
	[BC_ALERT_STUCK] = "stuck",
	[BC_ALERT_UNPLUG] = "unplug",
	[BC_ALERT_TRIGGER] = "trigger",
};

/* The events of one kind since its last run. */
struct pending {
	uint64_t count;
	int64_t first_ns; /* wall clock */
	int64_t last_ns;
	json_t *members;  /* of the last; of losses, their sum; NULL: none, or out of memory */
	uint64_t next_ns; /* no run before this */
};

struct bc_event_command {
	struct bc_event_command_options options;
	struct bc_hook *hook;
	bool is_on;
	struct pending pending[BC_ALERTS];
};

bool bc_event_command_is_on(const struct bc_event_command *c)
{
	return c->is_on;
}

const struct bc_hook *bc_event_command_hook(const struct bc_event_command *c)
{
	return c->hook;
}

/* Events */

static struct pending *count_event(struct bc_event_command *c, enum bc_alert alert)
{
	struct pending *p = &c->pending[alert];

	p->last_ns = bc_wall_ns();
	if (p->count++ == 0)
		p->first_ns = p->last_ns;
	return p;
}

void bc_event_command_add(struct bc_event_command *c, enum bc_alert alert, json_t *members)
{
	if (!c->is_on) {
		json_decref(members);
		return;
	}
	struct pending *p = count_event(c, alert);
	json_decref(p->members);
	p->members = members;
}

/* {"lost": {CAUSE: N, ...}, "exact": bool} */
static void add_loss(struct bc_event_command *c, const json_t *gap)
{
	struct pending *p = count_event(c, BC_ALERT_LOSS);
	const char *cause = json_string_value(json_object_get(gap, "cause"));
	bool is_exact = json_is_true(json_object_get(gap, "exact"));

	if (p->members == NULL)
		p->members = json_pack("{s:{}, s:b}", "lost", "exact", 1);
	json_t *lost = json_object_get(p->members, "lost");
	if (lost == NULL || cause == NULL)
		return;
	uint64_t sum = bc_json_member_u64(lost, cause) + bc_json_member_u64(gap, "lost");
	json_object_set_new(lost, cause, bc_json_u64(sum));
	if (!is_exact)
		json_object_set_new(p->members, "exact", json_false());
}

static void add_error(struct bc_event_command *c, enum bc_alert alert, const json_t *members)
{
	bc_event_command_add(
		c, alert, json_pack("{s:O}", "error", json_object_get(members, "error")));
}

/* Stuck, failed in another way, or well again. */
static void see_disk(struct bc_event_command *c, const json_t *members)
{
	const char *error = json_string_value(json_object_get(members, "error"));

	if (json_is_true(json_object_get(members, "stuck")))
		add_error(c, BC_ALERT_STUCK, members);
	else if (error != NULL && error[0] != '\0')
		add_error(c, BC_ALERT_DISK_ERROR, members);
}

void bc_event_command_see(struct bc_event_command *c, const char *event, const json_t *members)
{
	if (!c->is_on)
		return;
	if (strcmp(event, "gap") == 0 && !bc_json_member_is(members, "cause", "unplugged"))
		add_loss(c, members);
	else if (strcmp(event, "disk") == 0)
		see_disk(c, members);
	else if (strcmp(event, "trigger") == 0)
		bc_event_command_add(c, BC_ALERT_TRIGGER, json_copy((json_t *)members));
}

/* Runs */

/* Returns a line, which the caller frees. Takes ownership of `status`. NULL: out of memory. */
static char *print_event(enum bc_alert alert, const struct pending *p, json_t *status)
{
	json_t *object = bc_json_object((struct bc_json_member[]){
		{"event", bc_json_text(names[alert])},
		{"count", bc_json_u64(p->count)},
		{"since", bc_json_time(p->first_ns)},
		{"time", bc_json_time(p->last_ns)},
		{NULL, NULL},
	});
	if (p->members != NULL)
		json_object_update(object, p->members);
	json_object_set_new(object, "status", status);
	char *text = bc_json_print(object);
	json_decref(object);
	return text;
}

static void run_for(struct bc_event_command *c, enum bc_alert alert)
{
	struct pending *p = &c->pending[alert];
	/* First, because it may add events. */
	json_t *status = c->options.status(c->options.context);
	char *text = print_event(alert, p, status);
	char least[64];

	/* Without memory for more, the command still runs. */
	snprintf(least, sizeof(least), "{\"event\":\"%s\",\"count\":%" PRIu64 "}", names[alert],
		p->count);
	bc_hook_add_event(c->hook, names[alert], text != NULL ? text : least);
	free(text);
	json_decref(p->members);
	p->members = NULL;
	p->count = 0;
}

void bc_event_command_poll(struct bc_event_command *c, uint64_t now_ns)
{
	for (enum bc_alert alert = 0; alert < BC_ALERTS; alert++) {
		struct pending *p = &c->pending[alert];
		if (p->count == 0 || now_ns < p->next_ns)
			continue;
		p->next_ns = now_ns + c->options.interval_ns;
		run_for(c, alert);
	}
	bc_hook_poll(c->hook, now_ns);
}

/* Start and end */

int bc_event_command_open(
	struct bc_event_command **command, const struct bc_event_command_options *options)
{
	struct bc_event_command *c = calloc(1, sizeof(*c));
	struct bc_hook_options hook = {
		.loop = options->loop,
		.command = options->command,
		.timeout_ns = options->timeout_ns,
		.context = options->context,
	};

	if (c == NULL || bc_hook_open(&c->hook, &hook) != 0) {
		free(c);
		return -ENOMEM;
	}
	c->options = *options;
	c->options.command = NULL;
	c->is_on = options->command[0] != '\0';
	*command = c;
	return 0;
}

static void forget(struct bc_event_command *c)
{
	for (enum bc_alert alert = 0; alert < BC_ALERTS; alert++) {
		json_decref(c->pending[alert].members);
		c->pending[alert] = (struct pending){.count = 0};
	}
}

int bc_event_command_set(
	struct bc_event_command *c, const char *path, uint64_t interval_ns, uint64_t timeout_ns)
{
	c->options.interval_ns = interval_ns;
	int rc = bc_hook_set(c->hook, path, timeout_ns);
	if (rc != 0)
		return rc;
	c->is_on = path[0] != '\0';
	if (!c->is_on)
		forget(c);
	return 0;
}

void bc_event_command_finish(
	struct bc_event_command *c, uint64_t timeout_ns, void (*done)(void *context))
{
	for (enum bc_alert alert = 0; alert < BC_ALERTS; alert++)
		if (c->pending[alert].count != 0)
			run_for(c, alert);
	bc_hook_finish(c->hook, timeout_ns, done);
}

void bc_event_command_close(struct bc_event_command *c)
{
	if (c == NULL)
		return;
	forget(c);
	bc_hook_close(c->hook);
	free(c);
}
