/* The command for events ([events] command), which reports losses and the like during a recording
 * of weeks. docs/configuration.md describes the events and the object that the command reads.
 *
 * For each kind of event the command runs at most once per interval. The first event runs it at the
 * next poll; events during the interval are combined into one run at its end.
 *
 *     bc_event_command_open()
 *     bc_event_command_see() ...   for each event of GET /v1/events
 *     bc_event_command_add() ...   for an event that is not among those
 *     bc_event_command_poll() ...  several times a second
 *     bc_event_command_finish()    runs it for what is left; then calls done()
 *     bc_event_command_close()
 *
 * Loop thread only; callbacks run there too. */
#ifndef BC_DAEMON_HOOK_EVENT_COMMAND_H
#define BC_DAEMON_HOOK_EVENT_COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "formats/base/must_check.h"

enum bc_alert {
	BC_ALERT_LOSS,
	BC_ALERT_DISK_LOW,
	BC_ALERT_DISK_ERROR,
	BC_ALERT_STUCK,
	BC_ALERT_UNPLUG,
	BC_ALERT_TRIGGER,
	BC_ALERTS,
};

struct bc_event_command;
struct bc_hook;

struct bc_event_command_options {
	uv_loop_t *loop;
	const char *command; /* an absolute path; empty: run nothing */
	uint64_t interval_ns;
	uint64_t timeout_ns; /* of a run; 0: no limit */
	void *context;
	json_t *(*status)(void *context); /* the object of GET /v1/status; NULL: out of memory */
};

/* Copies the command. Returns 0 or -ENOMEM. */
int bc_event_command_open(struct bc_event_command **command,
	const struct bc_event_command_options *options) BC_MUST_CHECK;

/* Changes the settings. Returns 0, or -ENOMEM: the old command stays. */
int bc_event_command_set(struct bc_event_command *command, const char *path, uint64_t interval_ns,
	uint64_t timeout_ns) BC_MUST_CHECK;

/* Whether a command is set. Without one, events need not be passed. */
bool bc_event_command_is_on(const struct bc_event_command *command);

/* Passes an event with its members; `members` stays the caller's and may be NULL. Events that are
 * not alerts are ignored. */
void bc_event_command_see(
	struct bc_event_command *command, const char *event, const json_t *members);

/* Adds an alert. Takes ownership of `members`, which may be NULL. */
void bc_event_command_add(struct bc_event_command *command, enum bc_alert alert, json_t *members);

/* Its hook, for bc_hook_reap_orphans(). */
const struct bc_hook *bc_event_command_hook(const struct bc_event_command *command);

/* now_ns is bc_now_ns(). */
void bc_event_command_poll(struct bc_event_command *command, uint64_t now_ns);

/* As bc_hook_finish(). */
void bc_event_command_finish(
	struct bc_event_command *command, uint64_t timeout_ns, void (*done)(void *context));

/* As bc_hook_close(). */
void bc_event_command_close(struct bc_event_command *command);

#endif
