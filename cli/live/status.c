#include "cli/term/commands.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/io/client.h"
#include "cli/live/status_lines.h"
#include "cli/term/interrupt.h"
#include "cli/term/options.h"

static const struct bc_usage_option options[] = {
	{'w', "watch", "[SECONDS]", "number",
		"repeat every SECONDS (1) until Ctrl-C; on a terminal, in place"},
	{BC_CLIENT_OPT_JSON, "json", NULL, NULL, "print the daemon's response as JSON on one line"},
	BC_CLIENT_OPTION_SOCKET,
	{0},
};

const struct bc_usage bc_status_usage = {
	.name = "status",
	.summary = "print the status of the running daemon",
	.text = "Prints the status of the running daemon: source and board, recording, rates, "
		"losses, buffer and disk.",
	.options = options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap status --watch 5",
};

struct status_options {
	const char *socket;
	bool is_json;
	bool is_watching;
	int period_ms;
};

/* Prints the status page or the JSON. Returns false if the response is not a status. */
static bool print_status(struct bc_output *o, const struct bc_response *response,
	const struct status_options *parsed, bool is_in_place, bool is_first)
{
	if (!bc_is_status(response->json))
		return false;
	if (parsed->is_json) {
		bc_response_write_json(o, response);
		return true;
	}
	if (is_in_place)
		bc_output_format(o, is_first ? "\033[2J\033[H" : "\033[H");
	else if (!is_first)
		bc_output_text(o, "\n", 1);
	bc_status_print(o, response->json, is_in_place ? "\033[K" : "");
	if (is_in_place)
		bc_output_format(o, "\033[J");
	return true;
}

static enum bc_exit run_status(const struct bc_console *console, struct bc_client *client,
	const struct status_options *parsed, struct bc_output *o)
{
	bool is_in_place = parsed->is_watching && !parsed->is_json && isatty(console->out);
	int interrupt = parsed->is_watching ? bc_interrupt_open() : -1;
	enum bc_exit code = BC_EXIT_OK;
	struct bc_response response;

	for (bool is_first = true; code == BC_EXIT_OK; is_first = false) {
		code = bc_client_call(client, "GET", "/v1/status", NULL, &response);
		if (code != BC_EXIT_OK)
			bc_client_print_error(client, code);
		else if (!print_status(o, &response, parsed, is_in_place, is_first))
			code = bc_client_print_bad_response(client);
		bc_response_free(&response);
		bc_output_flush(o);
		if (!parsed->is_watching || bc_output_failed(o) ||
			bc_interrupt_wait(interrupt, parsed->period_ms))
			break;
	}
	return code;
}

static bool parse_period(const struct bc_console *console, const char *text, int *ms)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end != text && *end == '\0' && isfinite(seconds) && seconds >= 0.1 &&
		seconds <= 86400) {
		*ms = (int)(seconds * 1000);
		return true;
	}
	bc_print_error(
		console, NULL, "--watch %s: must be a number of seconds from 0.1 to 86400", text);
	return false;
}

/* If the command is finished, sets *code and returns false. */
static bool parse_options(const struct bc_console *console, int argc, char **argv,
	struct status_options *parsed, enum bc_exit *code)
{
	struct bc_options o;
	bool has_period = false; /* --watch=5, not --watch 5 */
	int letter;

	*code = BC_EXIT_USAGE;
	bc_options_start(&o, console, &bc_status_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		switch (letter) {
		case 'w':
			parsed->is_watching = true;
			has_period = optarg != NULL;
			if (has_period && !parse_period(console, optarg, &parsed->period_ms))
				return false;
			break;
		case BC_CLIENT_OPT_JSON:
			parsed->is_json = true;
			break;
		case BC_CLIENT_OPT_SOCKET:
			parsed->socket = optarg;
			break;
		default:
			*code = o.exit;
			return false;
		}
	}
	if (parsed->is_watching && !has_period && optind + 1 == argc)
		return parse_period(console, argv[optind], &parsed->period_ms);
	if (optind == argc)
		return true;
	*code = bc_print_usage_error(console, "status takes no operands");
	return false;
}

int bc_cmd_status(const struct bc_console *console, int argc, char **argv)
{
	struct status_options parsed = {.period_ms = 1000};
	struct bc_client *client;
	struct bc_output output;
	enum bc_exit code;

	if (!parse_options(console, argc, argv, &parsed, &code))
		return code;
	code = bc_client_open(&client, console, parsed.socket);
	if (code != BC_EXIT_OK)
		return code;
	if (!bc_output_open(&output, console)) {
		bc_client_close(client);
		return BC_EXIT_FAILED;
	}
	code = run_status(console, client, &parsed, &output);
	bc_client_close(client);
	return bc_exit_worse(code, bc_output_close(&output, console));
}
