/* `buscap top`: the loop that connects the daemon's events, the keys and the screen.
 *
 * The status comes from the stream of events, one a second; the bus mix is requested after each,
 * and the history after one that follows a gap, such as the first. Without events (is_polling), the
 * status is requested instead. While neither comes, the state is unreachable: the page says since
 * when, and the stream is opened again every second. A paused display shows a copy of the state
 * (`shown`), while `state` is still updated. Signals that end the program arrive through a
 * descriptor, so that the terminal is restored before; a new size of the window is a key. */
#include "cli/term/commands.h"

#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/io/client.h"
#include "cli/io/filter_args.h"
#include "cli/live/top_grid.h"
#include "cli/live/top_page.h"
#include "cli/live/top_state.h"
#include "cli/term/json_path.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "formats/base/clock.h"

/* Timeout of calls while the screen is open. Keys are not handled during a call. */
#define CALL_MS 2000

/* The daemon sends a status every second. After this long without one it counts as unreachable. */
#define SILENCE_NS (3 * BC_NS_PER_S)

/* After this long without a status, the stream is opened again. */
#define STALE_NS (10 * BC_NS_PER_S)

/* If a status comes this much too early, it is on time. */
#define EARLY_NS (BC_NS_PER_S / 2)

enum {
	OPTION_ONCE = BC_CLIENT_OPT_MORE,
};

static const struct bc_usage_option options[] = {
	{'d', "delay", "SECONDS", "number", "redraw every SECONDS (1)"},
	{OPTION_ONCE, "once", NULL, NULL, "print one page and exit, even on a terminal"},
	BC_NAME_OPTIONS,
	BC_CLIENT_OPTION_SOCKET,
	{0},
};

const struct bc_usage bc_top_usage = {
	.name = "top",
	.summary = "show the daemon and the bus in a terminal",
	.text = "Shows the daemon and the bus in a terminal: rates, buffer "
		"and losses with graphs of the last minutes, disk, board, recording, bus traffic "
		"by type and processor, and the hottest pages. Without a terminal it prints one "
		"page; over ssh, use `ssh -t`. docs/top.md explains the figures. $NO_COLOR "
		"disables colours.\n"
		"\n"
		"Keys: q quits, p pauses the display, s sorts the tables by share or by name, ? "
		"shows the keys.",
	.options = options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap top --once",
};

struct top {
	const struct bc_console *console;
	struct bc_client *client;
	struct bc_top_screen *screen;
	struct bc_top_state *state;
	struct bc_top_state *shown;  /* `state`, or a copy of it while the display is paused */
	struct bc_top_now paused_at; /* time of the copy */
	struct bc_top_view view;
	int interrupt;
	uint64_t delay_ns;
	bool is_polling; /* the daemon has no events: request the status every second */
	bool has_new_status;
	bool is_dirty;       /* the screen must be drawn */
	uint64_t request_ns; /* time of the last request */
};

static struct bc_top_now top_now(void)
{
	return (struct bc_top_now){.ns = bc_now_ns(), .wall = time(NULL)};
}

static bool update_status(struct top *top, json_t *status)
{
	struct bc_top_now at = top_now();

	top->has_new_status = bc_top_state_add_status(top->state, status, &at);
	return top->has_new_status;
}

/* Requests the bus mix. If the daemon refuses, it is shown without one. */
static void request_mix(struct top *top)
{
	struct bc_response response;
	enum bc_exit code = bc_client_call(top->client, "GET", "/v1/mix", NULL, &response);
	struct bc_top_now at = top_now();

	if (code != BC_EXIT_UNREACHABLE)
		bc_top_state_add_mix(top->state, code == BC_EXIT_OK ? response.json : NULL, &at);
	bc_response_free(&response);
}

/* Requests the seconds before the latest status, unless they are known. */
static void request_history(struct top *top)
{
	struct bc_response response;

	if (bc_top_state_second(top->state, top->state->status_ns / BC_NS_PER_S - 1) != NULL)
		return;
	enum bc_exit code = bc_client_call(top->client, "GET", "/v1/history", NULL, &response);
	struct bc_top_now at = top_now();
	if (code == BC_EXIT_OK)
		bc_top_state_add_history(top->state, response.json, &at);
	bc_response_free(&response);
}

static enum bc_exit request_status(struct top *top)
{
	struct bc_response response;
	enum bc_exit code = bc_client_call(top->client, "GET", "/v1/status", NULL, &response);
	const char *err = bc_client_error(top->client);

	if (code == BC_EXIT_OK && !update_status(top, response.json)) {
		code = BC_EXIT_FAILED;
		err = "unexpected response; the server on this socket is not buscapd";
	}
	if (code != BC_EXIT_OK)
		bc_top_state_set_unreachable(top->state, err);
	bc_response_free(&response);
	return code;
}

/* ---- the events */

static bool on_event_line(void *context, char *text, size_t bytes)
{
	struct top *top = context;
	json_t *object = bc_json_parse_object(text, bytes);
	const char *event = bc_json_path_text(object, "event");
	json_t *status = bc_json_path(object, "status");

	/* Other events can have a member "status" too. */
	if (event != NULL && strcmp(event, "status") == 0 && !update_status(top, status))
		bc_top_state_set_unreachable(top->state, "unexpected status from the daemon");
	json_decref(object);
	return true;
}

static void start_stream(struct top *top)
{
	top->request_ns = top_now().ns;
	if (bc_client_stream(top->client, "/v1/events", on_event_line, top) == BC_EXIT_OK)
		return;
	bc_top_state_set_unreachable(top->state, bc_client_error(top->client));
	top->is_dirty = true;
}

/* Waits for events, keys or signals. */
static void wait_stream(struct top *top, struct pollfd *fds, unsigned count, int timeout_ms)
{
	enum bc_exit code = bc_client_wait(top->client, fds, count, timeout_ms);
	bool is_over = code != BC_EXIT_OK || bc_client_is_over(top->client);

	if (!is_over || top->has_new_status)
		return;
	top->is_dirty = true;
	/* Refused: events are not available, but the status may be. */
	top->is_polling = code == BC_EXIT_FAILED;
	if (!top->is_polling)
		bc_top_state_set_unreachable(top->state, code == BC_EXIT_OK
								 ? "the event stream ended"
								 : bc_client_error(top->client));
}

/* Called after each wait. Every second without a stream, requests the status or opens a stream. */
static void poll_daemon(struct top *top)
{
	uint64_t at = top_now().ns;
	bool is_over = bc_client_is_over(top->client);

	if (at - top->request_ns < BC_NS_PER_S)
		return;
	if (is_over && top->is_polling) {
		top->request_ns = at;
		top->is_polling = request_status(top) == BC_EXIT_OK;
		top->is_dirty = true;
	} else if (is_over ||
		   (at - top->state->status_ns > STALE_NS && at - top->request_ns > STALE_NS)) {
		start_stream(top);
	}
	at = top_now().ns; /* a status may have arrived meanwhile */
	if (!top->state->is_unreachable && at - top->state->status_ns > SILENCE_NS) {
		bc_top_state_set_unreachable(top->state, "no status received");
		top->is_dirty = true;
	}
}

/* ---- the screen */

static void draw_screen(struct top *top)
{
	struct bc_top_now at = top->view.is_paused ? top->paused_at : top_now();
	struct bc_top_grid grid;

	bc_top_screen_size(top->screen, &top->view.width, &top->view.height);
	if (bc_top_page_draw(&grid, top->shown, &top->view, &at) != 0)
		return; /* out of memory; try again next second */
	bc_top_screen_show(top->screen, &grid);
	bc_top_grid_close(&grid);
	top->is_dirty = false;
}

static void toggle_pause(struct top *top)
{
	struct bc_top_state *copy;

	if (top->view.is_paused) {
		bc_top_state_free(top->shown);
		top->shown = top->state;
		top->view.is_paused = false;
		return;
	}
	copy = bc_top_state_copy(top->state);
	if (copy == NULL)
		return;
	top->shown = copy;
	top->paused_at = top_now();
	top->view.is_paused = true;
}

/* Returns false to quit. */
static bool handle_keys(struct top *top)
{
	int key;

	while ((key = bc_top_screen_key(top->screen)) != BC_TOP_KEY_NONE) {
		if (key == 'q' || key == BC_TOP_KEY_HANGUP)
			return false;
		top->is_dirty = true;
		if (key == BC_TOP_KEY_RESIZE)
			bc_top_screen_redraw(top->screen);
		else if (top->view.is_help)
			top->view.is_help = false;
		else if (key == '?' || key == 'h')
			top->view.is_help = true;
		else if (key == 'p' || key == ' ')
			toggle_pause(top);
		else if (key == 's')
			top->view.is_by_name = !top->view.is_by_name;
		else if (key == 'L' - '@') /* Ctrl-L */
			bc_top_screen_redraw(top->screen);
	}
	return true;
}

static void run_screen(struct top *top)
{
	const int tick_ms = 250;
	uint64_t drawn_ns = top_now().ns;

	top->is_dirty = true; /* the delay is between two pages */
	start_stream(top);
	for (;;) {
		struct pollfd fds[] = {{.fd = top->console->in, .events = POLLIN},
			{.fd = top->interrupt, .events = POLLIN}};
		if (top->has_new_status) {
			request_history(top);
			request_mix(top);
		}
		/* While the daemon is unreachable, the time since its last status is shown. */
		uint64_t age_ns = top_now().ns - drawn_ns;
		bool is_old = top->state->is_unreachable && age_ns >= BC_NS_PER_S;
		if ((top->has_new_status || is_old) && !top->view.is_paused &&
			age_ns + EARLY_NS >= top->delay_ns)
			top->is_dirty = true;
		top->has_new_status = false;
		if (top->is_dirty) {
			draw_screen(top);
			drawn_ns = top_now().ns;
		}
		if (bc_client_is_over(top->client))
			(void)poll(fds, 2, tick_ms);
		else
			wait_stream(top, fds, 2, tick_ms);
		if (bc_interrupt_wait(top->interrupt, 0) || !handle_keys(top))
			return;
		poll_daemon(top);
	}
}

/* ---- without a terminal */

static unsigned page_width(const struct bc_console *console)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	long width = columns != NULL ? strtol(columns, NULL, 10) : 0;

	if (width > 0 && width <= (long)BC_TOP_WIDTH_MAX)
		return (unsigned)width;
	if (ioctl(console->out, TIOCGWINSZ, &size) == 0 && size.ws_col != 0)
		return size.ws_col;
	return 80;
}

static enum bc_exit print_page(struct top *top)
{
	const unsigned others_max = 24; /* lines other than the tables */
	struct bc_output output;
	struct bc_top_grid grid;
	struct bc_top_now at = top_now();
	char line[BC_TOP_LINE_BYTES];
	unsigned blank = 0;

	top->view.width = page_width(top->console);
	top->view.height = others_max + bc_top_tables_height(top->view.width, top->state);
	if (!bc_output_open(&output, top->console))
		return BC_EXIT_FAILED;
	if (bc_top_page_draw(&grid, top->state, &top->view, &at) != 0)
		return bc_exit_worse(
			bc_print_no_memory(top->console), bc_output_close(&output, top->console));
	for (unsigned y = 0; y < grid.height; y++) {
		size_t bytes = bc_top_grid_line(&grid, y, line);
		if (bytes == 0) {
			blank++;
			continue;
		}
		for (; blank != 0; blank--)
			bc_output_text(&output, "\n", 1);
		bc_output_format(&output, "%s\n", line);
	}
	bc_top_grid_close(&grid);
	return bc_output_close(&output, top->console);
}

/* ---- the command */

static enum bc_exit run_top(struct top *top, bool is_once)
{
	enum bc_exit code = request_status(top);

	if (code != BC_EXIT_OK) {
		bc_print_error(top->console,
			code == BC_EXIT_UNREACHABLE ? bc_client_path(top->client) : NULL, "%s",
			top->state->err);
		return code;
	}
	bc_client_set_timeout(top->client, CALL_MS);
	request_mix(top);
	if (is_once || bc_top_screen_open(&top->screen, top->console->in, top->console->out) != 0)
		return print_page(top);
	top->view.is_screen = true;
	top->interrupt = bc_interrupt_open();
	run_screen(top);
	bc_top_screen_close(top->screen);
	return code;
}

/* Opens the client and runs. */
static enum bc_exit open_top(struct top *top, const char *socket, bool is_once)
{
	enum bc_exit code = bc_client_open(&top->client, top->console, socket);

	if (code != BC_EXIT_OK)
		return code;
	/* Only LC_CTYPE: numbers must not depend on the locale. */
	setlocale(LC_CTYPE, "");
	top->view.is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	code = run_top(top, is_once);
	if (top->shown != top->state)
		bc_top_state_free(top->shown);
	bc_client_close(top->client);
	return code;
}

enum bc_exit bc_cmd_top(const struct bc_console *console, int argc, char **argv)
{
	struct bc_options o;
	struct top top = {.console = console, .delay_ns = BC_NS_PER_S};
	const char *socket = NULL;
	struct bc_name_map *names = NULL;
	enum bc_exit code = BC_EXIT_OK;
	bool is_finished = false;
	bool is_once = false;
	int letter;

	bc_options_start(&o, console, &bc_top_usage, argc, argv);
	while (!is_finished && (letter = bc_options_next(&o)) != -1) {
		if (bc_name_args_has(letter))
			code = bc_name_args_add(&names, console, letter);
		else if (letter == '?')
			code = o.exit;
		else if (letter == BC_CLIENT_OPT_SOCKET)
			socket = optarg;
		else if (letter == OPTION_ONCE)
			is_once = true;
		else if (letter == 'd' && !bc_option_time(console, "--delay", BC_NS_PER_S,
						  86400 * BC_NS_PER_S, &top.delay_ns))
			code = BC_EXIT_USAGE;
		is_finished = letter == '?' || code != BC_EXIT_OK;
	}
	if (!is_finished && optind != argc) {
		code = bc_print_usage_error(console, BC_NO_OPERANDS);
	} else if (!is_finished) {
		top.state = top.shown = calloc(1, sizeof(*top.state));
		if (top.state != NULL) {
			top.state->names = names;
			code = open_top(&top, socket, is_once);
		} else {
			code = bc_print_no_memory(console);
		}
		bc_top_state_free(top.state);
	}
	bc_name_map_close(names);
	return code;
}
