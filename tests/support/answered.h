/* Runs commands of buscap in this process, each against a server that answers one request. Used by
 * tests and by a fuzz target, so nothing here asserts; it aborts if the system refuses something.
 *
 *     answered_run() -> answered_fault() -> command_run_free() */
#ifndef BC_TESTS_SUPPORT_ANSWERED_H
#define BC_TESTS_SUPPORT_ANSWERED_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "formats/base/utf8.h"
#include "tests/support/command_run.h"

struct answered_command {
	const char *line; /* without --socket */
	command_fn *run;  /* NULL: bc_commands_run() */
};

struct answer {
	const char *status; /* "200 OK"; NULL: the bytes are the whole response */
	const void *bytes;
	size_t count;
};

/* Replaces the C library's. Commands that print a stream leave this descriptor open until the
 * program exits. This one is never readable. */
int signalfd(int fd, const sigset_t *signals, int flags)
{
	static int one = -1;

	(void)fd;
	(void)signals;
	(void)flags;
	if (one < 0)
		one = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return one;
}

struct answered_server {
	int listen_fd;
	const struct answer *answer;
};

/* Reads a request with its body. */
static inline void answered_receive(int fd)
{
	char request[8192];
	size_t used = 0;
	size_t wanted = 0;

	while (wanted == 0 || used < wanted) {
		ssize_t n = recv(fd, request + used, sizeof(request) - 1 - used, 0);
		if (n <= 0)
			return;
		used += (size_t)n;
		request[used] = '\0';
		const char *body = strstr(request, "\r\n\r\n");
		const char *length = strcasestr(request, "\r\nContent-Length:");
		if (body != NULL)
			wanted = (size_t)(body + 4 - request) +
				 (length != NULL ? strtoul(length + 17, NULL, 10) : 0);
	}
}

/* Answers one request. A second connection is refused. */
static inline void *answered_serve(void *context)
{
	const struct answered_server *server = context;
	const struct answer *answer = server->answer;
	char head[128];
	int fd = accept(server->listen_fd, NULL, NULL);

	close(server->listen_fd);
	if (fd < 0)
		return NULL;
	answered_receive(fd);
	if (answer->status != NULL) {
		int n = snprintf(head, sizeof(head),
			"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: "
			"%zu\r\n\r\n",
			answer->status, answer->count);
		(void)!send(fd, head, (size_t)n, MSG_NOSIGNAL);
	}
	(void)!send(fd, answer->bytes, answer->count, MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	close(fd);
	return NULL;
}

static inline int answered_listen(int dir_fd, struct sockaddr_un *address)
{
	char dir[64];
	char target[80];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* By its real name: the commands show it. */
	snprintf(dir, sizeof(dir), "/proc/self/fd/%d", dir_fd);
	ssize_t n = readlink(dir, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	address->sun_family = AF_UNIX;
	snprintf(address->sun_path, sizeof(address->sun_path), "%s/socket", target);
	unlink(address->sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)address, sizeof(*address)) != 0 ||
		listen(fd, 1) != 0)
		abort();
	return fd;
}

/* Runs the command against a server at "socket" in this directory. */
static inline void answered_run(struct command_run *r, const struct answered_command *command,
	int dir_fd, const struct answer *answer)
{
	struct sockaddr_un address;
	struct answered_server server = {answered_listen(dir_fd, &address), answer};
	pthread_t thread;
	char *line;

	if (asprintf(&line, "%s --socket %s", command->line, address.sun_path) < 0 ||
		pthread_create(&thread, NULL, answered_serve, &server) != 0)
		abort();
	command_run_by(r, command->run != NULL ? command->run : bc_commands_run, line);
	pthread_join(thread, NULL);
	free(line);
}

/* Returns what is wrong with an output, or NULL. It has whole lines of valid UTF-8 without control
 * characters; the lines of tail have tabs. */
static inline const char *answered_text_fault(const char *text, size_t bytes, bool has_tabs)
{
	const unsigned char *at = (const unsigned char *)text;

	if (bytes != 0 && text[bytes - 1] != '\n')
		return "the output ends within a line";
	if (!bc_utf8_is_valid(text, bytes))
		return "the output is not UTF-8";
	for (size_t i = 0; i < bytes; i++) {
		if ((at[i] < ' ' && at[i] != '\n' && !(has_tabs && at[i] == '\t')) || at[i] == 0x7F)
			return "the output contains a control character";
		if (at[i] == 0xC2 && at[i + 1] < 0xA0) /* U+0080 .. U+009F */
			return "the output contains a C1 control character";
	}
	return NULL;
}

/* Returns what is wrong whatever the answer was, or NULL. */
static inline const char *answered_fault(
	const struct command_run *a, const struct answered_command *command)
{
	bool is_tail = strncmp(command->line, "tail", 4) == 0;

	if (a->code != BC_EXIT_OK && a->code != BC_EXIT_FAILED && a->code != BC_EXIT_USAGE &&
		a->code != BC_EXIT_DAMAGED && a->code != BC_EXIT_UNREACHABLE)
		return "the exit code is not one of buscap";
	if (a->code != BC_EXIT_OK && a->err_bytes == 0)
		return "it failed without an error message";
	const char *fault = answered_text_fault(a->err, a->err_bytes, false);
	return fault != NULL ? fault : answered_text_fault(a->out, a->out_bytes, is_tail);
}

#endif
