#include "cli/events.h"

#include <string.h>

#include "cli/ask_options.h"
#include "cli/event_text.h"
#include "cli/live.h"

/* A status comes each second. */
#define SILENCE_MS 30000

enum { OPTION_CHANGES = BC_ASK_MORE };

static const struct bc_usage_option options[] = {
	{OPTION_CHANGES, "changes", NULL, NULL, "without the status each second"},
	{BC_ASK_JSON, "json", NULL, NULL, "an object a line, as it comes"},
	BC_ASK_OPTION_SOCKET,
	{0},
};

const struct bc_usage bc_events_usage = {
	.name = "events",
	.summary = "print what happens in the daemon",
	.text = "Prints what happens in the daemon as it happens, a line each, until Ctrl-C: "
		"recordings, segments, marks, triggers, gaps, the board and the disk; and the "
		"status first and each second.",
	.options = options,
	.exits = BC_ASK_EXITS,
	.example = "buscap events --changes",
};

static bool show(void *context, struct bc_output *output, const cJSON *event)
{
	(void)context;
	return bc_event_print(output, event);
}

static bool is_change(void *context, const cJSON *event)
{
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "event"));

	(void)context;
	return name == NULL || strcmp(name, "status") != 0;
}

int bc_cmd_events(const struct bc_console *console, int argc, char **argv)
{
	struct bc_live live = {
		.console = console, .path = "/v1/events", .silence_ms = SILENCE_MS, .show = show};
	struct bc_options o;
	int letter;

	bc_options_begin(&o, console, &bc_events_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		switch (letter) {
		case OPTION_CHANGES:
			live.is_wanted = is_change;
			break;
		case BC_ASK_JSON:
			live.is_json = true;
			break;
		case BC_ASK_SOCKET:
			live.socket = optarg;
			break;
		default:
			return o.exit;
		}
	}
	if (optind < argc)
		return bc_complain_usage(console, "it takes no operands");
	return bc_live_run(&live);
}
