/* Fuzz target: what the command-line tool does with the daemon's responses. The first byte selects
 * the command (bits 0 to 3) and the response (bits 4 to 6): the input as a body after a valid
 * header with a status, or the whole response. Command 0 is tail if bit 7 is set; otherwise it
 * prints the input as an event and as a status, without a socket. Output and messages must be
 * printable UTF-8 on whole lines. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/io/client.h"
#include "cli/live/response_text.h"
#include "cli/live/status.h"
#include "tests/fuzz/scratch.h"
#include "tests/support/answered.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum bc_exit read_stream(const struct bc_console *console, int argc, char **argv);

static const struct answered_command commands[] = {
	{.line = "status"},
	{.line = "status --json"},
	{.line = "record list"},
	{.line = "record show"},
	{.line = "record show 20261120T091500Z-3f9a2c"},
	{.line = "record stop"},
	{.line = "record list --json"},
	{.line = "rotate"},
	{.line = "mark here"},
	{.line = "snapshot"},
	{.line = "trigger list"},
	{.line = "trigger add roi mark gap"},
	{"events", read_stream},
	{.line = "tail -t wall"},
};

static struct bc_event_times times;

/* Prints a line of a stream of events. */
static bool on_line(void *context, char *text, size_t bytes)
{
	struct bc_output *output = context;
	json_t *json = json_loadb(text, bytes, JSON_ALLOW_NUL, NULL);

	if (text[bytes] != '\0' || memchr(text, '\n', bytes) != NULL)
		abort();
	if (!json_is_object(json) || !bc_event_print(output, json, &times))
		bc_output_json(output, text, bytes);
	json_decref(json);
	bc_output_text(output, "\n", 1);
	return bytes < 1000;
}

/* Reads a stream to its end, as events and tail do. */
static enum bc_exit read_stream(const struct bc_console *console, int argc, char **argv)
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

/* Prints the input in all forms that need no request. */
static void print_json(const uint8_t *data, size_t size)
{
	struct bc_output output;
	json_t *json = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
	int fd = memfd_create("out", MFD_CLOEXEC);

	if (fd < 0 || !bc_output_open_fd(&output, fd))
		abort();
	if (json_is_object(json)) {
		bc_event_print(&output, json, &times);
		if (bc_is_status(json))
			bc_status_print(&output, json, "");
	}
	if (answered_text_fault(output.buffer, output.used, false) != NULL)
		abort();
	output.used = 0;
	free(output.buffer);
	close(fd);
	json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const statuses[] = {"200 OK", "200 OK", "201 Created", "400 Bad Request",
		"404 Not Found", "503 Service Unavailable", NULL, NULL};
	static int dir_fd = -1;
	struct command_run answered;

	if (dir_fd < 0)
		dir_fd = scratch_open();
	if (size == 0)
		return 0;
	unsigned number = data[0] & 15;
	if (number == 0 && data[0] < 128) {
		print_json(data + 1, size - 1);
		return 0;
	}
	const struct answered_command *command = &commands[(number + COMMANDS - 1) % COMMANDS];
	const struct answer answer = {statuses[data[0] >> 4 & 7], data + 1, size - 1};
	answered_run(&answered, command, dir_fd, &answer);
	if (answered_fault(&answered, command) != NULL)
		abort();
	command_run_free(&answered);
	return 0;
}
