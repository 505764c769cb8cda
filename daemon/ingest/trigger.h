/* A trigger: a condition on the bus and the action to perform when it occurs. It comes from the
 * configuration, `[trigger NAME]`, or from a request; docs/configuration.md lists the keys.
 *
 * This module parses triggers; daemon/ingest/trigger_engine.h searches for them. */
#ifndef BC_DAEMON_INGEST_TRIGGER_H
#define BC_DAEMON_INGEST_TRIGGER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/rules.h"
#include "formats/base/must_check.h"
#include "formats/trace/filter.h"
#include "formats/trace/name_map.h"

#define BC_TRIGGER_NAME_MAX BC_SETTING_NAME_MAX
#define BC_TRIGGER_TEXT_MAX 256u

/* How many can be armed at the same time, from the configuration and by request. */
#define BC_TRIGGERS_CONFIGURED 16u
#define BC_TRIGGERS_REQUESTED  16u

enum bc_trigger_kind {
	BC_TRIGGER_UNSET,  /* `when` has not been set */
	BC_TRIGGER_RECORD, /* a record that matches the filter */
	BC_TRIGGER_BOARD,  /* the board's own trigger: BC_EVENT_TRIGGER without text */
	BC_TRIGGER_GAP,    /* samples are missing before a record */
	BC_TRIGGER_IDLE,   /* nothing on the bus for longer than idle_ns */
};

enum bc_trigger_action {
	BC_ACTION_UNSET,
	BC_ACTION_START,    /* start a recording with the matching record */
	BC_ACTION_STOP,     /* end the recording after the matching record */
	BC_ACTION_TOGGLE,   /* stop if recording, else start */
	BC_ACTION_SNAPSHOT, /* write out the flight recorder */
	BC_ACTION_MARK,
};

struct bc_trigger {
	char name[BC_TRIGGER_NAME_MAX + 1];
	enum bc_trigger_kind kind;
	struct bc_filter filter; /* BC_TRIGGER_RECORD */
	uint64_t idle_ns;        /* BC_TRIGGER_IDLE */
	char when[256];          /* as written */
	enum bc_trigger_action action;

	/* start, toggle, snapshot: how much to record from before the matching record. */
	struct bc_time_or_size pre;

	/* start, stop, snapshot: the recording ends this much after the matching record. NONE: a
	 * start sets no end, a stop is immediate. */
	struct bc_time_or_size post;
	char text[BC_TRIGGER_TEXT_MAX + 1]; /* of its event; empty: its name */
	uint64_t holdoff_ns;                /* minimum time between two actions */
	bool is_requested;
	uint64_t recording_tag; /* armed until this recording ends; 0: until disarmed */
	uint64_t fired;         /* number of actions performed */
	uint64_t missed;        /* matches for which no event could be written */
};

/* Initializes a trigger with this name and nothing set. Returns false with a sentence in `err` if
 * the name is not valid: up to 32 letters, digits, underscores and dashes. */
bool bc_trigger_init(
	struct bc_trigger *trigger, const char *name, char *err, size_t errlen) BC_MUST_CHECK;

/* Sets when, action, pre, post, text or holdoff. On failure returns false with a sentence in `err`
 * that does not name the key. */
bool bc_trigger_set(struct bc_trigger *trigger, const char *key, const char *value, char *err,
	size_t errlen) BC_MUST_CHECK;

/* Looks up the region named in `when`, which matches nothing until then. On failure returns
 * false with a sentence in `err`. */
bool bc_trigger_find_region(struct bc_trigger *trigger, const struct bc_name_map *names, char *err,
	size_t errlen) BC_MUST_CHECK;

/* Checks that nothing is missing and that the keys are compatible. On failure returns false with a
 * sentence in `err` that names the trigger. */
bool bc_trigger_check(const struct bc_trigger *trigger, char *err, size_t errlen) BC_MUST_CHECK;

/* Returns whether two triggers are equal, apart from their counts and the ranges of a region. */
bool bc_trigger_equal(const struct bc_trigger *a, const struct bc_trigger *b);

/* Returns "start", "stop", "toggle", "snapshot" or "mark". */
const char *bc_trigger_action_name(enum bc_trigger_action action);

/* Returns the text of its events. */
const char *bc_trigger_text(const struct bc_trigger *trigger);

/* Returns {"name","when","action","pre","post","text","holdoff","fired","missed","from"}, which the
 * caller deletes; NULL if out of memory. Lengths and strings are as in the configuration; null: not
 * set; the text is never null. */
json_t *bc_trigger_json(const struct bc_trigger *trigger) BC_MUST_CHECK;

#endif
