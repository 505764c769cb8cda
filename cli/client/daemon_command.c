#include "cli/client/daemon_command.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client/answer_text.h"
#include "cli/client/client.h"
#include "cli/term/interrupt.h"
#include "cli/term/json_path.h"
#include "cli/term/options.h"
#include "cli/term/safe_text.h"
#include "formats/base/json.h"
#include "formats/base/usage.h"
#include "formats/codec/format.h"

/* The time in which the daemon must have sealed what it answers for. */
#define SEAL_MS 600000

/* How often a replay is asked after while its end is waited for. */
#define WAIT_STEP_MS 200

/* ---- options and help texts */

/* Those before OPTION_WAIT go into the body: adders[] has how. */
enum {
	OPTION_LABEL = BC_CLIENT_OPT_MORE,
	OPTION_PRE,
	OPTION_POST,
	OPTION_TEXT,
	OPTION_HOLDOFF,
	OPTION_NOTE,
	OPTION_LIMIT,
	OPTION_TRIGGER,
	OPTION_GO_ON,
	OPTION_SPEED,
	OPTION_FORMAT,
	OPTION_CLOCK,
	OPTION_WAIT,
};

/* Rows of more than one table. */
/* clang-format off */
#define ROWS_OF_ALL \
	{BC_CLIENT_OPT_JSON, "json", NULL, NULL, "print the daemon's answer as it came"}, \
	BC_CLIENT_OPTION_SOCKET
#define ROW_LABEL \
	{OPTION_LABEL, "label", "TEXT", "text", \
		"goes into the recording's name: letters, digits, '.', '_', '-'"}
#define ROW_NOTE \
	{OPTION_NOTE, "note", "KEY=VALUE", "text", "kept with the recording; can be repeated"}
#define ROW_LIMIT \
	{OPTION_LIMIT, "limit", "RULE", "choice:duration:|records:|filesize:", \
		"stop at duration:10s, records:1000000 or filesize:64M; the first that is reached"}
#define ROW_TRIGGER \
	{OPTION_TRIGGER, "trigger", "NAME:ACTION:WHEN", "text", \
		"armed while it lasts; ACTION is mark or stop; WHEN as in \"buscap trigger --help\""}
/* clang-format on */

static const struct bc_usage_option plain_options[] = {
	ROWS_OF_ALL,
	{0},
};

/* ---- record */

static const struct bc_usage_option record_start_options[] = {
	ROW_LABEL,
	ROW_NOTE,
	ROW_LIMIT,
	{OPTION_PRE, "pre", "LENGTH", "length",
		"begin with so much of what the flight recorder holds: 5s, 16M, all"},
	ROW_TRIGGER,
	ROWS_OF_ALL,
	{0},
};

static const struct bc_usage record_start_usage = {
	.name = "record start",
	.summary = "start a recording in the running daemon",
	.options = record_start_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap record start --label boot --note program=ls --limit duration:10s",
};

static const struct bc_usage record_stop_usage = {
	.name = "record stop",
	.summary = "stop the recording under way, and wait until it is sealed",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap record stop",
};

static const struct bc_usage record_list_usage = {
	.name = "record list",
	.summary = "list the recordings in the daemon's directory",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap record list",
};

static const struct bc_usage record_show_usage = {
	.name = "record show",
	.operands = "[ID]",
	.kind = "text",
	.summary = "show a recording; without ID the one under way",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap record show",
};

static const struct bc_usage record_note_usage = {
	.name = "record note",
	.operands = "KEY=VALUE...",
	.kind = "text",
	.summary = "note metadata on the recording under way",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap record note operator=night-shift run=7",
};

const struct bc_usage bc_record_usage = {
	.name = "record",
	.operands = "VERB",
	.kind = "command",
	.summary = "start, stop, list, show, note: recordings on request",
	.text = "Starts a recording in the running daemon, stops the one under way (and waits "
		"until it is sealed), lists those in its directory, shows one (without ID the one "
		"under way), and notes metadata on the one under way.",
	.verbs = (const struct bc_usage *const[]){&record_start_usage, &record_stop_usage,
		&record_list_usage, &record_show_usage, &record_note_usage, NULL},
	.exits = BC_CLIENT_EXITS,
	.example = "buscap record start --label boot --note program=ls --limit duration:10s",
};

/* ---- mark, rotate, snapshot */

const struct bc_usage bc_mark_usage = {
	.name = "mark",
	.operands = "TEXT...",
	.kind = "text",
	.summary = "set a mark at this place of the recording",
	.text = "Sets a mark at this place of the recording under way, or of what the flight "
		"recorder holds; info, dump and cut show it there. Several words are one text, "
		"with a blank between.",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap mark the second run begins",
};

const struct bc_usage bc_rotate_usage = {
	.name = "rotate",
	.summary = "begin a new segment",
	.text = "Begins a new segment of the recording under way: the one before is sealed and can "
		"be copied.",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap rotate --json",
};

static const struct bc_usage_option snapshot_options[] = {
	{OPTION_PRE, "pre", "LENGTH", "length", "only so much before this moment: 5s, 16M (all)"},
	{OPTION_POST, "post", "LENGTH", "length", "and go on for so much: 2s, 16M"},
	{OPTION_GO_ON, "go-on", NULL, NULL, "and go on until it is stopped"},
	ROW_LABEL,
	ROW_NOTE,
	ROWS_OF_ALL,
	{0},
};

const struct bc_usage bc_snapshot_usage = {
	.name = "snapshot",
	.summary = "write out what the flight recorder holds",
	.text = "Writes out what the flight recorder holds (record = flight in the daemon's "
		"configuration) as a recording. Returns when it is sealed, or with --post and "
		"--go-on when it has begun. What was written out is no longer held.",
	.options = snapshot_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap snapshot --pre 5s --post 1s --label glitch",
};

/* ---- triggers */

static const struct bc_usage_option trigger_add_options[] = {
	{OPTION_PRE, "pre", "LENGTH", "length",
		"start, snapshot: begin with so much of the flight recorder: 5s, 16M, all (start: "
		"none, snapshot: all)"},
	{OPTION_POST, "post", "LENGTH", "length",
		"start, snapshot: end so much after it; stop: not at once, but after so much: 2s, "
		"16M"},
	{OPTION_TEXT, "text", "TEXT", "text", "kept in the recording at its place (its name)"},
	{OPTION_HOLDOFF, "holdoff", "TIME", "time",
		"after it has fired, it doesn't again for so long: 100ms"},
	ROWS_OF_ALL,
	{0},
};

#define ADD_EXAMPLE "buscap trigger add begin start port=e0 --pre 1s"
#define ADD_TEXT                                                                                   \
	"ACTION is start, stop, toggle (a recording), snapshot (of the flight recorder) or mark. " \
	"WHEN is one of\n"                                                                         \
	"  words that must all hold for a record:\n"                                               \
	"    addr=1000-1fff   its address, in hexadecimal; one, or a range\n"                      \
	"    type=write       read, write, fetch, the names that dump prints, or 0xf2; several: "  \
	"a,b\n"                                                                                    \
	"    proc=0,2-3       its processor\n"                                                     \
	"    port=e0-e3       an I/O write there: type=IOWRITE addr=e0-e3\n"                       \
	"  board              the board's trigger flag\n"                                          \
	"  gap                samples were lost\n"                                                 \
	"  idle TIME          nothing on the bus for so long: idle 5s"

static const struct bc_usage trigger_list_usage = {
	.name = "trigger list",
	.summary = "list the triggers that are armed in the running daemon",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap trigger list",
};

static const struct bc_usage trigger_add_usage = {
	.name = "trigger add",
	.operands = "NAME ACTION WHEN...",
	.kind = "text choice:start|stop|toggle|snapshot|mark "
		"choice:addr=|type=|proc=|port=|board|gap|idle",
	.summary = "arm a trigger in the running daemon",
	.text = "Arms a trigger in the running daemon.\n\n" ADD_TEXT,
	.options = trigger_add_options,
	.exits = BC_CLIENT_EXITS,
	.example = ADD_EXAMPLE,
};

static const struct bc_usage trigger_remove_usage = {
	.name = "trigger remove",
	.operands = "NAME",
	.kind = "text",
	.summary = "disarm a trigger of the running daemon",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap trigger remove begin",
};

const struct bc_usage bc_trigger_usage = {
	.name = "trigger",
	.operands = "VERB",
	.kind = "command",
	.summary = "list, add, remove: what is waited for on the bus",
	.text = "Lists the triggers that are armed in the running daemon, arms one, disarms "
		"one.\n\n" ADD_TEXT,
	.verbs = (const struct bc_usage *const[]){&trigger_list_usage, &trigger_add_usage,
		&trigger_remove_usage, NULL},
	.exits = BC_CLIENT_EXITS,
	.example = ADD_EXAMPLE,
};

/* ---- replays */

static const struct bc_usage_option replay_options[] = {
	{OPTION_SPEED, "speed", "S", "choice:max|realtime",
		"max (as fast as it goes), realtime, or so many times that: 0.5"},
	{OPTION_FORMAT, "format", "FMT", "format-read",
		"the file's format, where it can't be told by content: raw6, bcp1, byu..."},
	{OPTION_CLOCK, "clock-hz", "N", "number", "its clock, where it doesn't tell: 66M"},
	ROW_LABEL,
	ROW_NOTE,
	ROW_LIMIT,
	ROW_TRIGGER,
	{OPTION_WAIT, "wait", NULL, NULL,
		"return when it has ended; Ctrl-C ends the waiting, not the replay"},
	ROWS_OF_ALL,
	{0},
};

static const struct bc_usage replay_list_usage = {
	.name = "replay list",
	.summary = "list the replays of this run of the daemon",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap replay list",
};

static const struct bc_usage replay_cancel_usage = {
	.name = "replay cancel",
	.operands = "[ID]",
	.kind = "text",
	.summary = "cancel the replay that runs, and wait until what was read of it is sealed",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap replay cancel",
};

const struct bc_usage bc_replay_usage = {
	.name = "replay",
	.operands = "PATH",
	.kind = "file",
	.summary = "put a file through the running daemon",
	.text = "Puts a saved capture, a BYU file or a segment through the running daemon, which "
		"must be able to read it, as a recording of its own; lists the replays of this run "
		"of the daemon; cancels the one that runs (and returns when what was read of it is "
		"sealed).",
	.options = replay_options,
	.verbs = (const struct bc_usage *const[]){&replay_list_usage, &replay_cancel_usage, NULL},
	.exits = "0 ok, 1 failed or refused (--wait: or cancelled), 2 wrong usage, 3 (--wait) the "
		 "file is damaged: what is good was recorded, 6 the daemon can't be reached.",
	.example = "buscap replay --speed realtime --wait bus.bcp1",
};

/* ---- requests */

/* A command under way. */
struct request {
	const struct bc_console *console;
	const struct command *command;
	const char *socket;
	bool is_json;
	bool is_waiting; /* --wait */
	json_t *body;    /* an object */
	char **operands;
	int count;
};

/* Sets a member of an object, taking the reference of `value`. */
static enum bc_exit set_member(
	const struct request *r, json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value) == 0 ? BC_EXIT_OK
							     : bc_print_no_memory(r->console);
}

static enum bc_exit add_text(struct request *r, const char *name, const char *value)
{
	if (json_object_get(r->body, name) == NULL)
		return set_member(r, r->body, name, bc_json_text(value));
	bc_print_error(r->console, NULL, "--%s is given twice", name);
	return BC_EXIT_USAGE;
}

/* The member of the body that is an object or an array, made with its first use. NULL when memory
 * ran out. */
static json_t *part_of_body(struct request *r, const char *name, json_t *(*create)(void))
{
	json_t *part = json_object_get(r->body, name);

	if (part == NULL && json_object_set_new(r->body, name, create()) == 0)
		part = json_object_get(r->body, name);
	return part;
}

static enum bc_exit add_note(struct request *r, const char *name, const char *value)
{
	const char *equals = strchr(value, '=');
	json_t *metadata = part_of_body(r, "metadata", json_object);
	json_t *key = json_stringn(value, equals != NULL ? (size_t)(equals - value) : 0);
	enum bc_exit code = BC_EXIT_USAGE;

	(void)name;
	if (metadata == NULL)
		code = bc_print_no_memory(r->console);
	else if (equals == NULL || equals == value || key == NULL)
		bc_print_error(r->console, NULL, "--note %s: not KEY=VALUE; try program=ls", value);
	else if (json_object_get(metadata, json_string_value(key)) != NULL)
		bc_print_error(r->console, NULL, "--note %s: there is a note %s already", value,
			json_string_value(key));
	else
		code = set_member(r, metadata, json_string_value(key), bc_json_text(equals + 1));
	json_decref(key);
	return code;
}

/* "duration:10s" */
static enum bc_exit add_limit(struct request *r, const char *name, const char *value)
{
	static const char *const rules[] = {"duration", "records", "filesize"};
	json_t *limits = part_of_body(r, "limits", json_object);
	const char *amount = strchr(value, ':');
	const char *rule = NULL;

	(void)name;
	if (limits == NULL)
		return bc_print_no_memory(r->console);
	for (unsigned i = 0; i < 3 && amount != NULL; i++)
		if (strlen(rules[i]) == (size_t)(amount - value) &&
			strncmp(value, rules[i], strlen(rules[i])) == 0)
			rule = rules[i];
	if (rule == NULL || *++amount == '\0') {
		bc_print_error(r->console, NULL,
			"--limit %s: not a limit; try duration:10s, records:1000000 or "
			"filesize:64M",
			value);
		return BC_EXIT_USAGE;
	}
	if (json_object_get(limits, rule) != NULL) {
		bc_print_error(r->console, NULL, "--limit %s: there is a limit of %s already",
			value, rule);
		return BC_EXIT_USAGE;
	}
	errno = 0;
	long long number = strtoll(amount, NULL, 10);
	bool is_number = errno == 0 && amount[strspn(amount, "0123456789")] == '\0';
	if (strcmp(rule, "records") == 0 && !is_number) {
		bc_print_error(r->console, NULL, "--limit %s: records wants a number", value);
		return BC_EXIT_USAGE;
	}
	return set_member(r, limits, rule, is_number ? json_integer(number) : bc_json_text(amount));
}

/* "NAME:ACTION:WHEN" */
static enum bc_exit add_trigger(struct request *r, const char *option, const char *value)
{
	json_t *triggers = part_of_body(r, "triggers", json_array);
	char *name = strdup(value);
	char *action = name != NULL ? strchr(name, ':') : NULL;
	char *when = action != NULL ? strchr(action + 1, ':') : NULL;
	enum bc_exit code = BC_EXIT_OK;

	(void)option;
	if (triggers == NULL || name == NULL) {
		code = bc_print_no_memory(r->console);
	} else if (when == NULL || action == name || when == action + 1 || when[1] == '\0') {
		bc_print_error(r->console, NULL,
			"--trigger %s: not NAME:ACTION:WHEN; try roi:stop:port=e0", value);
		code = BC_EXIT_USAGE;
	} else {
		*action++ = '\0';
		*when++ = '\0';
		json_t *trigger = json_pack("{s:o, s:o, s:o}", "name", bc_json_text(name), "action",
			bc_json_text(action), "when", bc_json_text(when));
		if (json_array_append_new(triggers, trigger) != 0)
			code = bc_print_no_memory(r->console);
	}
	free(name);
	return code;
}

static enum bc_exit add_go_on(struct request *r, const char *name, const char *value)
{
	(void)name;
	(void)value;
	return set_member(r, r->body, "until_stopped", json_true());
}

static enum bc_exit add_speed(struct request *r, const char *name, const char *value)
{
	char *end;
	double speed = strtod(value, &end);

	if (strcmp(value, "max") == 0 || strcmp(value, "realtime") == 0 ||
		json_object_get(r->body, name) != NULL)
		return add_text(r, name, value);
	if (end != value && *end == '\0' && isfinite(speed) && speed > 0)
		return set_member(r, r->body, name, json_real(speed));
	bc_print_error(
		r->console, NULL, "--speed %s: not max, realtime or a number above 0", value);
	return BC_EXIT_USAGE;
}

static enum bc_exit add_format(struct request *r, const char *name, const char *value)
{
	if (bc_format_by_name(value) != BC_FORMAT_UNKNOWN)
		return add_text(r, name, value);
	bc_print_error(r->console, NULL, "--format %s: no such format; see buscap formats", value);
	return BC_EXIT_USAGE;
}

static enum bc_exit add_clock(struct request *r, const char *name, const char *value)
{
	uint64_t hz;

	(void)value;
	if (!bc_option_count(r->console, "--clock-hz", &hz))
		return BC_EXIT_USAGE;
	if (json_object_get(r->body, "clock_hz") != NULL) {
		bc_print_error(r->console, NULL, "--%s is given twice", name);
		return BC_EXIT_USAGE;
	}
	return set_member(r, r->body, "clock_hz", bc_json_u64(hz));
}

static enum bc_exit (*const adders[])(struct request *r, const char *name, const char *value) = {
	[OPTION_LABEL - OPTION_LABEL] = add_text,
	[OPTION_PRE - OPTION_LABEL] = add_text,
	[OPTION_POST - OPTION_LABEL] = add_text,
	[OPTION_TEXT - OPTION_LABEL] = add_text,
	[OPTION_HOLDOFF - OPTION_LABEL] = add_text,
	[OPTION_NOTE - OPTION_LABEL] = add_note,
	[OPTION_LIMIT - OPTION_LABEL] = add_limit,
	[OPTION_TRIGGER - OPTION_LABEL] = add_trigger,
	[OPTION_GO_ON - OPTION_LABEL] = add_go_on,
	[OPTION_SPEED - OPTION_LABEL] = add_speed,
	[OPTION_FORMAT - OPTION_LABEL] = add_format,
	[OPTION_CLOCK - OPTION_LABEL] = add_clock,
};

/* ---- operands that go into the body */

/* The words with blanks between them, for the caller to free; NULL when memory ran out. */
static char *join(char **words, int count)
{
	size_t bytes = 1;

	for (int i = 0; i < count; i++)
		bytes += strlen(words[i]) + 1;
	char *text = calloc(1, bytes);
	char *p = text;
	for (int i = 0; i < count && text != NULL; i++)
		p = stpcpy(i == 0 ? p : stpcpy(p, " "), words[i]);
	return text;
}

static enum bc_exit add_words(struct request *r, const char *name, char **words, int count)
{
	char *text = join(words, count);
	enum bc_exit code = text != NULL ? set_member(r, r->body, name, bc_json_text(text))
					 : bc_print_no_memory(r->console);

	free(text);
	return code;
}

static enum bc_exit fill_mark(struct request *r)
{
	return add_words(r, "text", r->operands, r->count);
}

static enum bc_exit fill_notes(struct request *r)
{
	enum bc_exit code = BC_EXIT_OK;

	for (int i = 0; i < r->count && code == BC_EXIT_OK; i++)
		code = add_note(r, "note", r->operands[i]);
	return code;
}

static enum bc_exit fill_trigger(struct request *r)
{
	size_t bytes = 0;

	for (int i = 2; i < r->count; i++)
		bytes += strlen(r->operands[i]) + 1;
	if (bytes > 1024)
		return bc_print_usage_error(r->console, "WHEN is too long");
	enum bc_exit code = add_words(r, "name", r->operands, 1);
	if (code == BC_EXIT_OK)
		code = add_words(r, "action", r->operands + 1, 1);
	return code == BC_EXIT_OK ? add_words(r, "when", r->operands + 2, r->count - 2) : code;
}

static enum bc_exit check_snapshot(struct request *r)
{
	if (json_object_get(r->body, "post") == NULL ||
		json_object_get(r->body, "until_stopped") == NULL)
		return BC_EXIT_OK;
	return bc_print_usage_error(r->console, "--post ends it and --go-on doesn't: one of them");
}

/* The daemon has a working directory of its own. */
static enum bc_exit fill_replay(struct request *r)
{
	const char *path = r->operands[0];

	if (strcmp(path, "-") == 0)
		return bc_print_usage_error(r->console,
			"the daemon reads the file itself, and can't read this program's "
			"standard input: name a file");
	char *absolute = realpath(path, NULL);
	if (absolute == NULL) {
		bc_print_error(r->console, path, "%s", strerror(errno));
		return BC_EXIT_FAILED;
	}
	enum bc_exit code = set_member(r, r->body, "path", bc_json_text(absolute));
	free(absolute);
	return code;
}

/* ---- commands that do more than print their answer */

/* Puts the recording that was asked for in the place of the list. */
static enum bc_exit pick_recording(
	const struct request *r, struct bc_client *client, struct bc_answer *answer)
{
	const json_t *recordings = bc_json_path(answer->json, "recordings");
	uint64_t left_out = bc_json_path_count(answer->json, "omitted");
	const char *id = r->operands[0];
	json_t *recording;
	size_t i;

	if (!json_is_array(recordings))
		return bc_client_complain_answer(client);
	json_array_foreach(recordings, i, recording)
	{
		const char *its = bc_json_path_text(recording, "id");
		if (its == NULL || strcmp(its, id) != 0)
			continue;
		json_t *picked = json_pack("{s:O}", "recording", recording);
		bc_answer_free(answer);
		answer->json = picked;
		answer->text = picked != NULL ? bc_json_print(picked) : NULL;
		if (answer->text == NULL)
			return bc_print_no_memory(r->console);
		answer->bytes = strlen(answer->text);
		return BC_EXIT_OK;
	}
	if (left_out != 0)
		bc_print_error(r->console, NULL,
			"no recording %s among the newest; %" PRIu64
			" older one%s not listed: see buscap info on the files",
			id, left_out, left_out == 1 ? " is" : "s are");
	else
		bc_print_error(
			r->console, NULL, "there is no recording %s; see buscap record list", id);
	return BC_EXIT_FAILED;
}

static enum bc_exit replay_exit(const struct bc_console *console, const json_t *replay)
{
	const char *error = bc_json_path_text(replay, "error");
	const char *state = bc_json_path_text(replay, "state");
	char safe[512];

	if (strcmp(state, "done") == 0)
		return bc_json_path_count(replay, "damaged_places") != 0 ? BC_EXIT_DAMAGED
									 : BC_EXIT_OK;
	if (strcmp(state, "cancelled") == 0)
		bc_print_error(console, NULL, "the replay was cancelled");
	else
		bc_print_error(console, NULL, "the replay failed%s%s", error != NULL ? ": " : "",
			bc_safe_text(safe, sizeof(safe), error));
	return BC_EXIT_FAILED;
}

static bool has_ended(const char *state)
{
	return state != NULL && (strcmp(state, "done") == 0 || strcmp(state, "cancelled") == 0 ||
					strcmp(state, "failed") == 0);
}

static char *path_with(const char *format, const char *operand);

/* Asks after the replay until it has ended. `answer` is the one that started it, and then the
 * last. */
static enum bc_exit wait_for_replay(
	const struct request *r, struct bc_client *client, struct bc_answer *answer)
{
	const char *id = bc_json_path_text(answer->json, "replay.id");
	char *path = path_with("/v1/replays/%s", id != NULL ? id : "");
	int interrupt = bc_interrupt_open();
	enum bc_exit code = path != NULL ? BC_EXIT_OK : bc_print_no_memory(r->console);

	while (code == BC_EXIT_OK) {
		const json_t *replay = bc_json_path(answer->json, "replay");
		if (!json_is_object(replay)) {
			code = bc_client_complain_answer(client);
		} else if (has_ended(bc_json_path_text(replay, "state"))) {
			code = replay_exit(r->console, replay);
			break;
		} else if (bc_interrupt_wait(interrupt, WAIT_STEP_MS)) {
			bc_print_error(r->console, NULL,
				"no longer waiting; the replay goes on (buscap replay cancel ends "
				"it)");
			break;
		} else {
			bc_answer_free(answer);
			code = bc_client_call(client, "GET", path, NULL, answer);
			if (code != BC_EXIT_OK)
				bc_client_print_error(client, code);
		}
	}
	free(path);
	return code;
}

/* ---- the table */

static const struct command {
	const struct bc_usage *usage;
	const char *method;
	const char *path;      /* "%s": the first operand, percent-encoded, or "current" */
	int least;             /* operands */
	int most;              /* -1: any number */
	const char *complaint; /* of more or fewer operands */
	bool has_body;
	long timeout_ms;                         /* 0: the usual one */
	enum bc_exit (*fill)(struct request *r); /* the operands into the body; may be NULL */
	bool (*print)(struct bc_output *output, const json_t *answer); /* NULL: nothing */
	/* Goes on after the answer; it may replace the answer, and print it even if the code isn't
	 * BC_EXIT_OK. NULL: it doesn't. */
	enum bc_exit (*go_on)(
		const struct request *r, struct bc_client *client, struct bc_answer *answer);
} commands[] = {
	{&record_start_usage, "POST", "/v1/recordings", 0, 0, "start takes options alone", true, 0,
		NULL, bc_answer_print_recording, NULL},
	{&record_stop_usage, "DELETE", "/v1/recordings/current", 0, 0, "stop takes no operands",
		false, SEAL_MS, NULL, bc_answer_print_recording, NULL},
	{&record_list_usage, "GET", "/v1/recordings", 0, 0, "list takes no operands", false, 0,
		NULL, bc_answer_print_recordings, NULL},
	{&record_show_usage, "GET", "/v1/recordings/current", 0, 0, NULL, false, 0, NULL,
		bc_answer_print_recording, NULL},
	{&record_show_usage, "GET", "/v1/recordings", 1, 1, "show takes one ID, or none", false, 0,
		NULL, bc_answer_print_recording, pick_recording},
	{&record_note_usage, "PATCH", "/v1/recordings/current", 1, -1,
		"note wants KEY=VALUE, as program=ls", true, 0, fill_notes,
		bc_answer_print_recording, NULL},
	{&bc_rotate_usage, "POST", "/v1/rotate", 0, 0, "rotate takes no operands", true, SEAL_MS,
		NULL, bc_answer_print_rotated, NULL},
	{&bc_mark_usage, "POST", "/v1/marks", 1, -1, "mark wants a text", true, 0, fill_mark,
		bc_answer_print_mark, NULL},
	{&bc_snapshot_usage, "POST", "/v1/snapshot", 0, 0, "snapshot takes no operands", true,
		SEAL_MS, check_snapshot, bc_answer_print_recording, NULL},
	{&trigger_list_usage, "GET", "/v1/triggers", 0, 0, "list takes no operands", false, 0, NULL,
		bc_answer_print_triggers, NULL},
	{&trigger_add_usage, "POST", "/v1/triggers", 3, -1,
		"add wants NAME ACTION WHEN, as roi mark port=e0", true, 0, fill_trigger,
		bc_answer_print_triggers, NULL},
	{&trigger_remove_usage, "DELETE", "/v1/triggers/%s", 1, 1, "remove wants one NAME", false,
		0, NULL, NULL, NULL},
	{&replay_list_usage, "GET", "/v1/replays", 0, 0, "list takes no operands", false, 0, NULL,
		bc_answer_print_replays, NULL},
	{&replay_cancel_usage, "DELETE", "/v1/replays/%s", 0, 1, "cancel takes one ID, or none",
		false, SEAL_MS, NULL, bc_answer_print_replays, NULL},
	{&bc_replay_usage, "POST", "/v1/replays", 1, 1, "replay wants one file", true, 0,
		fill_replay, bc_answer_print_replays, wait_for_replay},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* ---- running one */

/* The path with an operand in it, for the caller to free; NULL when memory ran out. */
static char *path_with(const char *format, const char *operand)
{
	const char *at = strstr(format, "%s");
	char *encoded = bc_client_encode(operand);
	char *path = NULL;

	if (at == NULL)
		path = strdup(format);
	else if (encoded != NULL &&
		 asprintf(&path, "%.*s%s", (int)(at - format), format, encoded) < 0)
		path = NULL;
	free(encoded);
	return path;
}

static enum bc_exit print_answer(
	const struct request *r, struct bc_client *client, const struct bc_answer *answer)
{
	struct bc_output output;
	bool ok = true;

	if (!r->is_json && r->command->print == NULL)
		return BC_EXIT_OK;
	if (!bc_output_open(&output, r->console))
		return BC_EXIT_FAILED;
	if (r->is_json)
		bc_answer_write_json(&output, answer);
	else
		ok = r->command->print(&output, answer->json);
	enum bc_exit code = bc_output_close(&output, r->console);
	return ok ? code : bc_client_complain_answer(client);
}

static enum bc_exit ask(const struct request *r)
{
	const struct command *command = r->command;
	bool goes_on = command->go_on != NULL &&
		       (command->go_on != wait_for_replay || r->is_waiting);
	struct bc_answer answer = {0};
	struct bc_client *client;
	enum bc_exit code = bc_client_open(&client, r->console, r->socket);
	char *path = path_with(command->path, r->count != 0 ? r->operands[0] : "current");

	if (code == BC_EXIT_OK && path == NULL)
		code = bc_print_no_memory(r->console);
	if (code == BC_EXIT_OK) {
		if (command->timeout_ms != 0)
			bc_client_set_timeout(client, command->timeout_ms);
		code = bc_client_call(
			client, command->method, path, command->has_body ? r->body : NULL, &answer);
		if (code != BC_EXIT_OK)
			bc_client_print_error(client, code);
		else if (goes_on)
			code = command->go_on(r, client, &answer);
		if (code == BC_EXIT_OK ||
			(goes_on && json_is_object(bc_json_path(answer.json, "replay"))))
			code = bc_exit_worse(code, print_answer(r, client, &answer));
	}
	bc_answer_free(&answer);
	bc_client_close(client);
	free(path);
	return code;
}

/* Returns false when the command is over, *code then being how. */
static bool read_options(struct request *r, int argc, char **argv, enum bc_exit *code)
{
	const struct bc_usage_option *options = r->command->usage->options;
	struct bc_options o;
	int letter;

	bc_options_start(&o, r->console, r->command->usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		const struct bc_usage_option *row = options;
		*code = BC_EXIT_OK;
		while (row->letter != letter && row->help != NULL)
			row++;
		if (letter == BC_CLIENT_OPT_SOCKET)
			r->socket = optarg;
		else if (letter == BC_CLIENT_OPT_JSON)
			r->is_json = true;
		else if (letter == OPTION_WAIT)
			r->is_waiting = true;
		else if (row->help == NULL)
			*code = o.exit;
		else
			*code = adders[letter - OPTION_LABEL](r, row->name, optarg);
		if (row->help == NULL || *code != BC_EXIT_OK)
			return false;
	}
	r->operands = argv + optind;
	r->count = argc - optind;
	return true;
}

static enum bc_exit run(
	const struct bc_console *console, const struct command *command, int argc, char **argv)
{
	struct request r = {.console = console, .command = command, .body = json_object()};
	enum bc_exit code = BC_EXIT_FAILED;

	if (r.body == NULL)
		return bc_print_no_memory(console);
	if (read_options(&r, argc, argv, &code)) {
		/* The next row may be of the same command with more operands. */
		while (r.count > r.command->most && r.command->most >= 0 &&
			r.command + 1 < commands + COMMANDS && r.command[1].usage == command->usage)
			r.command++;
		if (r.count < r.command->least ||
			(r.command->most >= 0 && r.count > r.command->most))
			code = bc_print_usage_error(console, r.command->complaint);
		else
			code = r.command->fill != NULL ? r.command->fill(&r) : BC_EXIT_OK;
		if (code == BC_EXIT_OK)
			code = ask(&r);
	}
	json_decref(r.body);
	return code;
}

/* A command that only has verbs was given none of them. */
static int complain_verb(
	const struct bc_console *console, const struct bc_usage *usage, const char *verb)
{
	char verbs[128] = "";

	if (verb != NULL && (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0))
		return bc_print_help(console, usage);
	for (size_t i = 0; usage->verbs[i] != NULL; i++) {
		size_t used = strlen(verbs);
		snprintf(verbs + used, sizeof(verbs) - used, "%s%s",
			i == 0                        ? ""
			: usage->verbs[i + 1] == NULL ? " or "
						      : ", ",
			strchr(usage->verbs[i]->name, ' ') + 1);
	}
	bc_print_error(console, NULL, "%s is wanted%s%s; see buscap %s --help", verbs,
		verb != NULL ? ", not " : "", verb != NULL ? verb : "", console->command);
	return BC_EXIT_USAGE;
}

int bc_cmd_daemon(const struct bc_console *console, int argc, char **argv)
{
	char name[64];

	snprintf(name, sizeof(name), "%s %s", argv[0], argc > 1 ? argv[1] : "");
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i].usage->name, name) == 0)
			return run(console, &commands[i], argc - 1, argv + 1);
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i].usage->name, argv[0]) == 0)
			return run(console, &commands[i], argc, argv);
	return complain_verb(console,
		strcmp(argv[0], "record") == 0 ? &bc_record_usage : &bc_trigger_usage,
		argc > 1 ? argv[1] : NULL);
}
