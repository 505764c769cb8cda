/* A trigger: what on the bus sets something off, and what that is. Of the configuration, `[trigger
 * NAME]`, or of a request; docs/configuration.md lists the keys.
 *
 * What it waits for is read into a filter or a time here; daemon/trigger/trigger_engine.h looks for
 * it. */
#ifndef BC_DAEMON_TRIGGER_TRIGGER_H
#define BC_DAEMON_TRIGGER_TRIGGER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/time_or_size.h"
#include "formats/base/must_check.h"
#include "formats/trace/filter.h"

#define BC_TRIGGER_NAME_MAX 32u
#define BC_TRIGGER_TEXT_MAX 256u

/* Armed at the same time: of the configuration, and of requests. */
#define BC_TRIGGERS_CONFIGURED 16u
#define BC_TRIGGERS_REQUESTED  16u

enum bc_trigger_kind {
	BC_TRIGGER_UNSET,  /* no `when` was given yet */
	BC_TRIGGER_RECORD, /* a record that the filter wants */
	BC_TRIGGER_BOARD,  /* the board's own trigger: BC_EVENT_TRIGGER without a text */
	BC_TRIGGER_GAP,    /* samples are missing before a record */
	BC_TRIGGER_IDLE,   /* nothing on the bus for longer than idle_ns */
};

enum bc_trigger_action {
	BC_ACTION_UNSET,
	BC_ACTION_START,    /* of a recording, with the hit record */
	BC_ACTION_STOP,     /* of the recording, behind the hit record */
	BC_ACTION_TOGGLE,   /* start, or stop what is recorded */
	BC_ACTION_SNAPSHOT, /* what the flight recorder holds is written out */
	BC_ACTION_MARK,
};

struct bc_trigger {
	char name[BC_TRIGGER_NAME_MAX + 1];
	enum bc_trigger_kind kind;
	struct bc_filter filter; /* BC_TRIGGER_RECORD */
	uint64_t idle_ns;        /* BC_TRIGGER_IDLE */
	char when[256];          /* as written */
	enum bc_trigger_action action;
	struct bc_time_or_size
		pre; /* start, toggle, snapshot: so much from before the hit record */
	struct bc_time_or_size
		post; /* start, snapshot: the recording ends so much behind it; stop: the
		   same. NONE: a start has no end of its own, a stop is at once */
	char text[BC_TRIGGER_TEXT_MAX + 1]; /* of its event; empty: its name */
	uint64_t holdoff_ns;                /* after it acted, it doesn't act for so long */
	bool is_of_request;
	uint64_t fired;  /* times that it acted */
	uint64_t missed; /* hits of which no event could be put on record */
};

/* A trigger of that name with nothing set. Returns false with a sentence in `err` if it can't be a
 * name: up to 32 letters, digits, underscores and dashes. */
bool bc_trigger_init(
	struct bc_trigger *trigger, const char *name, char *err, size_t errlen) BC_MUST_CHECK;

/* Sets when, action, pre, post, text or holdoff. On failure returns false with a sentence in `err`
 * that doesn't name the key. */
bool bc_trigger_set(struct bc_trigger *trigger, const char *key, const char *value, char *err,
	size_t errlen) BC_MUST_CHECK;

/* What no single key can tell: what is missing, or doesn't go together. The sentence names the
 * trigger. */
bool bc_trigger_check(const struct bc_trigger *trigger, char *err, size_t errlen) BC_MUST_CHECK;

/* Whether two are the same, but for what they counted. */
bool bc_trigger_equal(const struct bc_trigger *a, const struct bc_trigger *b);

/* "start", "stop", "toggle", "snapshot", "mark". */
const char *bc_trigger_action_name(enum bc_trigger_action action);

/* The text of its events. */
const char *bc_trigger_text(const struct bc_trigger *trigger);

/* {"name","when","action","pre","post","text","holdoff","fired","missed","from"}: lengths and
 * texts as they are read, null where there is none; the text is never null. NULL when memory
 * runs out; the caller's to delete. */
json_t *bc_trigger_json(const struct bc_trigger *trigger) BC_MUST_CHECK;

#endif
