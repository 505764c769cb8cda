/* Commands that are one request to the daemon: record, mark, rotate, snapshot, trigger.
 *
 * commands[] has a row for each: the request's method and path, how many operands it takes, what
 * adds them to the body, and what prints the response. Options set members of the body (setters[]).
 * Values are passed on as they are, because the daemon checks them, and its error names the member;
 * only what could not be put into the body is refused here. */
#include "cli/term/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/io/client.h"
#include "cli/live/record_delete.h"
#include "cli/live/response_text.h"
#include "cli/term/json_path.h"
#include "cli/term/options.h"
#include "formats/base/json.h"
#include "formats/base/quantity.h"
#include "formats/base/usage.h"

/* Timeout of requests whose response waits until files are sealed. */
#define SEAL_MS 600000

/* The largest page. */
#define ALL_RECORDINGS "/v1/recordings?limit=1000"

/* ---- options and help texts */

/* These set members of the body; see setters[]. */
enum {
	OPTION_LABEL = BC_CLIENT_OPT_MORE,
	OPTION_PRE,
	OPTION_POST,
	OPTION_TEXT,
	OPTION_HOLDOFF,
	OPTION_NOTE,
	OPTION_LIMIT,
	OPTION_TRIGGER,
	OPTION_UNTIL_STOPPED,
};

/* Rows used in several tables. */
/* clang-format off */
#define ROWS_OF_ALL \
	{'j', "json", NULL, NULL, "print the daemon's response as JSON"}, \
	BC_CLIENT_OPTION_SOCKET
#define ROW_LABEL \
	{OPTION_LABEL, "label", "TEXT", "text", \
		"add this to the file names: letters, digits, '.', '_', '-'"}
#define ROW_NOTE \
	{OPTION_NOTE, "note", "KEY=VALUE", "text", "store metadata in the files; can be repeated"}
/* clang-format on */

static const struct bc_usage_option plain_options[] = {
	ROWS_OF_ALL,
	{0},
};

/* ---- record */

static const struct bc_usage_option record_start_options[] = {
	ROW_LABEL,
	ROW_NOTE,
	{OPTION_LIMIT, "limit", "RULE", "choice:duration:|records:|filesize:",
		"stop at duration:10s, records:1000000 or filesize:64M; can "
		"be repeated, the first limit reached applies"},
	{OPTION_PRE, "pre", "LENGTH", "length",
		"include this much from the flight recorder: 5s, 16M, all"},
	{OPTION_TRIGGER, "trigger", "NAME:ACTION:WHEN", "text",
		"arm a trigger for this recording only; ACTION is mark or stop, WHEN as in "
		"\"buscap trigger --help\"; can be repeated"},
	ROWS_OF_ALL,
	{0},
};

static const struct bc_usage record_start_usage = {
	.name = "record start",
	.summary = "start a recording in the running daemon",
	.text = "Starts a recording in the running daemon.",
	.options = record_start_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap record start --label boot --note program=ls --limit duration:10s",
};

static const struct bc_usage record_stop_usage = {
	.name = "record stop",
	.summary = "stop the current recording and wait until it is sealed",
	.text = "Stops the current recording and waits until it is sealed.",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap record stop",
};

static const struct bc_usage record_list_usage = {
	.name = "record list",
	.summary = "list the recordings in the daemon's directory",
	.text = "Lists the recordings in the daemon's directory, with their losses and sizes, and "
		"says when a rule deletes the oldest. buscap info also has their durations and "
		"hosts.",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap record list",
};

static const struct bc_usage record_show_usage = {
	.name = "record show",
	.operands = "[ID]",
	.kind = "id",
	.summary = "show a recording, by default the current one",
	.text = "Shows a recording, by default the current one.",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap record show",
};

static const struct bc_usage record_note_usage = {
	.name = "record note",
	.operands = "KEY=VALUE...",
	.kind = "text",
	.summary = "add metadata to the current recording",
	.text = "Adds metadata to the current recording.",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap record note operator=night-shift run=7",
};

const struct bc_usage bc_record_usage = {
	.name = "record",
	.operands = "VERB",
	.kind = "command",
	.summary = "start, stop, list, show, annotate and delete recordings",
	.text = "Starts a recording in the running daemon, stops the current one and waits until "
		"it is sealed, lists the recordings in the daemon's directory, shows one of them "
		"(by default the current one), adds metadata to the current one, or deletes some.",
	.verbs = (const struct bc_usage *const[]){&record_start_usage, &record_stop_usage,
		&record_list_usage, &record_show_usage, &record_note_usage, &bc_record_delete_usage,
		NULL},
	.exits = BC_CLIENT_EXITS,
	.example = "buscap record start --label boot --note program=ls --limit duration:10s",
};

/* ---- mark, rotate, snapshot */

const struct bc_usage bc_mark_usage = {
	.name = "mark",
	.operands = "TEXT...",
	.kind = "text",
	.summary = "set a mark in the recording",
	.text = "Sets a mark at the current position of the recording, or of the flight recorder. "
		"marks, info and dump show it. Words are joined with spaces.",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap mark start of the second run",
};

const struct bc_usage bc_rotate_usage = {
	.name = "rotate",
	.summary = "start a new segment",
	.text = "Starts a new segment of the current recording. The previous one is sealed soon "
		"after.",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap rotate --json",
};

static const struct bc_usage_option snapshot_options[] = {
	{OPTION_PRE, "pre", "LENGTH", "length", "only the last part: 5s, 16M (all)"},
	{OPTION_POST, "post", "LENGTH", "length", "continue recording for 2s, 16M"},
	{OPTION_UNTIL_STOPPED, "until-stopped", NULL, NULL, "continue recording until stopped"},
	ROW_LABEL,
	ROW_NOTE,
	ROWS_OF_ALL,
	{0},
};

const struct bc_usage bc_snapshot_usage = {
	.name = "snapshot",
	.summary = "write the flight recorder's contents to a recording",
	.text = "Writes the contents of the flight recorder (record = flight in the daemon's "
		"configuration) to a recording and removes them from memory. Returns when the "
		"recording is sealed; with --post or --until-stopped, when it has started.",
	.options = snapshot_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap snapshot --pre 5s --post 1s --label glitch",
};

/* ---- triggers */

static const struct bc_usage_option trigger_add_options[] = {
	{OPTION_PRE, "pre", "LENGTH", "length",
		"start, snapshot: include this much from the flight recorder: 5s, 16M, all "
		"(start: none, snapshot: all)"},
	{OPTION_POST, "post", "LENGTH", "length",
		"start, snapshot, stop: stop this much later: 2s, 16M"},
	{OPTION_TEXT, "text", "TEXT", "text", "text stored at that position (NAME)"},
	{OPTION_HOLDOFF, "holdoff", "TIME", "time", "minimum time before it can fire again: 100ms"},
	ROWS_OF_ALL,
	{0},
};

#define ADD_EXAMPLE "buscap trigger add boot start port=e0 --pre 1s"
#define ADD_TEXT                                                                               \
	"ACTION is start, stop or toggle (a recording), snapshot (of the flight recorder) or " \
	"mark. WHEN is one of\n"                                                               \
	"  conditions that a record must all meet:\n"                                          \
	"    addr=1000-1fff   hexadecimal address or range\n"                                  \
	"    type=read,write  of memory; also fetch, ioread, iowrite, 0xf2 ...\n"              \
	"    proc=0,2-3       processors\n"                                                    \
	"    port=e0-e3       read or write of an I/O port, instead of addr\n"                 \
	"    region=vga       memory or ports with this name, instead of addr\n"               \
	"  board              the board's trigger flag\n"                                      \
	"  gap                lost samples\n"                                                  \
	"  idle TIME          no bus activity for this long: idle 5s"

static const struct bc_usage trigger_list_usage = {
	.name = "trigger list",
	.summary = "list the triggers that are armed in the running daemon",
	.text = "Lists the triggers that are armed in the running daemon.",
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
	.kind = "trigger",
	.summary = "disarm a trigger in the running daemon",
	.text = "Disarms a trigger in the running daemon.",
	.options = plain_options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap trigger remove boot",
};

const struct bc_usage bc_trigger_usage = {
	.name = "trigger",
	.operands = "VERB",
	.kind = "command",
	.summary = "list, add and remove triggers",
	.text = "Lists the triggers that are armed in the running daemon, or arms or disarms "
		"one.\n\n" ADD_TEXT,
	.verbs = (const struct bc_usage *const[]){&trigger_list_usage, &trigger_add_usage,
		&trigger_remove_usage, NULL},
	.exits = BC_CLIENT_EXITS,
	.example = ADD_EXAMPLE,
};

/* ---- requests */

struct request {
	const struct bc_console *console;
	const struct command *command;
	const char *socket;
	bool is_json;
	json_t *body; /* an object */
	char **operands;
	int count;
};

/* Sets a member and releases `value`. */
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
	bc_print_error(r->console, NULL, "--%s given twice", name);
	return BC_EXIT_USAGE;
}

/* Returns a member of the body, which create() makes if need be; NULL if out of memory. */
static json_t *body_member(struct request *r, const char *name, json_t *(*create)(void))
{
	json_t *member = json_object_get(r->body, name);

	if (member == NULL && json_object_set_new(r->body, name, create()) == 0)
		member = json_object_get(r->body, name);
	return member;
}

/* `option` is NULL for an operand. */
static enum bc_exit add_note(struct request *r, const char *option, const char *value)
{
	const char *before = option != NULL ? "--note " : "";
	const char *equals = strchr(value, '=');
	json_t *metadata = body_member(r, "metadata", json_object);
	json_t *key = json_stringn(value, equals != NULL ? (size_t)(equals - value) : 0);
	enum bc_exit code = BC_EXIT_USAGE;

	if (metadata == NULL)
		code = bc_print_no_memory(r->console);
	else if (equals == NULL || equals == value || key == NULL)
		bc_print_error(
			r->console, NULL, "%s%s: not KEY=VALUE; try program=ls", before, value);
	else if (json_object_get(metadata, json_string_value(key)) != NULL)
		bc_print_error(r->console, NULL, "%s%s: %s given twice", before, value,
			json_string_value(key));
	else
		code = set_member(r, metadata, json_string_value(key), bc_json_text(equals + 1));
	json_decref(key);
	return code;
}

/* --limit duration:10s */
static enum bc_exit add_limit(struct request *r, const char *name, const char *value)
{
	static const char *const rules[] = {"duration", "records", "filesize"};
	static const enum bc_quantity quantities[] = {
		BC_QUANTITY_TIME, BC_QUANTITY_COUNT, BC_QUANTITY_SIZE};
	json_t *limits = body_member(r, "limits", json_object);
	size_t bytes = strcspn(value, ":");
	const char *amount = value[bytes] == ':' ? value + bytes + 1 : "";
	const char *rule = NULL;
	enum bc_quantity quantity = BC_QUANTITY_COUNT;

	(void)name;
	if (limits == NULL)
		return bc_print_no_memory(r->console);
	for (unsigned i = 0; i < 3; i++)
		if (strlen(rules[i]) == bytes && memcmp(value, rules[i], bytes) == 0) {
			rule = rules[i];
			quantity = quantities[i];
		}
	if (rule == NULL || *amount == '\0') {
		bc_print_error(r->console, NULL,
			"--limit %s: not a limit; try duration:10s, records:1000000 or "
			"filesize:64M",
			value);
		return BC_EXIT_USAGE;
	}
	if (json_object_get(limits, rule) != NULL) {
		bc_print_error(r->console, NULL, "--limit %s: %s given twice", value, rule);
		return BC_EXIT_USAGE;
	}
	char err[BC_QUANTITY_ERROR_MAX];
	uint64_t n;
	bool is_good = bc_quantity_read(&n, quantity, amount, err, sizeof(err)) &&
		       (n != 0 || bc_fail(err, sizeof(err), "must be above 0"));
	if (!is_good) {
		bc_print_error(r->console, NULL, "--limit %s: %s", value, err);
		return BC_EXIT_USAGE;
	}
	return set_member(r, limits, rule,
		quantity == BC_QUANTITY_COUNT ? json_integer((json_int_t)n) : bc_json_text(amount));
}

/* --trigger NAME:ACTION:WHEN */
static enum bc_exit add_trigger(struct request *r, const char *option, const char *value)
{
	json_t *triggers = body_member(r, "triggers", json_array);
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

static enum bc_exit add_until_stopped(struct request *r, const char *name, const char *value)
{
	(void)name;
	(void)value;
	return set_member(r, r->body, "until_stopped", json_true());
}

static enum bc_exit (*const setters[])(struct request *r, const char *name, const char *value) = {
	[OPTION_LABEL - OPTION_LABEL] = add_text,
	[OPTION_PRE - OPTION_LABEL] = add_text,
	[OPTION_POST - OPTION_LABEL] = add_text,
	[OPTION_TEXT - OPTION_LABEL] = add_text,
	[OPTION_HOLDOFF - OPTION_LABEL] = add_text,
	[OPTION_NOTE - OPTION_LABEL] = add_note,
	[OPTION_LIMIT - OPTION_LABEL] = add_limit,
	[OPTION_TRIGGER - OPTION_LABEL] = add_trigger,
	[OPTION_UNTIL_STOPPED - OPTION_LABEL] = add_until_stopped,
};

/* ---- operands that go into the body */

/* Sets a member to the words, joined with spaces. */
static enum bc_exit add_words(struct request *r, const char *name, char **words, int count)
{
	struct bc_byte_buffer text = {.max = SIZE_MAX};

	for (int i = 0; i < count; i++) {
		bc_byte_buffer_add(&text, " ", i != 0);
		bc_byte_buffer_add(&text, words[i], strlen(words[i]));
	}
	enum bc_exit code = text.is_out_of_memory
				    ? bc_print_no_memory(r->console)
				    : set_member(r, r->body, name, bc_json_text(text.bytes));
	bc_byte_buffer_free(&text);
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
		code = add_note(r, NULL, r->operands[i]);
	return code;
}

static enum bc_exit fill_trigger(struct request *r)
{
	enum bc_exit code = add_words(r, "name", r->operands, 1);
	if (code == BC_EXIT_OK)
		code = add_words(r, "action", r->operands + 1, 1);
	return code == BC_EXIT_OK ? add_words(r, "when", r->operands + 2, r->count - 2) : code;
}

/* ---- steps after the response */

/* Replaces the list with the recording named by the operand. */
static enum bc_exit select_recording(
	const struct request *r, struct bc_client *client, struct bc_response *response)
{
	const json_t *recordings = bc_json_path(response->json, "recordings");
	uint64_t omitted = bc_json_path_count(response->json, "omitted");
	const char *id = r->operands[0];
	json_t *recording;
	size_t i;

	if (!json_is_array(recordings))
		return bc_client_print_bad_response(client);
	json_array_foreach(recordings, i, recording)
	{
		const char *its = bc_json_path_text(recording, "id");
		if (its == NULL || strcmp(its, id) != 0)
			continue;
		json_t *picked = json_pack("{s:O}", "recording", recording);
		bc_response_free(response);
		response->json = picked;
		response->text = picked != NULL ? bc_json_print(picked) : NULL;
		if (response->text == NULL)
			return bc_print_no_memory(r->console);
		response->bytes = strlen(response->text);
		return BC_EXIT_OK;
	}
	if (omitted != 0)
		bc_print_error(r->console, NULL,
			"recording %s: not found; %s older recording%s not listed, see buscap info "
			"%s",
			id, BC_GROUPED(omitted), omitted == 1 ? " is" : "s are", id);
	else
		bc_print_error(
			r->console, NULL, "recording %s: not found; see buscap record list", id);
	return BC_EXIT_FAILED;
}

/* Adds the state of the disk to the list, for its text. */
static enum bc_exit add_disk(
	const struct request *r, struct bc_client *client, struct bc_response *response)
{
	struct bc_response status = {0};
	json_t *disk = NULL;

	if (!r->is_json && bc_client_call(client, "GET", "/v1/status", NULL, &status) == BC_EXIT_OK)
		disk = json_object_get(status.json, "disk");
	if (disk != NULL)
		(void)json_object_set(response->json, "disk", disk);
	bc_response_free(&status);
	return BC_EXIT_OK;
}

/* ---- the table */

static const struct command {
	const struct bc_usage *usage;
	const char *method;      /* NULL: record delete, which sends none */
	const char *path;        /* %s: the first operand, percent-encoded */
	int min;                 /* operands */
	int max;                 /* -1: any number */
	const char *usage_error; /* for a wrong number of operands; NULL: there may be none */
	long timeout_ms;         /* 0: default */
	enum bc_exit (*fill)(struct request *r); /* adds the operands to the body; or NULL */
	bool (*print)(struct bc_output *output, const json_t *response); /* NULL: no output */
	/* Called after success; may replace the response. NULL: none. */
	enum bc_exit (*follow_up)(
		const struct request *r, struct bc_client *client, struct bc_response *response);
} commands[] = {
	{&record_start_usage, "POST", "/v1/recordings", 0, 0, NULL, 0, NULL,
		bc_response_print_recording, NULL},
	{&record_stop_usage, "DELETE", "/v1/recordings/current", 0, 0, NULL, SEAL_MS, NULL,
		bc_response_print_recording, NULL},
	{&record_list_usage, "GET", ALL_RECORDINGS, 0, 0, NULL, 0, NULL,
		bc_response_print_recordings, add_disk},
	{&record_show_usage, "GET", "/v1/recordings/current", 0, 0, NULL, 0, NULL,
		bc_response_print_recording, NULL},
	{&record_show_usage, "GET", ALL_RECORDINGS, 1, 1, "takes one ID, or none", 0, NULL,
		bc_response_print_recording, select_recording},
	{&record_note_usage, "PATCH", "/v1/recordings/current", 1, -1,
		"no note given, such as program=ls", 0, fill_notes, bc_response_print_recording,
		NULL},
	{.usage = &bc_record_delete_usage},
	{&bc_rotate_usage, "POST", "/v1/rotate", 0, 0, NULL, SEAL_MS, NULL,
		bc_response_print_rotated, NULL},
	{&bc_mark_usage, "POST", "/v1/marks", 1, -1, "no text given", 0, fill_mark,
		bc_response_print_mark, NULL},
	{&bc_snapshot_usage, "POST", "/v1/snapshot", 0, 0, NULL, SEAL_MS, NULL,
		bc_response_print_recording, NULL},
	{&trigger_list_usage, "GET", "/v1/triggers", 0, 0, NULL, 0, NULL,
		bc_response_print_triggers, NULL},
	{&trigger_add_usage, "POST", "/v1/triggers", 3, -1,
		"needs NAME ACTION WHEN, such as roi mark port=e0", 0, fill_trigger,
		bc_response_print_triggers, NULL},
	{&trigger_remove_usage, "DELETE", "/v1/triggers/%s", 1, 1, "takes one NAME", 0, NULL, NULL,
		NULL},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* ---- running a command */

/* Replaces %s in the path. Returns allocated text, or NULL if out of memory. */
static char *format_path(const char *format, const char *operand)
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
	const struct request *r, struct bc_client *client, const struct bc_response *response)
{
	struct bc_output output;
	bool ok = true;

	if (!r->is_json && r->command->print == NULL)
		return BC_EXIT_OK;
	if (!bc_output_open(&output, r->console))
		return BC_EXIT_FAILED;
	if (r->is_json)
		bc_response_write_json(&output, response);
	else
		ok = r->command->print(&output, response->json);
	enum bc_exit code = bc_output_close(&output, r->console);
	return ok ? code : bc_client_print_bad_response(client);
}

/* Prints why the daemon refused the request: "pre: WHY". Names what an option has set as the user
 * gave it: "--pre 1x: WHY", "--trigger x:bark:gap: action: WHY". */
static void print_refusal(const struct request *r, const struct bc_client *client)
{
	const char *err = bc_client_error(client);
	const char *why = strchr(err, ':');
	char option[16];
	unsigned i;
	int used = 0;

	if (sscanf(err, "triggers[%u].%n", &i, &used) == 1 && used != 0) {
		const json_t *trigger = json_array_get(json_object_get(r->body, "triggers"), i);
		bc_print_error(r->console, NULL, "--trigger %s:%s:%s: %s",
			json_string_value(json_object_get(trigger, "name")),
			json_string_value(json_object_get(trigger, "action")),
			json_string_value(json_object_get(trigger, "when")), err + used);
		return;
	}
	snprintf(option, sizeof(option), "%.*s", why != NULL ? (int)(why - err) : 0, err);
	bool is_option = false;
	for (const struct bc_usage_option *o = r->command->usage->options; o->help != NULL; o++)
		is_option |= o->name != NULL && strcmp(o->name, option) == 0;
	const char *value = json_string_value(json_object_get(r->body, option));
	if (is_option && value != NULL)
		bc_print_error(r->console, NULL, "--%s %s%s", option, value, why);
	else
		bc_print_error(r->console, NULL, "%s", err);
}

/* Prints an error if there is one. */
static enum bc_exit call_daemon(const struct request *r, struct bc_client *client, const char *path,
	struct bc_response *response)
{
	const struct command *command = r->command;

	if (command->timeout_ms != 0)
		bc_client_set_timeout(client, command->timeout_ms);
	bool has_body = strcmp(command->method, "POST") == 0 ||
			strcmp(command->method, "PATCH") == 0;
	enum bc_exit code = bc_client_call(
		client, command->method, path, has_body ? r->body : NULL, response);
	if (code == BC_EXIT_USAGE)
		print_refusal(r, client);
	else if (code != BC_EXIT_OK)
		bc_client_print_error(client, code);
	return code;
}

static enum bc_exit send_request(const struct request *r)
{
	const struct command *command = r->command;
	struct bc_response response = {0};
	struct bc_client *client;
	enum bc_exit code = bc_client_open(&client, r->console, r->socket);
	char *path = format_path(command->path, r->count != 0 ? r->operands[0] : "");

	if (code == BC_EXIT_OK && path == NULL)
		code = bc_print_no_memory(r->console);
	if (code == BC_EXIT_OK) {
		code = call_daemon(r, client, path, &response);
		if (code == BC_EXIT_OK && command->follow_up != NULL)
			code = command->follow_up(r, client, &response);
		if (code == BC_EXIT_OK)
			code = print_answer(r, client, &response);
	}
	bc_response_free(&response);
	bc_client_close(client);
	free(path);
	return code;
}

/* If the command is finished, sets *code and returns false. */
static bool parse_command_options(struct request *r, int argc, char **argv, enum bc_exit *code)
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
		else if (letter == 'j')
			r->is_json = true;
		else if (row->help == NULL)
			*code = o.exit;
		else
			*code = setters[letter - OPTION_LABEL](r, row->name, optarg);
		if (row->help == NULL || *code != BC_EXIT_OK)
			return false;
	}
	r->operands = argv + optind;
	r->count = argc - optind;
	return true;
}

static enum bc_exit run_command(
	const struct bc_console *console, const struct command *command, int argc, char **argv)
{
	struct bc_console named = *console;
	struct request r = {.console = &named, .command = command};
	enum bc_exit code = BC_EXIT_FAILED;

	named.command = command->usage->name; /* with its verb */
	if (command->method == NULL)
		return bc_record_delete(&named, argc, argv);
	r.body = json_object();
	if (r.body == NULL)
		return bc_print_no_memory(console);
	if (parse_command_options(&r, argc, argv, &code)) {
		/* The next row can be the same command with more operands. */
		while (r.count > r.command->max && r.command->max >= 0 &&
			r.command + 1 < commands + COMMANDS && r.command[1].usage == command->usage)
			r.command++;
		if (r.count < r.command->min || (r.command->max >= 0 && r.count > r.command->max))
			code = bc_print_usage_error(&named, r.command->usage_error != NULL
								    ? r.command->usage_error
								    : BC_NO_OPERANDS);
		else
			code = r.command->fill != NULL ? r.command->fill(&r) : BC_EXIT_OK;
		if (code == BC_EXIT_OK)
			code = send_request(&r);
	}
	json_decref(r.body);
	return code;
}

/* Handles a missing or unknown verb of a command that requires one. */
static enum bc_exit print_verb_error(
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
	if (verb != NULL)
		bc_print_error(console, NULL, "%s: unknown verb; use %s", verb, verbs);
	else
		bc_print_error(console, NULL, "no verb given; use %s", verbs);
	return BC_EXIT_USAGE;
}

/* Returns the command that argv[0] and the verb argv[at] name, or NULL. The words between them must
 * be options of that command. */
static const struct command *find_verb(int at, char **argv)
{
	char name[64];

	snprintf(name, sizeof(name), "%s %s", argv[0], argv[at]);
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i].usage->name, name) == 0)
			return bc_usage_are_options(commands[i].usage, at, argv) ? &commands[i]
										 : NULL;
	return NULL;
}

enum bc_exit bc_cmd_daemon(const struct bc_console *console, int argc, char **argv)
{
	for (int at = 1; at < argc; at++) {
		const struct command *command = find_verb(at, argv);
		char *verb = argv[at];
		if (command == NULL)
			continue;
		memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof(*argv));
		argv[1] = verb;
		return run_command(console, command, argc - 1, argv + 1);
	}
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i].usage->name, argv[0]) == 0)
			return run_command(console, &commands[i], argc, argv);
	return print_verb_error(console,
		strcmp(argv[0], "record") == 0 ? &bc_record_usage : &bc_trigger_usage,
		argc > 1 ? argv[1] : NULL);
}
