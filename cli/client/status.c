#include "cli/client/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/client/client.h"
#include "cli/client/status_lines.h"
#include "cli/term/interrupt.h"
#include "cli/term/options.h"

static const struct bc_usage_option options[] = {
	{'w', "watch", "[SECONDS]", "number",
		"again each second, or every so many: on a terminal in place, else one below the "
		"other; until Ctrl-C"},
	{BC_CLIENT_OPT_JSON, "json", NULL, NULL, "the daemon's object, in one line, as it came"},
	BC_CLIENT_OPTION_SOCKET,
	{0},
};

const struct bc_usage bc_status_usage = {
	.name = "status",
	.summary = "how things stand with the running daemon",
	.text = "Says how things stand with the running daemon: source and board, recording, "
		"rates, losses, buffer and disk.",
	.options = options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap status --watch 5",
};

struct wanted {
	const char *socket;
	bool is_json;
	bool is_watching;
	int period_ms;
};

/* Prints the page, on a terminal over the one before, or the object. Returns false when it isn't a
 * status. */
static bool print(struct bc_output *o, const struct bc_answer *answer, const struct wanted *wanted,
	bool is_in_place, bool is_first)
{
	struct bc_status status;

	if (!bc_status_parse(&status, answer->json))
		return false;
	if (wanted->is_json) {
		bc_answer_write_json(o, answer);
		return true;
	}
	if (is_in_place)
		bc_output_format(o, is_first ? "\033[2J\033[H" : "\033[H");
	else if (!is_first)
		bc_output_text(o, "\n", 1);
	bc_status_print(o, &status, is_in_place ? "\033[K" : "");
	if (is_in_place)
		bc_output_format(o, "\033[J");
	return true;
}

static enum bc_exit show(const struct bc_console *console, struct bc_client *client,
	const struct wanted *wanted, struct bc_output *o)
{
	bool is_in_place = wanted->is_watching && !wanted->is_json && isatty(console->out);
	int interrupt = wanted->is_watching ? bc_interrupt_open() : -1;
	enum bc_exit code = BC_EXIT_OK;
	struct bc_answer answer;

	for (bool is_first = true; code == BC_EXIT_OK; is_first = false) {
		code = bc_client_call(client, "GET", "/v1/status", NULL, &answer);
		if (code != BC_EXIT_OK)
			bc_client_print_error(client, code);
		else if (!print(o, &answer, wanted, is_in_place, is_first))
			code = bc_client_complain_answer(client);
		bc_answer_free(&answer);
		bc_output_flush(o);
		if (!wanted->is_watching || bc_output_failed(o) ||
			bc_interrupt_wait(interrupt, wanted->period_ms))
			break;
	}
	return code;
}

static bool read_period(const struct bc_console *console, const char *text, int *ms)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end != text && *end == '\0' && isfinite(seconds) && seconds >= 0.1 &&
		seconds <= 86400) {
		*ms = (int)(seconds * 1000);
		return true;
	}
	bc_print_error(console, NULL,
		"--watch %s: a number of seconds is wanted, from 0.1 to 86400", text);
	return false;
}

/* Returns false when the command is over, *code then being how. */
static bool read_options(const struct bc_console *console, int argc, char **argv,
	struct wanted *wanted, enum bc_exit *code)
{
	struct bc_options o;
	bool has_period = false; /* --watch=5, not --watch 5 */
	int letter;

	*code = BC_EXIT_USAGE;
	bc_options_start(&o, console, &bc_status_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		switch (letter) {
		case 'w':
			wanted->is_watching = true;
			has_period = optarg != NULL;
			if (has_period && !read_period(console, optarg, &wanted->period_ms))
				return false;
			break;
		case BC_CLIENT_OPT_JSON:
			wanted->is_json = true;
			break;
		case BC_CLIENT_OPT_SOCKET:
			wanted->socket = optarg;
			break;
		default:
			*code = o.exit;
			return false;
		}
	}
	if (wanted->is_watching && !has_period && optind + 1 == argc)
		return read_period(console, argv[optind], &wanted->period_ms);
	if (optind == argc)
		return true;
	*code = bc_print_usage_error(console, "it takes no operands");
	return false;
}

int bc_cmd_status(const struct bc_console *console, int argc, char **argv)
{
	struct wanted wanted = {.period_ms = 1000};
	struct bc_client *client;
	struct bc_output output;
	enum bc_exit code;

	if (!read_options(console, argc, argv, &wanted, &code))
		return code;
	code = bc_client_open(&client, console, wanted.socket);
	if (code != BC_EXIT_OK)
		return code;
	if (!bc_output_open(&output, console)) {
		bc_client_close(client);
		return BC_EXIT_FAILED;
	}
	code = show(console, client, &wanted, &output);
	bc_client_close(client);
	return bc_exit_worse(code, bc_output_close(&output, console));
}
