#include "cli/rotate.h"

#include "cli/ask_options.h"

const struct bc_usage bc_rotate_usage = {
	.name = "rotate",
	.summary = "begin a new segment",
	.text = "Begins a new segment of the recording under way: the one before is sealed and can "
		"be copied.",
	.options = bc_ask_options,
	.exits = BC_ASK_EXITS,
	.example = "buscap rotate --json",
};

/* Not what is known of the recording: of the new segment nothing is, before its first chunk. */
static enum bc_exit print(const struct bc_console *console, const struct bc_answer *answer)
{
	const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(answer->json, "recording"), "id"));
	struct bc_output output;

	if (id == NULL)
		return bc_ask_complain_answer(console);
	if (!bc_output_open(&output, console))
		return BC_EXIT_FAILED;
	bc_output_format(&output, "recording ");
	bc_output_safe(&output, id);
	bc_output_format(&output, ": the next record is in a new segment\n");
	return bc_output_close(&output, console);
}

int bc_cmd_rotate(const struct bc_console *console, int argc, char **argv)
{
	struct bc_ask_options options;
	struct bc_answer answer;
	enum bc_exit code;

	if (!bc_ask_options_read(&options, console, argc, argv, &bc_rotate_usage, &code))
		return code;
	if (optind < argc)
		return bc_complain_usage(console, "it takes no operands");
	code = bc_ask(console, options.socket, "POST", "/v1/rotate", cJSON_CreateObject(),
		BC_ASK_SEAL_MS, &answer);
	if (code == BC_EXIT_OK)
		code = options.is_json ? bc_ask_print_json(console, &answer)
				       : print(console, &answer);
	bc_answer_free(&answer);
	return code;
}
