/* Fuzz target: what the command-line tool does with the daemon's responses. The first byte selects
 * the command (bits 0 to 3) and the response (bits 4 to 6): the input as a body after a valid
 * header with a status, or the whole response. Command 0 prints the input as an event and as a
 * status, without a socket. Output and messages must be printable UTF-8 on whole lines. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/client/client.h"
#include "cli/client/daemon_command.h"
#include "cli/client/event_text.h"
#include "cli/client/status.h"
#include "cli/client/status_lines.h"
#include "cli/client/status_model.h"
#include "formats/base/utf8.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_stream(const struct bc_console *console, int argc, char **argv);

static const struct command {
	int (*run)(const struct bc_console *console, int argc, char **argv);
	const char *words[5];
} commands[] = {
	{bc_cmd_status, {"status"}},
	{bc_cmd_status, {"status", "--json"}},
	{bc_cmd_daemon, {"record", "list"}},
	{bc_cmd_daemon, {"record", "show"}},
	{bc_cmd_daemon, {"record", "show", "20261120T091500Z-3f9a2c"}},
	{bc_cmd_daemon, {"record", "stop"}},
	{bc_cmd_daemon, {"record", "list", "--json"}},
	{bc_cmd_daemon, {"rotate"}},
	{bc_cmd_daemon, {"mark", "here"}},
	{bc_cmd_daemon, {"snapshot"}},
	{bc_cmd_daemon, {"trigger", "list"}},
	{bc_cmd_daemon, {"trigger", "add", "roi", "mark", "gap"}},
	{bc_cmd_daemon, {"replay", "list"}},
	{bc_cmd_daemon, {"replay", "cancel"}},
	{read_stream, {"events"}},
};

/* Prints a line of a stream of events. */
static bool on_line(void *context, char *text, size_t bytes)
{
	struct bc_output *output = context;
	json_t *json = json_loadb(text, bytes, JSON_ALLOW_NUL, NULL);

	if (text[bytes] != '\0' || memchr(text, '\n', bytes) != NULL)
		abort();
	if (!json_is_object(json) || !bc_event_print(output, json))
		bc_output_json(output, text, bytes);
	json_decref(json);
	bc_output_text(output, "\n", 1);
	return bytes < 1000;
}

/* Reads a stream to its end, as events and tail do. */
static int read_stream(const struct bc_console *console, int argc, char **argv)
{
	struct bc_client *client;
	struct bc_output output;

	if (!bc_output_open_fd(&output, console->out) ||
		bc_client_open(&client, console, argv[argc - 1]) != BC_EXIT_OK)
		abort();
	enum bc_exit code = bc_client_stream(client, "/v1/events", on_line, &output);
	while (code == BC_EXIT_OK && !bc_client_is_over(client))
		code = bc_client_wait(client, NULL, 0, 1000);
	if (code != BC_EXIT_OK)
		bc_client_print_error(client, code);
	bc_client_close(client);
	return bc_exit_worse(code, bc_output_close(&output, console));
}

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void check_text(const char *text, size_t bytes)
{
	if (bytes != 0 && text[bytes - 1] != '\n')
		abort();
	if (!bc_utf8_is_valid(text, bytes))
		abort();
	for (size_t i = 0; i < bytes; i++)
		if (((unsigned char)text[i] < ' ' && text[i] != '\n') || text[i] == '\x7f')
			abort();
}

/* Prints the input in all forms that need no request. */
static void print_json(const uint8_t *data, size_t size)
{
	static struct bc_status_model status;
	struct bc_output output;
	json_t *json = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
	int fd = memfd_create("out", MFD_CLOEXEC);

	if (fd < 0 || !bc_output_open_fd(&output, fd))
		abort();
	if (json_is_object(json)) {
		bc_event_print(&output, json);
		bool is_status = bc_status_model_parse(&status, json);
		if (is_status)
			bc_status_print(&output, &status, "");
	}
	check_text(output.buffer, output.used);
	output.used = 0;
	free(output.buffer);
	close(fd);
	json_decref(json);
}

struct server {
	int listen_fd;
	const uint8_t *data;
	size_t size;
	const char *status; /* NULL: the data is the whole response */
};

/* Answers one request. */
static void *serve(void *context)
{
	struct server *s = context;
	char request[4096];
	char head[128];
	int fd = accept(s->listen_fd, NULL, NULL);

	close(s->listen_fd);
	if (fd < 0)
		return NULL;
	(void)!recv(fd, request, sizeof(request), 0);
	if (s->status != NULL) {
		int n = snprintf(head, sizeof(head),
			"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: "
			"%zu\r\n\r\n",
			s->status, s->size);
		(void)!send(fd, head, (size_t)n, MSG_NOSIGNAL);
	}
	(void)!send(fd, s->data, s->size, MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	close(fd);
	return NULL;
}

static int listen_at(int dir_fd, struct sockaddr_un *address)
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

static void run_command(const struct command *command, struct server *server, char *path)
{
	char *argv[8];
	int argc = 0;
	char *err = NULL;
	size_t err_bytes;
	pthread_t thread;

	for (int i = 0; i < 5 && command->words[i] != NULL; i++)
		argv[argc++] = strdup(command->words[i]);
	argv[argc++] = strdup("--socket");
	argv[argc++] = strdup(path);
	argv[argc] = NULL;
	char *words[8];
	memcpy(words, argv, sizeof(words)); /* getopt permutes argv */
	struct bc_console console = {.in = -1,
		.out = memfd_create("out", MFD_CLOEXEC),
		.err = open_memstream(&err, &err_bytes),
		.command = argv[0]};
	if (console.out < 0 || console.err == NULL ||
		pthread_create(&thread, NULL, serve, server) != 0)
		abort();
	int code = command->run(&console, argc, argv);
	pthread_join(thread, NULL);
	fclose(console.err);
	if (code < 0 || code > BC_EXIT_UNREACHABLE || (code != 0 && err_bytes == 0))
		abort();
	check_text(err, err_bytes);
	off_t bytes = lseek(console.out, 0, SEEK_END);
	if (bytes > 0) {
		char *text = malloc((size_t)bytes);
		if (text == NULL || pread(console.out, text, (size_t)bytes, 0) != bytes)
			abort();
		check_text(text, (size_t)bytes);
		free(text);
	}
	close(console.out);
	for (int i = 0; i < argc; i++)
		free(words[i]);
	free(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const statuses[] = {"200 OK", "200 OK", "201 Created", "400 Bad Request",
		"404 Not Found", "503 Service Unavailable", NULL, NULL};
	static int dir_fd = -1;
	struct sockaddr_un address;

	if (dir_fd < 0)
		dir_fd = scratch_open();
	if (size == 0)
		return 0;
	unsigned number = data[0] & 15;
	if (number == 0) {
		print_json(data + 1, size - 1);
		return 0;
	}
	struct server server = {.data = data + 1,
		.size = size - 1,
		.status = statuses[data[0] >> 4 & 7],
		.listen_fd = listen_at(dir_fd, &address)};
	run_command(&commands[(number - 1) % COMMANDS], &server, address.sun_path);
	return 0;
}
