/* `buscap web`: finds the recordings and the daemon, listens, prints the link, and serves until a
 * signal arrives. Signals are blocked before the first thread starts, so only the main thread gets
 * them. What is opened here is closed here, after the server. */
#include "cli/term/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/io/client.h"
#include "cli/io/filter_args.h"
#include "cli/io/picture.h"
#include "cli/io/segment_input.h"
#include "cli/term/console.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "cli/web/web_link.h"
#include "cli/web/web_server.h"
#include "formats/base/text.h"
#include "formats/http/server.h"

#define LISTEN_DEFAULT "127.0.0.1"
#define BAD_PORT       "--port must be a port number, 1 to 65535"

enum {
	OPTION_OPEN = BC_CLIENT_OPT_MORE,
	OPTION_PORT,
	OPTION_LISTEN,
};

static const struct bc_usage_option options[] = {
	{'I', "input-format", "FMT", "format-read", "format of a trace (default: detected)"},
	{OPTION_OPEN, "open", NULL, NULL, "also open the page in a browser"},
	{OPTION_PORT, "port", "N", "number",
		"serve on this port, with a link that stays the same (default: a free port and a "
		"new link)"},
	{OPTION_LISTEN, "listen", "ADDR", "text",
		"serve on this address (default: " LISTEN_DEFAULT ")"},
	BC_NAME_OPTIONS,
	BC_CLIENT_OPTION_SOCKET,
	{0},
};

const struct bc_usage bc_web_usage = {
	.name = "web",
	.operands = "[FILE|DIR|ID]...",
	.kind = "recording",
	.summary = "show recordings and the daemon in a browser",
	.text = "Serves a page for a browser, and prints the link to it. The page shows what the "
		"daemon does now, and recordings by time and address, down to single records. "
		"Without an operand, these are the recordings in the daemon's directory. Runs "
		"until Ctrl-C. It only reads, and unless --listen says otherwise, only this host "
		"can connect. The link contains a secret token.",
	.options = options,
	.exits = BC_CLIENT_EXITS,
	.example = "buscap web --map pc --open",
};

struct web {
	const struct bc_console *console;
	const char *socket;
	const char *listen;
	uint64_t port; /* 0: a free one */
	bool opens_browser;
	union bc_tcp_address address;
	const char *const *words;
	int word_count;
	struct bc_operands operands; /* none: show only the live view */
	enum bc_format from;         /* of traces; BC_FORMAT_UNKNOWN: detected */
	struct bc_format_options format;
	struct bc_name_map *names;
	struct bc_web_data *data;
	struct bc_web_feed *feed;
};

/* Checks that the directories can be listed. Without the daemon's, only the live view is shown. */
static enum bc_exit check_dirs(struct web *w)
{
	for (int i = 0; i < w->operands.count; i++) {
		const struct bc_operand *operand = &w->operands.all[i];
		int fd = operand->is_dir ? open(operand->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
					 : -1;
		if (fd >= 0)
			close(fd);
		if (fd >= 0 || !operand->is_dir)
			continue;
		bc_print_error(w->console, operand->path, "can't open: %s%s", strerror(errno),
			w->word_count == 0 ? "; showing only what the daemon does now" : "");
		if (w->word_count != 0)
			return BC_EXIT_FAILED;
		bc_operands_close(&w->operands);
	}
	return BC_EXIT_OK;
}

/* Prints what is wrong with the files. Those that can't be read are left out of the page, which
 * needs at least one that can, or a directory. */
static enum bc_exit check_files(struct web *w)
{
	struct bc_segment_input input = {.operands = w->operands};
	const struct bc_segment_io io = bc_segment_input_io(&input);
	bool is_any = w->word_count == 0;

	for (int i = 0; i < w->operands.count; i++) {
		const struct bc_operand *operand = &w->operands.all[i];
		int fd = operand->is_dir ? -1 : io.open(io.context, operand->path);
		is_any = is_any || operand->is_dir || fd >= 0;
		if (fd >= 0)
			close(fd);
	}
	return is_any ? BC_EXIT_OK : bc_exit_worse(input.exit, BC_EXIT_FAILED);
}

static enum bc_exit find_recordings(struct web *w)
{
	enum bc_exit code = bc_operands_open(
		&w->operands, w->console, w->words, w->word_count, w->socket);

	if (code == BC_EXIT_OK)
		code = w->operands.exit;
	if (code == BC_EXIT_OK && bc_operands_have_file(&w->operands, "-"))
		code = bc_print_usage_error(w->console, "give files, not a pipe");
	if (code == BC_EXIT_OK)
		code = bc_picture_open(&w->operands, w->from, &w->format);
	if (code == BC_EXIT_DAMAGED)
		code = BC_EXIT_OK; /* the intact part is shown */
	if (code == BC_EXIT_OK)
		code = check_dirs(w);
	return code == BC_EXIT_OK ? check_files(w) : code;
}

static enum bc_exit read_address(struct web *w)
{
	bool is_v6 = strchr(w->listen, ':') != NULL;
	char text[BC_TCP_ADDRESS_TEXT];
	int n = snprintf(
		text, sizeof(text), is_v6 ? "[%s]:%u" : "%s:%u", w->listen, (unsigned)w->port);

	if (n < (int)sizeof(text) && bc_tcp_address_parse(&w->address, text))
		return BC_EXIT_OK;
	bc_print_error(w->console, NULL,
		"--listen %s: must be a numeric address, such as 127.0.0.1 or ::1; --port sets "
		"the port",
		w->listen);
	return BC_EXIT_USAGE;
}

static enum bc_exit listen_on(struct web *w, int *fd)
{
	char address[BC_TCP_ADDRESS_TEXT];

	*fd = bc_tcp_address_listen(&w->address);
	if (*fd >= 0)
		return BC_EXIT_OK;
	bc_tcp_address_write(address, &w->address);
	return bc_print_error(w->console, NULL, "%s: can't listen: %s%s", address, strerror(-*fd),
		*fd == -EADDRINUSE ? "; choose another --port" : "");
}

/* Without --port, an old link leads to any server that has the port now. On a network, others can
 * read the link. So in both cases the token of each link is new. */
static void keep_token(struct web *w, char token[BC_WEB_TOKEN_TEXT])
{
	char err[PATH_MAX + 600];

	if (w->port != 0 && bc_tcp_address_is_loopback(&w->address) &&
		!bc_web_token_keep(token, err, sizeof(err)))
		bc_print_error(
			w->console, NULL, "warning: the link is valid for this run only: %s", err);
}

/* Prints the link on its own line, and flushes it: a script may wait for it. */
static enum bc_exit print_link(struct web *w, const char *link)
{
	struct bc_output output;

	if (!bc_output_open(&output, w->console))
		return BC_EXIT_FAILED;
	bc_output_format(&output, "%s\n", link);
	return bc_output_close(&output, w->console);
}

static enum bc_exit serve_link(struct web *w, struct bc_web_server *server,
	const struct bc_web_guard *guard, int interrupt_fd)
{
	struct bc_web_browser browser = {0};
	char address[BC_TCP_ADDRESS_TEXT];
	char link[BC_TCP_ADDRESS_TEXT + BC_WEB_TOKEN_TEXT + 32];

	bc_tcp_address_write(address, &guard->address);
	snprintf(link, sizeof(link), "http://%s/?token=%s", address, guard->token);
	enum bc_exit code = print_link(w, link);
	if (code != BC_EXIT_OK)
		return code;
	if (w->opens_browser)
		bc_web_browser_open(&browser, w->console, link);
	bc_web_server_run(server, interrupt_fd);
	bc_web_browser_close(&browser);
	return BC_EXIT_OK;
}

static enum bc_exit fail_to_start(struct web *w, int rc)
{
	return bc_print_error(w->console, NULL, "can't start: %s", strerror(-rc));
}

/* Serves until a signal arrives. */
static enum bc_exit serve_on(struct web *w, int fd, int interrupt_fd)
{
	const struct bc_web_feed_options feed = {
		.console = w->console,
		.socket = w->socket,
		.is_expected = w->socket != NULL || w->word_count == 0,
		.names = w->names,
	};
	struct bc_web_server_options o = {
		.console = w->console, .socket = w->socket, .names = w->names};
	struct bc_web_server *server;

	int rc = bc_web_guard_init(&o.guard, &w->address);
	if (rc == 0)
		keep_token(w, o.guard.token);
	if (rc == 0)
		rc = bc_web_data_open(&w->data, &w->operands, w->names);
	if (rc == 0)
		rc = bc_web_feed_open(&w->feed, &feed);
	o.data = w->data;
	o.feed = w->feed;
	if (rc == 0)
		rc = bc_web_server_start(&server, fd, &o);
	if (rc != 0)
		return fail_to_start(w, rc);
	enum bc_exit code = serve_link(w, server, &o.guard, interrupt_fd);
	bc_web_server_close(server);
	return code;
}

static enum bc_exit serve(struct web *w, int interrupt_fd)
{
	int fd;

	enum bc_exit code = listen_on(w, &fd);
	if (code != BC_EXIT_OK)
		return code;
	if (!bc_tcp_address_is_loopback(&w->address))
		bc_print_error(w->console, NULL,
			"warning: other hosts can connect, and the connection is not encrypted: "
			"anyone who can read the network traffic gets the link; consider ssh -L");
	code = serve_on(w, fd, interrupt_fd);
	close(fd);
	return code;
}

static enum bc_exit load_library(const struct web *w)
{
	char err[256];

	if (bc_server_load(err, sizeof(err)))
		return BC_EXIT_OK;
	return bc_print_error(w->console, NULL, "%s", err);
}

static enum bc_exit run_web(struct web *w)
{
	enum bc_exit code = load_library(w);

	if (code == BC_EXIT_OK)
		code = find_recordings(w);
	if (code == BC_EXIT_OK) {
		/* Before there are threads, which must not get the signals. */
		int fd = bc_interrupt_open();
		code = fd >= 0 ? serve(w, fd) : fail_to_start(w, fd);
	}
	bc_web_feed_close(w->feed);
	bc_web_data_close(w->data);
	bc_operands_close(&w->operands);
	return code;
}

enum bc_exit bc_cmd_web(const struct bc_console *console, int argc, char **argv)
{
	struct web w = {.console = console,
		.listen = LISTEN_DEFAULT,
		.format = bc_format_options_default()};
	enum bc_exit code = BC_EXIT_OK;
	struct bc_options o;
	int letter;

	bc_options_start(&o, console, &bc_web_usage, argc, argv);
	while (code == BC_EXIT_OK && (letter = bc_options_next(&o)) != -1 && letter != '?') {
		if (letter == 'I')
			code = bc_option_read_format(console, "-I", &w.from, &w.format)
				       ? BC_EXIT_OK
				       : BC_EXIT_USAGE;
		else if (letter == OPTION_OPEN)
			w.opens_browser = true;
		else if (letter == OPTION_PORT)
			code = bc_number_read(&w.port, optarg) && w.port - 1 < UINT16_MAX
				       ? BC_EXIT_OK
				       : bc_print_usage_error(console, BAD_PORT);
		else if (letter == OPTION_LISTEN)
			w.listen = optarg;
		else if (letter == BC_CLIENT_OPT_SOCKET)
			w.socket = optarg;
		else if (bc_name_args_has(letter))
			code = bc_name_args_add(&w.names, console, letter);
	}
	if (letter == '?') {
		bc_name_map_close(w.names);
		return o.exit;
	}
	if (code == BC_EXIT_OK)
		code = read_address(&w);
	if (code == BC_EXIT_OK && w.names == NULL && (w.names = bc_name_map_open()) == NULL)
		code = bc_print_no_memory(console);
	if (code == BC_EXIT_OK) {
		w.words = (const char *const *)argv + optind;
		w.word_count = argc - optind;
		code = run_web(&w);
	}
	bc_name_map_close(w.names);
	return code;
}
