#include "cli/replay.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ask_options.h"
#include "cli/interrupt.h"
#include "cli/replay_text.h"
#include "formats/format.h"
#include "formats/json.h"

#define WAIT_STEP_MS 200

enum { OPTION_SPEED = BC_ASK_OWN, OPTION_FORMAT, OPTION_CLOCK, OPTION_WAIT };

static const struct bc_usage_option options[] = {
	{OPTION_SPEED, "speed", "S", "choice:max|realtime",
		"max (as fast as it goes), realtime, or so many times that: 0.5"},
	{OPTION_FORMAT, "format", "FMT", "format-read",
		"the file's format, where it can't be told by content: raw6, bcp1, byu..."},
	{OPTION_CLOCK, "clock-hz", "N", "number", "its clock, where it doesn't tell: 66M"},
	BC_ASK_OPTION_LABEL,
	BC_ASK_OPTION_NOTE,
	BC_ASK_OPTION_LIMIT,
	BC_ASK_OPTION_TRIGGER,
	{OPTION_WAIT, "wait", NULL, NULL,
		"return when it has ended; Ctrl-C ends the waiting, not the replay"},
	BC_ASK_OPTIONS,
	{0},
};

static const struct bc_usage list_usage = {
	.name = "replay list",
	.summary = "list the replays of this run of the daemon",
	.options = bc_ask_options,
	.exits = BC_ASK_EXITS,
	.example = "buscap replay list",
};

static const struct bc_usage cancel_usage = {
	.name = "replay cancel",
	.operands = "[ID]",
	.kind = "text",
	.summary = "cancel the replay that runs, and wait until what was read of it is sealed",
	.options = bc_ask_options,
	.exits = BC_ASK_EXITS,
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
	.options = options,
	.verbs = (const struct bc_usage *const[]){&list_usage, &cancel_usage, NULL},
	.exits = "0 ok, 1 failed or refused (--wait: or cancelled), 2 wrong usage, 3 (--wait) the "
		 "file is damaged: what is good was recorded, 6 the daemon can't be reached.",
	.example = "buscap replay --speed realtime --wait bus.bcp1",
};

struct wanted {
	struct bc_ask_options ask;
	bool is_waiting;
	cJSON *body;
};

static bool read_speed(const struct bc_console *console, cJSON *body)
{
	char *end;
	double speed = strtod(optarg, &end);

	if (strcmp(optarg, "max") == 0 || strcmp(optarg, "realtime") == 0)
		return bc_ask_text(console, body, "--speed", "speed", optarg);
	if (end == optarg || *end != '\0' || !isfinite(speed) || !(speed > 0)) {
		bc_complain(console, NULL,
			"--speed %s: max, realtime or a number above 0 is wanted", optarg);
		return false;
	}
	return bc_ask_is_first(console, body, "--speed", "speed") &&
	       cJSON_AddNumberToObject(body, "speed", speed) != NULL;
}

static bool read_clock(const struct bc_console *console, cJSON *body)
{
	uint64_t hz;

	return bc_option_count(console, "--clock-hz", &hz) &&
	       bc_ask_is_first(console, body, "--clock-hz", "clock_hz") &&
	       bc_json_add_u64(body, "clock_hz", hz);
}

static bool read_format(const struct bc_console *console, cJSON *body)
{
	if (bc_format_by_name(optarg) != BC_FORMAT_UNKNOWN)
		return bc_ask_text(console, body, "--format", "format", optarg);
	bc_complain(console, NULL, "--format %s: no such format; see buscap formats", optarg);
	return false;
}

static bool read_option(const struct bc_console *console, int letter, struct wanted *wanted)
{
	switch (letter) {
	case OPTION_SPEED:
		return read_speed(console, wanted->body);
	case OPTION_FORMAT:
		return read_format(console, wanted->body);
	case OPTION_CLOCK:
		return read_clock(console, wanted->body);
	case OPTION_WAIT:
		wanted->is_waiting = true;
		return true;
	default:
		return bc_ask_body_option(console, letter, wanted->body, &wanted->ask);
	}
}

/* The daemon has a working directory of its own. */
static enum bc_exit add_path(const struct bc_console *console, cJSON *body, const char *path)
{
	char *absolute;

	if (strcmp(path, "-") == 0)
		return bc_complain_usage(console,
			"the daemon reads the file itself, and can't read this program's "
			"standard input: name a file");
	absolute = realpath(path, NULL);
	if (absolute == NULL) {
		bc_complain(console, path, "%s", strerror(errno));
		return BC_EXIT_FAILED;
	}
	bool ok = bc_json_add_text(body, "path", absolute);
	free(absolute);
	if (ok)
		return BC_EXIT_OK;
	return bc_complain_memory(console);
}

/* How a replay that has ended ended. */
static enum bc_exit judge(const struct bc_console *console, const cJSON *replay, const char *state)
{
	char error[512];

	if (strcmp(state, "done") == 0)
		return bc_json_get_u64(replay, "damages") != 0 ? BC_EXIT_DAMAGED : BC_EXIT_OK;
	bc_replay_error(replay, error, sizeof(error));
	if (strcmp(state, "cancelled") == 0)
		bc_complain(console, NULL, "the replay was cancelled");
	else
		bc_complain(
			console, NULL, "the replay failed%s%s", *error != '\0' ? ": " : "", error);
	return BC_EXIT_FAILED;
}

static bool has_ended(const char *state)
{
	return strcmp(state, "done") == 0 || strcmp(state, "cancelled") == 0 ||
	       strcmp(state, "failed") == 0;
}

/* Asks after it until it has ended. `answer` is the one that began it, and then the last. */
static enum bc_exit wait_for_end(const struct bc_console *console, struct bc_client *client,
	struct bc_answer *answer, const char *path)
{
	int interrupt = bc_interrupt_open();

	for (;;) {
		char state[32];
		const cJSON *replay = cJSON_GetObjectItemCaseSensitive(answer->json, "replay");
		if (!cJSON_IsObject(replay))
			return bc_ask_complain_answer(console);
		bc_json_get_text(replay, "state", state, sizeof(state));
		if (has_ended(state))
			return judge(console, replay, state);
		if (bc_interrupt_wait(interrupt, WAIT_STEP_MS)) {
			bc_complain(console, NULL,
				"no longer waiting; the replay goes on (buscap replay cancel ends "
				"it)");
			return BC_EXIT_OK;
		}
		bc_answer_free(answer);
		enum bc_exit code = bc_client_call(client, "GET", path, NULL, answer);
		if (code != BC_EXIT_OK)
			return bc_client_complain(client, console, code);
	}
}

static char *path_of(const char *id)
{
	char *path = NULL;
	char *encoded = bc_ask_encode(id);

	if (encoded != NULL && asprintf(&path, "/v1/replays/%s", encoded) < 0)
		path = NULL;
	free(encoded);
	return path;
}

static enum bc_exit start_and_wait(
	const struct bc_console *console, const struct wanted *wanted, struct bc_answer *answer)
{
	struct bc_client *client;
	char id[256];
	char *path = NULL;
	enum bc_exit code = bc_ask_open(&client, console, wanted->ask.socket);

	if (code != BC_EXIT_OK)
		return code;
	code = bc_client_call(client, "POST", "/v1/replays", wanted->body, answer);
	if (code != BC_EXIT_OK) {
		bc_client_complain(client, console, code);
	} else if (wanted->is_waiting) {
		bc_json_get_text(cJSON_GetObjectItemCaseSensitive(answer->json, "replay"), "id", id,
			sizeof(id));
		path = path_of(id);
		if (path != NULL) {
			code = wait_for_end(console, client, answer, path);
		} else {
			code = bc_complain_memory(console);
		}
	}
	free(path);
	bc_client_close(client);
	return code;
}

static enum bc_exit run(
	const struct bc_console *console, int argc, char **argv, struct wanted *wanted)
{
	struct bc_options o;
	struct bc_answer answer = {0};
	int letter;

	bc_options_begin(&o, console, &bc_replay_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1)
		if (!read_option(console, letter, wanted))
			return o.exit;
	if (argc - optind != 1)
		return bc_complain_usage(console, "one file is wanted");
	enum bc_exit code = add_path(console, wanted->body, argv[optind]);
	if (code != BC_EXIT_OK)
		return code;
	code = start_and_wait(console, wanted, &answer);
	if (answer.status >= 200 && answer.status <= 299)
		code = bc_exit_worse(
			code, bc_replay_print_answer(console, &answer, wanted->ask.is_json));
	bc_answer_free(&answer);
	return code;
}

static int list(const struct bc_console *console, int argc, char **argv)
{
	struct bc_ask_options ask;
	struct bc_answer answer;
	enum bc_exit code;

	if (!bc_ask_options_read(&ask, console, argc, argv, &list_usage, &code))
		return code;
	if (optind < argc)
		return bc_complain_usage(console, "list takes no operands");
	code = bc_ask(console, ask.socket, "GET", "/v1/replays", NULL, 0, &answer);
	if (code == BC_EXIT_OK)
		code = bc_replay_print_answer(console, &answer, ask.is_json);
	bc_answer_free(&answer);
	return code;
}

static int cancel(const struct bc_console *console, int argc, char **argv)
{
	struct bc_ask_options ask;
	struct bc_answer answer;
	enum bc_exit code;

	if (!bc_ask_options_read(&ask, console, argc, argv, &cancel_usage, &code))
		return code;
	if (argc - optind > 1)
		return bc_complain_usage(console, "cancel takes one ID, or none");
	char *path = path_of(optind < argc ? argv[optind] : "current");
	if (path == NULL) {
		return bc_complain_memory(console);
	}
	code = bc_ask(console, ask.socket, "DELETE", path, NULL, BC_ASK_SEAL_MS, &answer);
	if (code == BC_EXIT_OK)
		code = bc_replay_print_answer(console, &answer, ask.is_json);
	bc_answer_free(&answer);
	free(path);
	return code;
}

int bc_cmd_replay(const struct bc_console *console, int argc, char **argv)
{
	struct wanted wanted = {0};
	enum bc_exit code = BC_EXIT_FAILED;

	if (argc > 1 && strcmp(argv[1], "list") == 0)
		return list(console, argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "cancel") == 0)
		return cancel(console, argc - 1, argv + 1);
	wanted.body = cJSON_CreateObject();
	if (wanted.body != NULL)
		code = run(console, argc, argv, &wanted);
	else
		bc_complain_memory(console);
	cJSON_Delete(wanted.body);
	return code;
}
