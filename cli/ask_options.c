#include "cli/ask_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/json.h"

const struct bc_usage_option bc_ask_options[] = {
	BC_ASK_OPTIONS,
	{0},
};

bool bc_ask_options_read(struct bc_ask_options *options, const struct bc_console *console, int argc,
	char **argv, const struct bc_usage *usage, enum bc_exit *code)
{
	struct bc_options o;
	int letter;

	*options = (struct bc_ask_options){0};
	bc_options_begin(&o, console, usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		switch (letter) {
		case BC_ASK_JSON:
			options->is_json = true;
			break;
		case BC_ASK_SOCKET:
			options->socket = optarg;
			break;
		default:
			*code = o.exit;
			return false;
		}
	}
	return true;
}

int bc_verbs_run(const struct bc_console *console, const struct bc_usage *usage,
	bc_verb *const *run, int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	char names[128] = "";

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return bc_print_help(console, usage);
	for (size_t i = 0; usage->verbs[i] != NULL; i++) {
		const char *verb = strchr(usage->verbs[i]->name, ' ') + 1;
		size_t used = strlen(names);
		if (strcmp(name, verb) == 0)
			return run[i](console, argc - 1, argv + 1);
		snprintf(names + used, sizeof(names) - used, "%s%s",
			i == 0                        ? ""
			: usage->verbs[i + 1] == NULL ? " or "
						      : ", ",
			verb);
	}
	if (argc < 2)
		bc_complain(console, NULL, "%s is wanted; see buscap %s --help", names,
			console->command);
	else
		bc_complain(console, NULL, "%s is wanted, not %s; see buscap %s --help", names,
			name, console->command);
	return BC_EXIT_USAGE;
}

static bool without_memory(const struct bc_console *console)
{
	bc_complain_memory(console);
	return false;
}

bool bc_ask_is_first(
	const struct bc_console *console, const cJSON *body, const char *option, const char *name)
{
	if (cJSON_GetObjectItemCaseSensitive(body, name) == NULL)
		return true;
	bc_complain(console, NULL, "%s is given twice", option);
	return false;
}

bool bc_ask_text(const struct bc_console *console, cJSON *body, const char *option,
	const char *name, const char *value)
{
	return bc_ask_is_first(console, body, option, name) &&
	       (bc_json_add_text(body, name, value) || without_memory(console));
}

/* The member of the body that is an object or an array, made with its first use. */
static cJSON *member(cJSON *body, const char *name, cJSON *(*create)(cJSON *, const char *))
{
	cJSON *item = cJSON_GetObjectItemCaseSensitive(body, name);

	return item != NULL ? item : create(body, name);
}

bool bc_ask_note(const struct bc_console *console, cJSON *body, const char *value)
{
	const char *equals = strchr(value, '=');
	cJSON *metadata = member(body, "metadata", cJSON_AddObjectToObject);
	char *key = strndup(value, equals != NULL ? (size_t)(equals - value) : 0);
	bool ok = false;

	if (metadata == NULL || key == NULL)
		without_memory(console);
	else if (equals == NULL || equals == value)
		bc_complain(console, NULL, "%s: a note is wanted, as program=ls", value);
	else if (cJSON_GetObjectItemCaseSensitive(metadata, key) != NULL)
		bc_complain(console, NULL, "%s: there is a note %s already", value, key);
	else
		ok = bc_json_add_text(metadata, key, equals + 1) || without_memory(console);
	free(key);
	return ok;
}

/* duration:10s */
static bool add_limit(const struct bc_console *console, cJSON *body, const char *value)
{
	static const char *const names[] = {"duration", "records", "filesize"};
	const char *colon = strchr(value, ':');
	const char *name = NULL;
	cJSON *limits = member(body, "limits", cJSON_AddObjectToObject);

	for (unsigned i = 0; i < 3 && colon != NULL; i++)
		if (strlen(names[i]) == (size_t)(colon - value) &&
			strncmp(value, names[i], strlen(names[i])) == 0)
			name = names[i];
	if (limits == NULL)
		return without_memory(console);
	if (name == NULL || colon[1] == '\0') {
		bc_complain(console, NULL,
			"--limit %s: duration:10s, records:1000000 or filesize:64M is wanted",
			value);
		return false;
	}
	if (cJSON_GetObjectItemCaseSensitive(limits, name) != NULL) {
		bc_complain(
			console, NULL, "--limit %s: there is a limit of %s already", value, name);
		return false;
	}
	const char *amount = colon + 1;
	size_t digits = strspn(amount, "0123456789");
	bool is_number = amount[digits] == '\0' && (digits == 1 || amount[0] != '0');
	if (strcmp(name, "records") == 0 && !is_number) {
		bc_complain(console, NULL, "--limit %s: records wants a number", value);
		return false;
	}
	/* A number goes as one, not through a double. */
	if (is_number)
		return cJSON_AddRawToObject(limits, name, amount) != NULL ||
		       without_memory(console);
	return bc_json_add_text(limits, name, amount) || without_memory(console);
}

/* NAME:ACTION:WHEN */
static bool add_trigger(const struct bc_console *console, cJSON *body, const char *value)
{
	static const char *const names[] = {"name", "action", "when"};
	cJSON *triggers = member(body, "triggers", cJSON_AddArrayToObject);
	cJSON *trigger = cJSON_CreateObject();
	const char *p = value;
	bool ok = triggers != NULL && trigger != NULL && cJSON_AddItemToArray(triggers, trigger);

	if (!ok) {
		cJSON_Delete(trigger);
		return without_memory(console);
	}
	for (unsigned i = 0; i < 3; i++) {
		size_t n = i < 2 ? strcspn(p, ":") : strlen(p);
		if (n == 0 || (i < 2 && p[n] == '\0')) {
			bc_complain(console, NULL,
				"--trigger %s: NAME:ACTION:WHEN is wanted, as roi:stop:port=e0",
				value);
			return false;
		}
		char *text = strndup(p, n);
		ok = text != NULL && bc_json_add_text(trigger, names[i], text);
		free(text);
		if (!ok)
			return without_memory(console);
		p += n + 1;
	}
	return true;
}

bool bc_ask_body_option(
	const struct bc_console *console, int letter, cJSON *body, struct bc_ask_options *options)
{
	switch (letter) {
	case BC_ASK_LABEL:
		return bc_ask_text(console, body, "--label", "label", optarg);
	case BC_ASK_NOTE:
		return bc_ask_note(console, body, optarg);
	case BC_ASK_LIMIT:
		return add_limit(console, body, optarg);
	case BC_ASK_TRIGGER:
		return add_trigger(console, body, optarg);
	case BC_ASK_PRE:
		return bc_ask_text(console, body, "--pre", "pre", optarg);
	case BC_ASK_POST:
		return bc_ask_text(console, body, "--post", "post", optarg);
	case BC_ASK_TEXT:
		return bc_ask_text(console, body, "--text", "text", optarg);
	case BC_ASK_HOLDOFF:
		return bc_ask_text(console, body, "--holdoff", "holdoff", optarg);
	case BC_ASK_SOCKET:
		options->socket = optarg;
		return true;
	case BC_ASK_JSON:
		options->is_json = true;
		return true;
	default:
		return false;
	}
}
