#include "cli/top/top.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/client/client.h"
#include "cli/term/json_path.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "cli/top/top_page.h"
#include "cli/top/top_screen.h"
#include "cli/top/top_state.h"
#include "cli/top/top_table.h"

#define SECOND_NS UINT64_C(1000000000)

/* How long a call may take once it runs: the keys wait meanwhile. */
#define CALL_MS 2000

/* A status comes each second; after so long without one nobody is taken to be there. */
#define SILENCE_NS (3 * SECOND_NS)

/* After so long of it a stream that is open but silent is begun anew. */
#define STALE_NS (10 * SECOND_NS)

enum {
	OPTION_ONCE = BC_CLIENT_OPT_MORE,
};

static const struct bc_usage_option options[] = {
	{OPTION_ONCE, "once", NULL, NULL, "print one page and exit, also on a terminal"},
	BC_CLIENT_OPTION_SOCKET,
	{0},
};

const struct bc_usage bc_top_usage = {
	.name = "top",
	.summary = "show what goes on in the daemon and on the bus, in a terminal",
	.text = "Shows what goes on in the daemon and on the bus, each second anew: rates, buffer "
		"and losses with their last minutes, disk, board, recording, what is on the bus by "
		"type and processor, the hottest pages. Without a terminal it prints one page; "
		"over ssh, `ssh -t` gives it one. docs/top.md says what each figure is. $NO_COLOR "
		"is heeded.\n"
		"\n"
		"Keys: q quits, p pauses the display, s changes the order of the tables, ? shows "
		"the keys.",
	.options = options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap top --once",
};

struct top {
	const struct bc_console *console;
	struct bc_client *client;
	struct bc_top_screen *screen;
	struct bc_top_state *state;
	struct bc_top_state *shown;  /* the same, or a copy while the display is paused */
	struct bc_top_now paused_at; /* when that was made */
	struct bc_top_view view;
	int signals;
	bool is_polling;   /* this daemon has no events: it is asked each second */
	bool has_news;     /* a status came */
	bool is_dirty;     /* the screen isn't as it should be */
	uint64_t began_ns; /* when the stream was begun, or the daemon last asked */
};

static struct bc_top_now now(void)
{
	struct timespec monotonic;

	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	return (struct bc_top_now){
		.ns = (uint64_t)monotonic.tv_sec * SECOND_NS + (uint64_t)monotonic.tv_nsec,
		.wall = time(NULL),
	};
}

static bool take_status(struct top *top, const json_t *status)
{
	struct bc_top_now at = now();

	top->has_news = bc_top_state_status(top->state, status, &at);
	return top->has_news;
}

/* What is on the bus. A daemon that can't tell it is not away for that. */
static void ask_mix(struct top *top)
{
	struct bc_response response;
	enum bc_exit code = bc_client_call(top->client, "GET", "/v1/mix", NULL, &response);

	struct bc_top_now at = now();
	if (code != BC_EXIT_UNREACHABLE)
		bc_top_state_mix(top->state, code == BC_EXIT_OK ? response.json : NULL, &at);
	bc_response_free(&response);
}

static enum bc_exit ask_status(struct top *top)
{
	struct bc_response response;
	enum bc_exit code = bc_client_call(top->client, "GET", "/v1/status", NULL, &response);
	const char *err = bc_client_error(top->client);

	if (code == BC_EXIT_OK && !take_status(top, response.json)) {
		code = BC_EXIT_FAILED;
		err = "what answers there is no buscapd";
	}
	if (code != BC_EXIT_OK)
		bc_top_state_away(top->state, err);
	bc_response_free(&response);
	return code;
}

/* ---- the events */

static bool take_line(void *context, char *text, size_t bytes)
{
	struct top *top = context;
	json_t *object = bc_json_parse_object(text, bytes);
	const char *event = bc_json_path_text(object, "event");
	const json_t *status = bc_json_path(object, "status");

	/* Other events may have a status of their own: that of a command is a number. */
	if (event != NULL && strcmp(event, "status") == 0 && !take_status(top, status))
		bc_top_state_away(top->state, "what it sends is no status");
	json_decref(object);
	return true;
}

static void begin_stream(struct top *top)
{
	top->began_ns = now().ns;
	if (bc_client_stream(top->client, "/v1/events", take_line, top) != BC_EXIT_OK)
		bc_top_state_away(top->state, bc_client_error(top->client));
}

/* Waits for events, keys and signals. */
static void wait_stream(struct top *top, struct pollfd *fds, unsigned count, int timeout_ms)
{
	enum bc_exit code = bc_client_wait(top->client, fds, count, timeout_ms);
	bool is_over = code != BC_EXIT_OK || bc_client_is_over(top->client);

	if (!is_over || top->has_news)
		return;
	top->is_dirty = true;
	/* Refused, but somebody is there: events are not for us, the status may be. */
	top->is_polling = code == BC_EXIT_FAILED;
	if (!top->is_polling)
		bc_top_state_away(top->state,
			code == BC_EXIT_OK ? "it has ended" : bc_client_error(top->client));
}

/* What has to be done each second while no stream brings the status. */
static void look_again(struct top *top)
{
	uint64_t at = now().ns;
	bool is_over = bc_client_is_over(top->client);

	if (at - top->began_ns < SECOND_NS)
		return;
	if (is_over && top->is_polling) {
		top->began_ns = at;
		top->is_polling = ask_status(top) == BC_EXIT_OK;
		top->is_dirty = true;
	} else if (is_over ||
		   (at - top->state->looked_ns > STALE_NS && at - top->began_ns > STALE_NS)) {
		begin_stream(top);
	}
	at = now().ns; /* a status may have come meanwhile */
	if (!top->state->is_away && at - top->state->looked_ns > SILENCE_NS) {
		bc_top_state_away(top->state, "it says nothing");
		top->is_dirty = true;
	}
}

/* ---- the screen */

static void draw(struct top *top)
{
	struct bc_top_now at = top->view.is_paused ? top->paused_at : now();
	struct bc_top_grid grid;

	bc_top_screen_size(top->screen, &top->view.width, &top->view.height);
	if (bc_top_page_draw(&grid, top->shown, &top->view, &at) != 0)
		return; /* the next second may have the memory */
	bc_top_screen_show(top->screen, &grid);
	bc_top_grid_close(&grid);
	top->is_dirty = false;
}

static void pause_or_go_on(struct top *top)
{
	struct bc_top_state *copy;

	if (top->view.is_paused) {
		free(top->shown);
		top->shown = top->state;
		top->view.is_paused = false;
		return;
	}
	copy = malloc(sizeof(*copy));
	if (copy == NULL)
		return;
	memcpy(copy, top->state, sizeof(*copy));
	top->shown = copy;
	top->paused_at = now();
	top->view.is_paused = true;
}

/* Returns false when it is to end. */
static bool take_key(struct top *top, int key)
{
	if (key == 'q' || key == BC_TOP_KEY_GONE)
		return false;
	top->is_dirty = true;
	if (top->view.is_help)
		top->view.is_help = false;
	else if (key == '?' || key == 'h')
		top->view.is_help = true;
	else if (key == 'p' || key == ' ')
		pause_or_go_on(top);
	else if (key == 's')
		top->view.is_by_name = !top->view.is_by_name;
	else if (key == 'L' - '@') /* Ctrl-L */
		bc_top_screen_renew(top->screen);
	return true;
}

static bool take_keys(struct top *top)
{
	int key;

	while ((key = bc_top_screen_key(top->screen)) != BC_TOP_KEY_NONE)
		if (!take_key(top, key))
			return false;
	return true;
}

/* Returns false when it is to end. */
static bool take_signals(struct top *top)
{
	struct signalfd_siginfo info;

	while (read(top->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo != SIGWINCH)
			return false;
		bc_top_screen_resize(top->screen);
		top->is_dirty = true;
	}
	return true;
}

static void run_screen(struct top *top)
{
	const int tick_ms = 250;
	uint64_t drawn_ns = 0;

	begin_stream(top);
	for (;;) {
		struct pollfd fds[] = {{.fd = top->console->in, .events = POLLIN},
			{.fd = top->signals, .events = POLLIN}};
		if (top->has_news)
			ask_mix(top);
		/* While it is away it is told for how long. */
		bool is_old = top->state->is_away && now().ns - drawn_ns >= SECOND_NS;
		if ((top->has_news || is_old) && !top->view.is_paused)
			top->is_dirty = true;
		top->has_news = false;
		if (top->is_dirty) {
			draw(top);
			drawn_ns = now().ns;
		}
		if (bc_client_is_over(top->client))
			(void)poll(fds, 2, tick_ms);
		else
			wait_stream(top, fds, 2, tick_ms);
		if (!take_signals(top) || !take_keys(top))
			return;
		look_again(top);
	}
}

/* Signals that end it or tell of a new size, as something to wait for: the terminal is given back
 * before the end, and no drawing is cut in the middle. */
static int open_signals(sigset_t *before)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGWINCH);
	if (sigprocmask(SIG_BLOCK, &signals, before) != 0)
		return -errno;
	int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd >= 0 ? fd : -errno;
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
	const unsigned facts = 24; /* lines besides the tables, at most */
	struct bc_output output;
	struct bc_top_grid grid;
	struct bc_top_now at = now();
	char line[BC_TOP_LINE_BYTES];
	unsigned blank = 0;

	top->view.is_screen = false;
	top->view.width = page_width(top->console);
	top->view.height = facts + bc_top_tables_wanted(top->view.width, top->state);
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

static enum bc_exit run(struct top *top, bool is_once)
{
	sigset_t before;
	enum bc_exit code = ask_status(top);

	if (code != BC_EXIT_OK) {
		bc_print_error(top->console,
			code == BC_EXIT_UNREACHABLE ? bc_client_path(top->client) : NULL, "%s",
			top->state->err);
		return code;
	}
	bc_client_set_timeout(top->client, CALL_MS);
	ask_mix(top);
	/* The signals first, so that no size is missed between. */
	top->signals = open_signals(&before);
	top->view.is_screen = true;
	if (is_once || top->signals < 0 ||
		bc_top_screen_open(&top->screen, top->console->in, top->console->out) != 0) {
		code = print_page(top);
	} else {
		run_screen(top);
		bc_top_screen_close(top->screen);
	}
	if (top->signals >= 0)
		close(top->signals);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return code;
}

int bc_cmd_top(const struct bc_console *console, int argc, char **argv)
{
	struct bc_options o;
	struct top top = {.console = console};
	const char *socket = NULL;
	bool is_once = false;
	int letter;

	bc_options_start(&o, console, &bc_top_usage, argc, argv);
	while ((letter = bc_options_next(&o)) != -1) {
		if (letter == '?')
			return o.exit;
		if (letter == BC_CLIENT_OPT_SOCKET)
			socket = optarg;
		is_once = is_once || letter == OPTION_ONCE;
	}
	if (optind != argc)
		return bc_print_usage_error(console, "it takes no file");
	/* The characters that may be drawn are the terminal's; numbers stay as they are. */
	setlocale(LC_CTYPE, "");
	top.view.is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	enum bc_exit code = bc_client_open(&top.client, console, socket);
	if (code != BC_EXIT_OK)
		return code;
	top.state = calloc(1, sizeof(*top.state));
	top.shown = top.state;
	if (top.state != NULL) {
		code = run(&top, is_once);
	} else {
		code = bc_print_no_memory(console);
	}
	if (top.shown != top.state)
		free(top.shown);
	free(top.state);
	bc_client_close(top.client);
	return code;
}
