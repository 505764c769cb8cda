/* The software board (tests/board/board.h) as a USB device for a virtual machine: listens on a
 * Unix socket and speaks usbredir with the QEMU that connects. The connection is the plug: the
 * board has power while it lasts. Commands come on standard input, one per line. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/board/usbredir_peer.h"

#define LINE_BYTES 4096u
#define FINISH_MS  5000u /* limit for an unplug; the other side may be held up */

enum exit_code { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct server {
	const char *path;
	struct board *board;
	int listener;
	int signals;
	struct peer *peer; /* NULL: not connected */
	const char *keep;  /* path prefix for copies of the stream, or NULL */
	FILE *kept;        /* for this connection */
	unsigned connections;
	bool is_allowed; /* false: unplugged by command; connections wait */
	bool is_over;
	bool is_broken; /* the exit code will be 1 */
	char line[LINE_BYTES];
	size_t line_bytes;
	bool is_too_long; /* skip the rest of this line */
};

static const char help[] =
	"usage: usbredir_board BOARD SOCKET [FILE]\n"
	"\n"
	"Connects a simulated capture board to a virtual machine, as a USB device over usbredir.\n"
	"BOARD is serial=TEXT,firmware=TEXT,rate=N,seed=N,agents=N,fifo=N or a part of these. Its\n"
	"stream is copied to FILE.1, that of the next connection to FILE.2, ...\n"
	"\n"
	"The board is plugged in while a virtual machine is connected:\n"
	"\n"
	"  qemu-system-x86_64 ... -device qemu-xhci,id=xhci \\\n"
	"      -chardev socket,path=SOCKET,id=board,reconnect=1 \\\n"
	"      -device usb-redir,chardev=board,bus=xhci.0\n"
	"\n"
	"Commands on standard input, each answered with a line:\n"
	"\n"
	"  unplug, plug          close the connection and refuse others; accept the next one\n"
	"  state                 unplugged, waiting or connected\n"
	"  sent                  what was sent, as a JSON object\n"
	"  quit                  end, as at the end of standard input\n"
	"  rate N, stall, ...    all commands of tests/board/board.h\n";

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void complain(const char *what, const char *err)
{
	fprintf(stderr, "usbredir_board: %s: %s\n", what, err);
}

/* ---- the socket */

/* Returns the listening socket, or -1 after printing an error. */
static int open_listener(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path)) {
		complain(path, "too long for a socket path");
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		complain(path, strerror(errno));
		return -1;
	}
	unlink(path);
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
		listen(fd, 1) != 0) {
		complain(path, strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

/* Opens the file for the stream of the new connection. */
static bool open_kept(struct server *server)
{
	char path[4096];

	server->connections++;
	if (server->keep == NULL)
		return true;
	snprintf(path, sizeof(path), "%s.%u", server->keep, server->connections);
	server->kept = fopen(path, "we");
	if (server->kept == NULL)
		complain(path, strerror(errno));
	return server->kept != NULL;
}

/* If the stream could not be kept completely, the program ends with an error. */
static void close_kept(struct server *server)
{
	if (server->kept == NULL)
		return;
	bool is_bad = ferror(server->kept) != 0;
	if (fclose(server->kept) != 0 || is_bad) {
		complain(server->keep, "can't write the stream");
		server->is_over = true;
		server->is_broken = true;
	}
	server->kept = NULL;
}

static void accept_connection(struct server *server)
{
	int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return; /* it has disconnected again; poll() reports the next one */
	server->peer = peer_new(fd, server->board);
	if (server->peer == NULL) {
		complain(server->path, strerror(ENOMEM));
		close(fd);
		return;
	}
	if (!open_kept(server)) {
		server->is_over = true;
		server->is_broken = true;
		return;
	}
	peer_keep(server->peer, server->kept);
	if (!board_is_plugged(server->board))
		board_plug(server->board, now_ns());
}

static void drop_connection(struct server *server)
{
	peer_free(server->peer);
	server->peer = NULL;
	close_kept(server);
	if (board_is_plugged(server->board))
		board_unplug(server->board);
}

/* ---- commands */

static void answer(struct server *server, const char *text)
{
	if (puts(text) < 0 || fflush(stdout) != 0)
		server->is_over = true;
}

static void command_unplug(struct server *server)
{
	if (!server->is_allowed) {
		answer(server, "error: already unplugged");
		return;
	}
	server->is_allowed = false;
	if (server->peer != NULL)
		peer_finish(server->peer, FINISH_MS);
	drop_connection(server);
	answer(server, "ok");
}

static void command_plug(struct server *server)
{
	if (server->is_allowed) {
		answer(server, "error: already plugged in");
		return;
	}
	server->is_allowed = true;
	answer(server, "ok");
}

static void run_command(struct server *server, const char *line)
{
	char text[BOARD_ANSWER];

	if (strcmp(line, "quit") == 0) {
		server->is_over = true;
	} else if (strcmp(line, "unplug") == 0) {
		command_unplug(server);
	} else if (strcmp(line, "plug") == 0) {
		command_plug(server);
	} else if (strcmp(line, "state") == 0) {
		const char *idle = server->is_allowed ? "waiting" : "unplugged";
		answer(server, server->peer != NULL ? "connected" : idle);
	} else {
		board_command(server->board, line, text, now_ns());
		answer(server, text);
	}
}

static void push_byte(struct server *server, char byte)
{
	if (byte != '\n') {
		if (server->line_bytes < LINE_BYTES - 1)
			server->line[server->line_bytes++] = byte;
		else
			server->is_too_long = true;
		return;
	}
	server->line[server->line_bytes] = '\0';
	if (server->is_too_long)
		answer(server, "error: line too long");
	else
		run_command(server, server->line);
	server->line_bytes = 0;
	server->is_too_long = false;
}

static void read_commands(struct server *server)
{
	char bytes[LINE_BYTES];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		server->is_over = true;
	for (ssize_t i = 0; i < n && !server->is_over; i++)
		push_byte(server, bytes[i]);
}

/* ---- the loop */

static void turn_peer(struct server *server)
{
	if (peer_turn(server->peer, now_ns()))
		return;
	complain("connection ended", peer_error(server->peer));
	drop_connection(server);
}

static int wait_for_work(struct server *server, struct pollfd fds[3])
{
	uint64_t now = now_ns();
	uint64_t due = UINT64_MAX;

	fds[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = server->signals, .events = POLLIN};
	fds[2] = (struct pollfd){.fd = -1};
	if (server->peer != NULL) {
		fds[2].fd = peer_fd(server->peer);
		fds[2].events = peer_events(server->peer);
		due = peer_due_ns(server->peer, now);
	} else if (server->is_allowed) {
		fds[2].fd = server->listener;
		fds[2].events = POLLIN;
	}
	uint64_t wait = due > now ? due - now : 0;
	struct timespec t = {
		.tv_sec = (time_t)(wait / 1000000000u), .tv_nsec = (long)(wait % 1000000000u)};
	return ppoll(fds, 3, due == UINT64_MAX ? NULL : &t, NULL);
}

static bool serve(struct server *server)
{
	struct pollfd fds[3];

	while (!server->is_over) {
		if (wait_for_work(server, fds) < 0 && errno != EINTR) {
			complain("poll", strerror(errno));
			return false;
		}
		if (fds[1].revents != 0)
			break;
		if (server->peer == NULL && fds[2].revents != 0)
			accept_connection(server);
		if (fds[0].revents != 0)
			read_commands(server);
		if (server->peer != NULL)
			turn_peer(server);
	}
	return ferror(stdout) == 0;
}

static int open_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN); /* write() then returns EPIPE */
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv)
{
	struct server server = {.is_allowed = true, .listener = -1};
	bool is_well = false;

	if (argc < 3 || argc > 4) {
		fputs(help, stderr);
		return EXIT_USAGE;
	}
	server.path = argv[2];
	server.keep = argv[3];
	server.signals = open_signals();
	server.board = board_new_of(argv[1]);
	if (server.signals < 0 || server.board == NULL) {
		complain(argv[1], "no such board");
		goto out;
	}
	server.listener = open_listener(server.path);
	if (server.listener < 0)
		goto out;
	is_well = serve(&server);
	drop_connection(&server);
	is_well = is_well && !server.is_broken;
	unlink(server.path);
	close(server.listener);
out:
	board_free(server.board);
	if (server.signals >= 0)
		close(server.signals);
	return is_well ? EXIT_OK : EXIT_FAILED;
}
