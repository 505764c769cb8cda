/* Software boards (usbfs.h) in a whole buscapd, for the system tests: linked with its objects, this
 * makes build/tests/buscapd_usb. tests/support/usb_harness.py drives it.
 *
 * If USB_BOARDS names a directory, then before main() a line is executed for each line of its file
 * `setup`, and later for each connection to its socket `control`, which is answered with a line.
 * Boards are numbered from 1 and start unplugged; the first one plugged in gets port 1-1.
 *
 *     new KEY=VALUE,...      board_new_of()
 *     plug N | unplug N
 *     board N COMMAND        board_command()
 *     deny | allow           boards can't be opened (EACCES)
 *
 * At the program's end, `end` gets each board's answer to `sent`, then what the program left open:
 * descriptors, claims, URBs and monitors. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/board/usbfs.h"

#define BOARDS     8
#define LINE_BYTES 1024

struct remote {
	struct board *board;
	struct usbfs_port *port; /* of the latest plug, or NULL */
	bool is_plugged;
};

/* There is one program, and it has one directory. */
static struct {
	pthread_mutex_t lock;
	char directory[PATH_MAX];
	struct remote boards[BOARDS];
	unsigned count;
	int listener;
} r = {.lock = PTHREAD_MUTEX_INITIALIZER, .listener = -1};

static void die(const char *what)
{
	fprintf(stderr, "buscapd_usb: %s: %s\n", what, strerror(errno));
	abort();
}

static bool add_board(char *text)
{
	struct board *board = r.count < BOARDS ? board_new_of(text) : NULL;

	if (board == NULL)
		return false;
	board_unplug(board);
	r.boards[r.count++].board = board;
	return true;
}

static void plug(struct remote *remote, bool is_plugged)
{
	if (is_plugged && !remote->is_plugged)
		remote->port = usbfs_plug(remote->board);
	if (!is_plugged && remote->is_plugged)
		usbfs_unplug(remote->port);
	remote->is_plugged = is_plugged;
}

static void command_board(struct remote *remote, const char *line, char answer[BOARD_ANSWER])
{
	if (remote->port != NULL)
		usbfs_command(remote->port, line, answer);
	else
		board_command(remote->board, line, answer, 0);
}

static void run(char *line, char answer[BOARD_ANSWER])
{
	char *rest = line + strcspn(line, " ");
	char *end;

	snprintf(answer, BOARD_ANSWER, "ok");
	if (*rest != '\0')
		*rest++ = '\0';
	unsigned long number = strtoul(rest, &end, 10);
	bool has_board = number >= 1 && number <= r.count;
	if (strcmp(line, "new") == 0 && add_board(rest))
		return;
	if (strcmp(line, "plug") == 0 && has_board)
		plug(&r.boards[number - 1], true);
	else if (strcmp(line, "unplug") == 0 && has_board)
		plug(&r.boards[number - 1], false);
	else if (strcmp(line, "board") == 0 && has_board)
		command_board(&r.boards[number - 1], end + strspn(end, " "), answer);
	else if (strcmp(line, "deny") == 0)
		usbfs_fail(USBFS_OPEN, EACCES, 0, UINT_MAX);
	else if (strcmp(line, "allow") == 0)
		usbfs_fail(USBFS_OPEN, 0, 0, 0);
	else
		snprintf(answer, BOARD_ANSWER, "error: %s", line);
}

static void serve_one(int fd)
{
	char line[LINE_BYTES];
	char answer[BOARD_ANSWER];

	ssize_t n = recv(fd, line, sizeof(line) - 1, 0);
	if (n > 0) {
		line[n] = '\0';
		pthread_mutex_lock(&r.lock);
		run(line, answer);
		pthread_mutex_unlock(&r.lock);
		send(fd, answer, strlen(answer), MSG_NOSIGNAL);
	}
	close(fd);
}

static void *serve(void *unused)
{
	int fd;

	while ((fd = accept4(r.listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		serve_one(fd);
	return unused;
}

static FILE *open_file(const char *name, const char *mode)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/%s", r.directory, name);
	FILE *file = fopen(path, mode);
	if (file == NULL)
		die(path);
	return file;
}

static void set_up(void)
{
	char line[LINE_BYTES];
	char answer[BOARD_ANSWER];
	FILE *file = open_file("setup", "re");

	while (fgets(line, sizeof(line), file) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		run(line, answer);
		if (strncmp(answer, "error", 5) == 0)
			die(answer);
	}
	fclose(file);
}

static void listen_for_commands(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	sigset_t all;
	sigset_t before;
	pthread_t thread;

	int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", r.directory);
	unlink(address.sun_path);
	r.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (n >= (int)sizeof(address.sun_path) || r.listener < 0 ||
		bind(r.listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
		listen(r.listener, 8) != 0)
		die(r.directory);
	/* Signals are for the program's own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errno = pthread_create(&thread, NULL, serve, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (errno != 0)
		die("thread");
}

__attribute__((constructor)) static void start(void)
{
	const char *directory = getenv("USB_BOARDS");

	if (directory == NULL)
		return;
	snprintf(r.directory, sizeof(r.directory), "%s", directory);
	unsetenv("USB_BOARDS"); /* not for programs that it starts */
	usbfs_start();
	usbfs_set_threaded(true);
	set_up();
	listen_for_commands();
}

__attribute__((destructor)) static void finish(void)
{
	char answer[BOARD_ANSWER];

	if (r.directory[0] == '\0')
		return;
	pthread_mutex_lock(&r.lock); /* for good: commands are no longer answered */
	FILE *file = open_file("end.new", "we");
	for (unsigned i = 0; i < r.count; i++) {
		char sent[] = "sent";
		command_board(&r.boards[i], sent, answer);
		fprintf(file, "%s\n", answer);
	}
	struct usbfs_leaks leaks = usbfs_stop();
	fprintf(file, "[%u, %u, %u, %u]\n", leaks.nodes, leaks.claims, leaks.urbs, leaks.monitors);
	char paths[2][PATH_MAX + 16];
	snprintf(paths[0], sizeof(paths[0]), "%s/end.new", r.directory);
	snprintf(paths[1], sizeof(paths[1]), "%s/end", r.directory);
	if (fclose(file) != 0 || rename(paths[0], paths[1]) != 0)
		die(paths[1]);
}
