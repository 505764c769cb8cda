#include "cli/client/live.h"

#include "cli/client/client.h"
#include "cli/term/interrupt.h"
#include "cli/term/json_path.h"
#include "cli/term/safe_text.h"

struct showing {
	const struct bc_live *live;
	struct bc_output output;
	bool is_odd;   /* a line came that isn't understood: */
	char odd[100]; /* its beginning */
};

static bool is_enough(const struct showing *s)
{
	return bc_output_failed(&s->output) ||
	       (s->live->is_enough != NULL && s->live->is_enough(s->live->context));
}

static bool take_line(void *context, char *text, size_t bytes)
{
	struct showing *s = context;
	const struct bc_live *live = s->live;
	json_t *object = bc_json_parse_object(text, bytes);
	bool is_good = object != NULL;

	if (is_good && (live->is_wanted == NULL || live->is_wanted(live->context, object))) {
		if (live->is_json)
			bc_output_json(&s->output, text, bytes);
		else
			is_good = live->show(live->context, &s->output, object);
	}
	json_decref(object);
	if (!is_good) {
		s->is_odd = true;
		bc_safe_text(s->odd, sizeof(s->odd), text);
	}
	return is_good && !is_enough(s);
}

static enum bc_exit follow(struct showing *s, struct bc_client *client)
{
	const struct bc_live *live = s->live;
	/* Of the output only that nobody reads it any more, while nothing is written to it. */
	struct pollfd fds[] = {{.fd = bc_interrupt_open(), .events = POLLIN}, {.fd = s->output.fd}};
	enum bc_exit code = bc_client_stream(client, live->path, take_line, s);
	uint64_t lines = UINT64_MAX;

	while (code == BC_EXIT_OK && !bc_client_is_over(client) && fds[0].revents == 0 &&
		fds[1].revents == 0) {
		if (lines == bc_client_lines(client)) {
			bc_print_error(live->console, bc_client_path(client),
				"no answer within %d s; if that stays so, look into the log of "
				"buscapd",
				live->silence_ms / 1000);
			return BC_EXIT_UNREACHABLE;
		}
		lines = bc_client_lines(client);
		code = bc_client_wait(client, fds, 2, live->silence_ms);
		bc_output_flush(&s->output);
	}
	return code != BC_EXIT_OK ? bc_client_print_error(client, code) : code;
}

enum bc_exit bc_live_run(const struct bc_live *live)
{
	struct showing s = {.live = live};
	struct bc_client *client;
	enum bc_exit code = bc_client_open(&client, live->console, live->socket);

	if (code != BC_EXIT_OK)
		return code;
	if (!bc_output_open(&s.output, live->console)) {
		bc_client_close(client);
		return BC_EXIT_FAILED;
	}
	code = follow(&s, client);
	bc_client_close(client);
	enum bc_exit closed = bc_output_close(&s.output, live->console);
	if (s.is_odd) {
		bc_print_error(live->console, NULL, "unexpected line from the daemon: %s", s.odd);
		closed = bc_exit_worse(closed, BC_EXIT_FAILED);
	}
	return bc_exit_worse(code, closed);
}
