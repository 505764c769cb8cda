#include "cli/mark.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ask_options.h"
#include "formats/json.h"

const struct bc_usage bc_mark_usage = {
	.name = "mark",
	.operands = "TEXT...",
	.kind = "text",
	.summary = "set a mark at this place of the recording",
	.text = "Sets a mark at this place of the recording under way, or of what the flight "
		"recorder holds; info, dump and cut show it there. Several words are one text, "
		"with a blank between.",
	.options = bc_ask_options,
	.exits = BC_ASK_EXITS,
	.example = "buscap mark the second run begins",
};

static char *join(char **words, int count)
{
	size_t bytes = 1;

	for (int i = 0; i < count; i++)
		bytes += strlen(words[i]) + 1;
	char *text = malloc(bytes);
	if (text == NULL)
		return NULL;
	char *p = text;
	for (int i = 0; i < count; i++)
		p += sprintf(p, i == 0 ? "%s" : " %s", words[i]);
	return text;
}

static enum bc_exit print(const struct bc_console *console, const struct bc_answer *answer)
{
	const cJSON *mark = cJSON_GetObjectItemCaseSensitive(answer->json, "mark");
	struct bc_output output;

	if (!cJSON_IsObject(mark))
		return bc_ask_complain_answer(console);
	if (!bc_output_open(&output, console))
		return BC_EXIT_FAILED;
	if (cJSON_IsNumber(cJSON_GetObjectItemCaseSensitive(mark, "record")))
		bc_output_format(&output, "mark before record %" PRIu64 ", ",
			bc_json_get_u64(mark, "record"));
	else
		bc_output_format(&output, "mark in what the flight recorder holds, at ");
	bc_output_format(&output, "tick %" PRIu64 " of epoch %" PRIu64 "\n",
		bc_json_get_u64(mark, "tick"), bc_json_get_u64(mark, "epoch"));
	return bc_output_close(&output, console);
}

int bc_cmd_mark(const struct bc_console *console, int argc, char **argv)
{
	struct bc_ask_options options;
	struct bc_answer answer;
	enum bc_exit code;

	if (!bc_ask_options_read(&options, console, argc, argv, &bc_mark_usage, &code))
		return code;
	if (optind == argc)
		return bc_complain_usage(console, "a text is wanted");
	char *text = join(argv + optind, argc - optind);
	cJSON *body = cJSON_CreateObject();
	if (text == NULL || body == NULL || !bc_json_add_text(body, "text", text)) {
		bc_complain_memory(console);
		free(text);
		cJSON_Delete(body);
		return BC_EXIT_FAILED;
	}
	free(text);
	code = bc_ask(console, options.socket, "POST", "/v1/marks", body, 0, &answer);
	if (code == BC_EXIT_OK)
		code = options.is_json ? bc_ask_print_json(console, &answer)
				       : print(console, &answer);
	bc_answer_free(&answer);
	return code;
}
