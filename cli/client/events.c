#include "cli/term/commands.h"

#include <string.h>

#include "cli/client/event_text.h"
#include "cli/client/live.h"
#include "cli/io/client.h"
#include "cli/term/json_path.h"
#include "cli/term/options.h"

/* The daemon sends a status every second. */
#define SILENCE_MS 30000

enum { OPTION_CHANGES = BC_CLIENT_OPT_MORE };

static const struct bc_usage_option options[] = {
	{OPTION_CHANGES, "changes", NULL, NULL, "print the status only once, at the beginning"},
	{BC_CLIENT_OPT_JSON, "json", NULL, NULL, "print JSON, one object per line"},
	BC_CLIENT_OPTION_SOCKET,
	{0},
};

const struct bc_usage bc_events_usage = {
	.name = "events",
	.summary = "print the daemon's events as they happen",
	.text = "Prints the daemon's events as they happen, one per line, until Ctrl-C: "
		"recordings, segments, marks, triggers, gaps, the board and the disk. The status "
		"is printed first and then every second.",
	.options = options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap events --changes",
};

static bool print_event(void *context, struct bc_output *output, const json_t *event)
{
	(void)context;
	return bc_event_print(output, event);
}

/* The first status says what later changes refer to: that the disk is stuck, for instance. */
static bool is_change(void *context, const json_t *event)
{
	bool *has_status = context;
	const char *name = bc_json_path_text(event, "event");

	if (name == NULL || strcmp(name, "status") != 0)
		return true;
	bool is_first = !*has_status;
	*has_status = true;
	return is_first;
}

int bc_cmd_events(const struct bc_console *console, int argc, char **argv)
{
	bool has_status = false;
	struct bc_live live = {.console = console,
		.context = &has_status,
		.path = "/v1/events",
		.silence_ms = SILENCE_MS,
		.print = print_event};
	struct bc_options o;
	int letter;

	bc_options_start(&o, console, &bc_events_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		switch (letter) {
		case OPTION_CHANGES:
			live.filter = is_change;
			break;
		case BC_CLIENT_OPT_JSON:
			live.is_json = true;
			break;
		case BC_CLIENT_OPT_SOCKET:
			live.socket = optarg;
			break;
		default:
			return o.exit;
		}
	}
	if (optind < argc)
		return bc_print_usage_error(console, "events takes no operands");
	return bc_live_run(&live);
}
