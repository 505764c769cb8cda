#include "cli/live/live.h"

#include "cli/io/client.h"
#include "cli/term/interrupt.h"
#include "cli/term/json_path.h"
#include "cli/term/text.h"

struct live_run {
	const struct bc_live *live;
	struct bc_output output;
	bool has_bad_line;
	char bad_line[100]; /* its start */
};

static bool on_line(void *context, char *text, size_t bytes)
{
	struct live_run *s = context;
	const struct bc_live *live = s->live;
	json_t *object = bc_json_parse_object(text, bytes);
	bool is_good = object != NULL;

	if (is_good && (live->filter == NULL || live->filter(live->context, object))) {
		if (live->is_json)
			bc_output_json(&s->output, text, bytes);
		else
			is_good = live->print(live->context, &s->output, object);
	}
	json_decref(object);
	if (!is_good) {
		s->has_bad_line = true;
		bc_safe_text(s->bad_line, sizeof(s->bad_line), text);
	}
	return is_good && !bc_output_failed(&s->output) &&
	       (live->is_done == NULL || !live->is_done(live->context));
}

static enum bc_exit read_stream(struct live_run *s, struct bc_client *client)
{
	const struct bc_live *live = s->live;
	/* No events for the output: only errors, such as a closed pipe. */
	struct pollfd fds[] = {{.fd = bc_interrupt_open(), .events = POLLIN}, {.fd = s->output.fd}};
	enum bc_exit code = bc_client_stream(client, live->path, on_line, s);
	uint64_t lines = UINT64_MAX;

	while (code == BC_EXIT_OK && !bc_client_is_over(client) && fds[0].revents == 0 &&
		fds[1].revents == 0) {
		if (lines == bc_client_lines(client)) {
			bc_print_error(live->console, bc_client_path(client),
				"no response within %d s; if this persists, see journalctl -u "
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
	struct live_run s = {.live = live};
	struct bc_client *client;
	enum bc_exit code = bc_client_open(&client, live->console, live->socket);

	if (code != BC_EXIT_OK)
		return code;
	if (!bc_output_open(&s.output, live->console)) {
		bc_client_close(client);
		return BC_EXIT_FAILED;
	}
	code = read_stream(&s, client);
	bc_client_close(client);
	enum bc_exit closed = bc_output_close(&s.output, live->console);
	if (s.has_bad_line) {
		bc_print_error(
			live->console, NULL, "unexpected line from the daemon: %s", s.bad_line);
		closed = bc_exit_worse(closed, BC_EXIT_FAILED);
	}
	return bc_exit_worse(code, closed);
}
