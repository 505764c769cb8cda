#include "cli/snapshot.h"

#include "cli/ask_options.h"
#include "cli/recording_text.h"
#include "formats/json.h"

enum { OPTION_GO_ON = BC_ASK_OWN };

static const struct bc_usage_option options[] = {
	{BC_ASK_PRE, "pre", "LENGTH", "length", "only so much before this moment: 5s, 16M (all)"},
	{BC_ASK_POST, "post", "LENGTH", "length", "and go on for so much: 2s, 16M"},
	{OPTION_GO_ON, "go-on", NULL, NULL, "and go on until it is stopped"},
	BC_ASK_OPTION_LABEL,
	BC_ASK_OPTION_NOTE,
	BC_ASK_OPTIONS,
	{0},
};

const struct bc_usage bc_snapshot_usage = {
	.name = "snapshot",
	.summary = "write out what the flight recorder holds",
	.text = "Writes out what the flight recorder holds (record = flight in the daemon's "
		"configuration) as a recording. Returns when it is sealed, or with --post and "
		"--go-on when it has begun. What was written out is no longer held.",
	.options = options,
	.exits = BC_ASK_EXITS,
	.example = "buscap snapshot --pre 5s --post 1s --label glitch",
};

static bool read_option(
	const struct bc_console *console, int letter, cJSON *body, struct bc_ask_options *ask)
{
	if (letter == OPTION_GO_ON)
		return cJSON_HasObjectItem(body, "go_on") ||
		       cJSON_AddTrueToObject(body, "go_on") != NULL;
	return bc_ask_body_option(console, letter, body, ask);
}

int bc_cmd_snapshot(const struct bc_console *console, int argc, char **argv)
{
	struct bc_ask_options ask = {0};
	struct bc_options o;
	struct bc_answer answer;
	cJSON *body = cJSON_CreateObject();
	int letter;

	if (body == NULL) {
		return bc_complain_memory(console);
	}
	bc_options_begin(&o, console, &bc_snapshot_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		if (!read_option(console, letter, body, &ask)) {
			cJSON_Delete(body);
			return o.exit;
		}
	}
	if (optind < argc ||
		(cJSON_HasObjectItem(body, "post") && cJSON_HasObjectItem(body, "go_on"))) {
		cJSON_Delete(body);
		return bc_complain_usage(
			console, optind < argc ? "it takes no operands"
					       : "--post ends it and --go-on doesn't: one of them");
	}
	enum bc_exit code = bc_ask(
		console, ask.socket, "POST", "/v1/snapshot", body, BC_ASK_SEAL_MS, &answer);
	if (code == BC_EXIT_OK)
		code = bc_recording_print_answer(console, &answer, ask.is_json);
	bc_answer_free(&answer);
	return code;
}
