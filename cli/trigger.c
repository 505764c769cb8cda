#include "cli/trigger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/ask_options.h"
#include "cli/column.h"
#include "cli/quantity.h"
#include "formats/json.h"

static const struct bc_usage_option add_options[] = {
	{BC_ASK_PRE, "pre", "LENGTH", "length",
		"start, snapshot: begin with so much of the flight recorder: 5s, 16M, all (start: "
		"none, snapshot: all)"},
	{BC_ASK_POST, "post", "LENGTH", "length",
		"start, snapshot: end so much after it; stop: not at once, but after so much: 2s, "
		"16M"},
	{BC_ASK_TEXT, "text", "TEXT", "text", "stands in the recording at its place (its name)"},
	{BC_ASK_HOLDOFF, "holdoff", "TIME", "time",
		"after it has fired, it doesn't again for so long: 100ms"},
	BC_ASK_OPTIONS,
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

static const struct bc_usage list_usage = {
	.name = "trigger list",
	.summary = "list the triggers that are armed in the running daemon",
	.options = bc_ask_options,
	.exits = BC_ASK_EXITS,
	.example = "buscap trigger list",
};

static const struct bc_usage add_usage = {
	.name = "trigger add",
	.operands = "NAME ACTION WHEN...",
	.kind = "text choice:start|stop|toggle|snapshot|mark "
		"choice:addr=|type=|proc=|port=|board|gap|idle",
	.summary = "arm a trigger in the running daemon",
	.text = "Arms a trigger in the running daemon.\n\n" ADD_TEXT,
	.options = add_options,
	.exits = BC_ASK_EXITS,
	.example = ADD_EXAMPLE,
};

static const struct bc_usage remove_usage = {
	.name = "trigger remove",
	.operands = "NAME",
	.kind = "text",
	.summary = "disarm a trigger of the running daemon",
	.options = bc_ask_options,
	.exits = BC_ASK_EXITS,
	.example = "buscap trigger remove begin",
};

const struct bc_usage bc_trigger_usage = {
	.name = "trigger",
	.operands = "VERB",
	.kind = "command",
	.summary = "list, add, remove: what is waited for on the bus",
	.text = "Lists the triggers that are armed in the running daemon, arms one, disarms "
		"one.\n\n" ADD_TEXT,
	.verbs = (const struct bc_usage *const[]){&list_usage, &add_usage, &remove_usage, NULL},
	.exits = BC_ASK_EXITS,
	.example = ADD_EXAMPLE,
};

/* What was said beyond what it waits for; its text is its name where nothing was. */
static void print_more(struct bc_output *o, const cJSON *t)
{
	static const char *const more[] = {"pre", "post", "holdoff", "text"};
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(t, "name"));

	for (unsigned i = 0; i < 4; i++) {
		const cJSON *item = cJSON_GetObjectItemCaseSensitive(t, more[i]);
		if (cJSON_IsString(item) && *item->valuestring != '\0' &&
			(name == NULL || strcmp(item->valuestring, name) != 0)) {
			bc_output_format(o, ", %s ", more[i]);
			bc_output_safe(o, item->valuestring);
		} else if (cJSON_IsNumber(item)) {
			char time[BC_QUANTITY_MAX];
			bc_output_format(
				o, ", %s %s", more[i], bc_quantity_time(time, item->valuedouble));
		}
	}
}

static void print_row(struct bc_output *o, int width, const cJSON *t)
{
	bc_column_text(o, width, t, "name");
	bc_column_text(o, 8, t, "action");
	bc_column_count(o, 10, t, "fired");
	bc_column_count(o, 10, t, "missed");
	bc_column_text(o, 13, t, "from");
	bc_output_safe(o, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(t, "when")));
	print_more(o, t);
	bc_output_text(o, "\n", 1);
}

static int name_width(const cJSON *triggers)
{
	const cJSON *one = cJSON_GetObjectItemCaseSensitive(triggers, "name");
	int n = cJSON_IsString(one) ? (int)strnlen(one->valuestring, 64) : 0;

	if (cJSON_IsArray(triggers))
		return bc_column_width(triggers, "name", 16);
	return n > 16 ? n : 16;
}

/* Prints an array of triggers, or one. */
static enum bc_exit print(const struct bc_console *console, const struct bc_answer *answer,
	bool is_json, const char *name)
{
	const cJSON *triggers = cJSON_GetObjectItemCaseSensitive(answer->json, name);
	const cJSON *t;
	struct bc_output o;

	if (is_json)
		return bc_ask_print_json(console, answer);
	if (!cJSON_IsArray(triggers) && !cJSON_IsObject(triggers))
		return bc_ask_complain_answer(console);
	if (!bc_output_open(&o, console))
		return BC_EXIT_FAILED;
	if (cJSON_IsArray(triggers) && cJSON_GetArraySize(triggers) == 0) {
		bc_output_format(&o, "no triggers\n");
		return bc_output_close(&o, console);
	}
	int width = name_width(triggers);
	bc_output_format(&o, "%-*s  %-8s  %10s  %10s  %-13s  WHEN\n", width, "NAME", "ACTION",
		"FIRED", "MISSED", "FROM");
	if (cJSON_IsObject(triggers))
		print_row(&o, width, triggers);
	for (t = cJSON_IsArray(triggers) ? triggers->child : NULL; t != NULL; t = t->next)
		print_row(&o, width, t);
	return bc_output_close(&o, console);
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
	code = bc_ask(console, ask.socket, "GET", "/v1/triggers", NULL, 0, &answer);
	if (code == BC_EXIT_OK)
		code = print(console, &answer, ask.is_json, "triggers");
	bc_answer_free(&answer);
	return code;
}

/* The words from `words` on, with blanks between. */
static bool add_when(cJSON *body, char **words, int count)
{
	char when[1024] = "";
	size_t used = 0;

	for (int i = 0; i < count; i++) {
		int n = snprintf(when + used, sizeof(when) - used, i == 0 ? "%s" : " %s", words[i]);
		if (n < 0 || (size_t)n >= sizeof(when) - used)
			return false;
		used += (size_t)n;
	}
	return bc_json_add_text(body, "when", when);
}

/* Returns false when the command is over, *code then being how. */
static bool read_add(const struct bc_console *console, int argc, char **argv, cJSON *body,
	struct bc_ask_options *ask, enum bc_exit *code)
{
	struct bc_options o;
	int letter;

	bc_options_begin(&o, console, &add_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		if (bc_ask_body_option(console, letter, body, ask))
			continue;
		*code = o.exit;
		return false;
	}
	if (argc - optind < 3) {
		*code = bc_complain_usage(
			console, "add wants NAME ACTION WHEN, as roi mark port=e0");
		return false;
	}
	if (!bc_json_add_text(body, "name", argv[optind]) ||
		!bc_json_add_text(body, "action", argv[optind + 1])) {
		*code = bc_complain_memory(console);
		return false;
	}
	if (!add_when(body, argv + optind + 2, argc - optind - 2)) {
		*code = bc_complain_usage(console, "WHEN is too long");
		return false;
	}
	return true;
}

static int add(const struct bc_console *console, int argc, char **argv)
{
	struct bc_ask_options ask = {0};
	struct bc_answer answer;
	cJSON *body = cJSON_CreateObject();
	enum bc_exit code = BC_EXIT_FAILED;

	if (body == NULL || !read_add(console, argc, argv, body, &ask, &code)) {
		cJSON_Delete(body);
		return code;
	}
	code = bc_ask(console, ask.socket, "POST", "/v1/triggers", body, 0, &answer);
	if (code == BC_EXIT_OK)
		code = print(console, &answer, ask.is_json, "trigger");
	bc_answer_free(&answer);
	return code;
}

static int take_away(const struct bc_console *console, int argc, char **argv)
{
	struct bc_ask_options ask;
	struct bc_answer answer;
	enum bc_exit code;
	char *path = NULL;

	if (!bc_ask_options_read(&ask, console, argc, argv, &remove_usage, &code))
		return code;
	if (argc - optind != 1)
		return bc_complain_usage(console, "remove wants one NAME");
	char *name = bc_ask_encode(argv[optind]);
	if (name == NULL || asprintf(&path, "/v1/triggers/%s", name) < 0) {
		bc_complain_memory(console);
		free(name);
		return BC_EXIT_FAILED;
	}
	code = bc_ask(console, ask.socket, "DELETE", path, NULL, 0, &answer);
	if (code == BC_EXIT_OK && ask.is_json)
		code = bc_ask_print_json(console, &answer);
	bc_answer_free(&answer);
	free(path);
	free(name);
	return code;
}

int bc_cmd_trigger(const struct bc_console *console, int argc, char **argv)
{
	static bc_verb *const verbs[] = {list, add, take_away};

	return bc_verbs_run(console, &bc_trigger_usage, verbs, argc, argv);
}
