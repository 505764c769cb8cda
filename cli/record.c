#include "cli/record.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ask_options.h"
#include "cli/recording_text.h"
#include "formats/json.h"

static const struct bc_usage_option start_options[] = {
	BC_ASK_OPTION_LABEL,
	BC_ASK_OPTION_NOTE,
	BC_ASK_OPTION_LIMIT,
	{BC_ASK_PRE, "pre", "LENGTH", "length",
		"begin with so much of what the flight recorder holds: 5s, 16M, all"},
	BC_ASK_OPTION_TRIGGER,
	BC_ASK_OPTIONS,
	{0},
};

static const struct bc_usage start_usage = {
	.name = "record start",
	.summary = "start a recording in the running daemon",
	.options = start_options,
	.exits = BC_ASK_EXITS,
	.example = "buscap record start --label boot --note program=ls --limit duration:10s",
};

static const struct bc_usage stop_usage = {
	.name = "record stop",
	.summary = "stop the recording under way, and wait until it is sealed",
	.options = bc_ask_options,
	.exits = BC_ASK_EXITS,
	.example = "buscap record stop",
};

static const struct bc_usage list_usage = {
	.name = "record list",
	.summary = "list the recordings in the daemon's directory",
	.options = bc_ask_options,
	.exits = BC_ASK_EXITS,
	.example = "buscap record list",
};

static const struct bc_usage show_usage = {
	.name = "record show",
	.operands = "[ID]",
	.kind = "text",
	.summary = "show a recording; without ID the one under way",
	.options = bc_ask_options,
	.exits = BC_ASK_EXITS,
	.example = "buscap record show",
};

static const struct bc_usage note_usage = {
	.name = "record note",
	.operands = "KEY=VALUE...",
	.kind = "text",
	.summary = "note metadata on the recording under way",
	.options = bc_ask_options,
	.exits = BC_ASK_EXITS,
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
	.verbs = (const struct bc_usage *const[]){&start_usage, &stop_usage, &list_usage,
		&show_usage, &note_usage, NULL},
	.exits = BC_ASK_EXITS,
	.example = "buscap record start --label boot --note program=ls --limit duration:10s",
};

/* Asks for something that is answered with a recording, and shows it. */
static int ask_recording(const struct bc_console *console, const struct bc_ask_options *options,
	const char *method, const char *path, cJSON *body, long timeout_ms)
{
	struct bc_answer answer;
	enum bc_exit code = bc_ask(
		console, options->socket, method, path, body, timeout_ms, &answer);

	if (code == BC_EXIT_OK)
		code = bc_recording_print_answer(console, &answer, options->is_json);
	bc_answer_free(&answer);
	return code;
}

static int start(const struct bc_console *console, int argc, char **argv)
{
	struct bc_ask_options options = {0};
	struct bc_options o;
	cJSON *body = cJSON_CreateObject();
	int letter;

	if (body == NULL) {
		return bc_complain_memory(console);
	}
	bc_options_begin(&o, console, &start_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		if (!bc_ask_body_option(console, letter, body, &options)) {
			cJSON_Delete(body);
			return o.exit;
		}
	}
	if (optind < argc) {
		cJSON_Delete(body);
		return bc_complain_usage(console, "start takes options alone");
	}
	return ask_recording(console, &options, "POST", "/v1/recordings", body, 0);
}

static int stop(const struct bc_console *console, int argc, char **argv)
{
	struct bc_ask_options options;
	enum bc_exit code;

	if (!bc_ask_options_read(&options, console, argc, argv, &stop_usage, &code))
		return code;
	if (optind < argc)
		return bc_complain_usage(
			console, "stop takes no operands: it stops the one under way");
	return ask_recording(
		console, &options, "DELETE", "/v1/recordings/current", NULL, BC_ASK_SEAL_MS);
}

/* Asks for the list; *recordings is an array in the answer. */
static enum bc_exit ask_list(const struct bc_console *console, const struct bc_ask_options *options,
	struct bc_answer *answer, const cJSON **recordings)
{
	enum bc_exit code = bc_ask(
		console, options->socket, "GET", "/v1/recordings", NULL, 0, answer);

	if (code != BC_EXIT_OK)
		return code;
	*recordings = cJSON_GetObjectItemCaseSensitive(answer->json, "recordings");
	return cJSON_IsArray(*recordings) ? BC_EXIT_OK : bc_ask_complain_answer(console);
}

static int list(const struct bc_console *console, int argc, char **argv)
{
	struct bc_ask_options options;
	struct bc_answer answer;
	struct bc_output output;
	const cJSON *recordings;
	enum bc_exit code;

	if (!bc_ask_options_read(&options, console, argc, argv, &list_usage, &code))
		return code;
	if (optind < argc)
		return bc_complain_usage(console, "list takes no operands");
	code = ask_list(console, &options, &answer, &recordings);
	if (code == BC_EXIT_OK && options.is_json) {
		code = bc_ask_print_json(console, &answer);
	} else if (code == BC_EXIT_OK && !bc_output_open(&output, console)) {
		code = bc_complain_memory(console);
	} else if (code == BC_EXIT_OK) {
		bc_recordings_print(&output, recordings, bc_json_get_u64(answer.json, "left_out"));
		code = bc_output_close(&output, console);
	}
	bc_answer_free(&answer);
	return code;
}

/* The one of the list with this ID, put in the place of the list. */
static enum bc_exit pick(const struct bc_console *console, const char *id, const cJSON *recordings,
	struct bc_answer *answer)
{
	const cJSON *r;

	cJSON_ArrayForEach(r, recordings)
	{
		const char *its = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(r, "id"));
		if (its == NULL || strcmp(its, id) != 0)
			continue;
		cJSON *picked = cJSON_CreateObject();
		cJSON *copy = cJSON_Duplicate(r, true);
		if (picked == NULL || !cJSON_AddItemToObject(picked, "recording", copy)) {
			cJSON_Delete(copy);
			cJSON_Delete(picked);
			return bc_complain_memory(console);
		}
		bc_answer_free(answer);
		answer->json = picked;
		answer->text = cJSON_PrintUnformatted(picked);
		answer->bytes = answer->text != NULL ? strlen(answer->text) : 0;
		return BC_EXIT_OK;
	}
	uint64_t left_out = bc_json_get_u64(answer->json, "left_out");
	if (left_out != 0)
		bc_complain(console, NULL,
			"there is no recording %s among the newest, and the daemon doesn't tell of "
			"%" PRIu64 " older one%s; see buscap info on its files",
			id, left_out, bc_plural(left_out));
	else
		bc_complain(console, NULL, "there is no recording %s; see buscap record list", id);
	return BC_EXIT_FAILED;
}

static int show(const struct bc_console *console, int argc, char **argv)
{
	struct bc_ask_options options;
	struct bc_answer answer;
	const cJSON *recordings;
	enum bc_exit code;

	if (!bc_ask_options_read(&options, console, argc, argv, &show_usage, &code))
		return code;
	if (optind + 1 < argc)
		return bc_complain_usage(console, "show takes one ID, or none");
	if (optind == argc)
		return ask_recording(console, &options, "GET", "/v1/recordings/current", NULL, 0);
	code = ask_list(console, &options, &answer, &recordings);
	if (code == BC_EXIT_OK)
		code = pick(console, argv[optind], recordings, &answer);
	if (code == BC_EXIT_OK)
		code = bc_recording_print_answer(console, &answer, options.is_json);
	bc_answer_free(&answer);
	return code;
}

static int note(const struct bc_console *console, int argc, char **argv)
{
	struct bc_ask_options options;
	enum bc_exit code;

	if (!bc_ask_options_read(&options, console, argc, argv, &note_usage, &code))
		return code;
	if (optind == argc)
		return bc_complain_usage(console, "a note is wanted, as program=ls");
	cJSON *body = cJSON_CreateObject();
	if (body == NULL) {
		return bc_complain_memory(console);
	}
	for (int i = optind; i < argc; i++) {
		if (bc_ask_note(console, body, argv[i]))
			continue;
		cJSON_Delete(body);
		return BC_EXIT_USAGE;
	}
	return ask_recording(console, &options, "PATCH", "/v1/recordings/current", body, 0);
}

int bc_cmd_record(const struct bc_console *console, int argc, char **argv)
{
	static bc_verb *const verbs[] = {start, stop, list, show, note};

	return bc_verbs_run(console, &bc_record_usage, verbs, argc, argv);
}
