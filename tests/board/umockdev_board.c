/* umockdev_board [BOARD]... Software boards for programs that run under libumockdev-preload: the
 * programs see them in sysfs, are notified by udev, and use them through /dev/bus/usb.
 * tests/support/usb_harness.py drives it.
 *
 * BOARD is a list of key=value, separated by commas, as in struct board_options: vid, pid, serial,
 * firmware, form (bcp1 or raw6), ftdi, packet, seed, agents, rate, fifo, and `send`, as the command
 * of that name. Default: one board. Boards are numbered from 1, are on ports 1, 2, ... of one hub,
 * and start unplugged.
 *
 * It prints "ready DIR"; programs need UMOCKDEV_DIR=DIR. Then it reads commands from standard
 * input and answers each line with a line: "ok", the answer, or "error: ...". It ends on `quit` or
 * the end of the input; the programs must have ended before.
 *
 *     plug N | unplug N [event-first]   event-first: udev's event precedes the errors of open
 *     files
 *     deny N | allow N      the node can't be opened (EACCES), not even by root; allow notifies
 *     udev
 *     driver N NAME|none    bind a kernel driver at the next plug
 *     board N COMMAND       board_command()
 *     state N               open files, claims and transfers, as JSON
 *     discard-data N|off    N bytes of each transfer arrive 2 ms before the rest, so that it can
 *     be
 *                           discarded with data in it
 *     host xhci|split       split: a host without scatter-gather
 *     memory N|off          bytes for all transfers; default 16 MiB */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "tests/board/umockdev_bus.h"

static void write_state(struct port *port, char *answer)
{
	struct bus *bus = port->bus;

	pthread_mutex_lock(&bus->lock);
	struct host_state state = {0};
	if (port->device != NULL)
		state = host_state(port->device);
	snprintf(answer, BOARD_ANSWER,
		"{\"plugged\": %s, \"devnum\": %u, \"opens\": %llu, \"files\": %u, \"claimed\": "
		"%u, "
		"\"pending\": %u, \"completed\": %u, \"memory\": %llu, \"lost_bytes\": %llu}",
		port->device != NULL ? "true" : "false", port->devnum,
		(unsigned long long)port->opens, state.files, state.claimed, state.pending,
		state.completed, (unsigned long long)bus->host.memory_used,
		(unsigned long long)port->lost_bytes);
	pthread_mutex_unlock(&bus->lock);
}

static void run_board_command(struct port *port, const char *line, char *answer)
{
	struct bus *bus = port->bus;

	pthread_mutex_lock(&bus->lock);
	board_command(port->board, line, answer, bus_now_ns());
	bus_run(bus);
	pthread_mutex_unlock(&bus->lock);
}

/* Executes a command that takes a board's number. Returns NULL if there is no such command. */
static const char *port_command(struct bus *bus, const char *name, const char *rest, char *answer)
{
	char *end;
	unsigned long number = strtoul(rest, &end, 10);

	if (number < 1 || number > bus->boards)
		return "error: no such board";
	struct port *port = &bus->ports[number - 1];
	end += strspn(end, " ");
	if (strcmp(name, "plug") == 0)
		return port_plug(port);
	if (strcmp(name, "unplug") == 0)
		return port_unplug(port, strcmp(end, "event-first") == 0);
	if (strcmp(name, "deny") == 0)
		return port_deny(port, true);
	if (strcmp(name, "allow") == 0)
		return port_deny(port, false);
	if (strcmp(name, "driver") == 0) {
		snprintf(port->driver, sizeof port->driver, "%s", strcmp(end, "none") ? end : "");
		return "ok";
	}
	if (strcmp(name, "state") == 0)
		write_state(port, answer);
	else if (strcmp(name, "board") == 0)
		run_board_command(port, end, answer);
	else
		return "error: unknown command";
	return answer;
}

static const char *host_command(struct bus *bus, const char *name, const char *rest)
{
	const char *result = "ok";
	bool is_off = strcmp(rest, "off") == 0;

	pthread_mutex_lock(&bus->lock);
	if (strcmp(name, "discard-data") == 0)
		bus->host.discard_bytes = is_off ? 0 : strtoul(rest, NULL, 10);
	else if (strcmp(name, "memory") == 0)
		bus->host.memory_limit = is_off ? 0 : strtoul(rest, NULL, 10);
	else if (strcmp(name, "host") == 0 && strcmp(rest, "split") == 0)
		bus->host.capabilities = HOST_CAPABILITIES_SPLIT;
	else if (strcmp(name, "host") == 0 && strcmp(rest, "xhci") == 0)
		bus->host.capabilities = HOST_CAPABILITIES_XHCI;
	else
		result = NULL;
	pthread_mutex_unlock(&bus->lock);
	return result;
}

/* Returns false to end the program. */
static bool command(struct bus *bus, char *line)
{
	char answer[BOARD_ANSWER] = "";
	char *rest = line + strcspn(line, " ");

	if (*rest != '\0')
		*rest++ = '\0';
	if (strcmp(line, "quit") == 0)
		return false;
	const char *result = host_command(bus, line, rest);
	if (result == NULL)
		result = port_command(bus, line, rest, answer);
	printf("%s\n", result);
	return fflush(stdout) == 0;
}

/* ---- the program */

static bool set_option(struct board_options *options, const char *key, const char *value)
{
	unsigned long number = strtoul(value, NULL, 0);

	if (strcmp(key, "serial") == 0)
		options->serial = value;
	else if (strcmp(key, "firmware") == 0)
		options->firmware = value;
	else if (strcmp(key, "form") == 0)
		options->form = strcmp(value, "raw6") == 0 ? BOARD_RAW6 : BOARD_BCP1;
	else if (strcmp(key, "vid") == 0)
		options->vid = (uint16_t)number;
	else if (strcmp(key, "pid") == 0)
		options->pid = (uint16_t)number;
	else if (strcmp(key, "ftdi") == 0)
		options->is_ftdi = number != 0;
	else if (strcmp(key, "packet") == 0)
		options->packet_bytes = (uint16_t)number;
	else if (strcmp(key, "seed") == 0)
		options->seed = number;
	else if (strcmp(key, "agents") == 0)
		options->agents = (unsigned)number;
	else if (strcmp(key, "rate") == 0)
		options->rate = number;
	else if (strcmp(key, "fifo") == 0)
		options->fifo_samples = (uint32_t)number;
	else
		return false;
	return true;
}

static bool add_board(struct bus *bus, char *text)
{
	struct board_options options = {0};
	char send[64] = "send all";
	char answer[BOARD_ANSWER];
	char *state = NULL;

	for (char *pair = strtok_r(text, ",", &state); pair; pair = strtok_r(NULL, ",", &state)) {
		char *value = strchr(pair, '=');
		if (value == NULL)
			return false;
		*value++ = '\0';
		if (strcmp(pair, "send") == 0)
			snprintf(send, sizeof send, "send %s", value);
		else if (!set_option(&options, pair, value))
			return false;
	}
	return bus_add(bus, &options) &&
	       board_command(bus->ports[bus->boards - 1].board, send, answer, bus_now_ns());
}

/* Splits standard input into lines. Returns false to end the program. */
static bool read_lines(struct bus *bus, char *buffer, size_t room, size_t *held)
{
	ssize_t n = read(STDIN_FILENO, buffer + *held, room - *held);
	char *line = buffer;
	char *end;

	if (n <= 0)
		return false;
	*held += (size_t)n;
	while ((end = memchr(line, '\n', *held - (size_t)(line - buffer))) != NULL) {
		*end = '\0';
		if (!command(bus, line))
			return false;
		line = end + 1;
	}
	*held -= (size_t)(line - buffer);
	memmove(buffer, line, *held);
	return *held < room;
}

static void serve(struct bus *bus, int signals)
{
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = bus->timer, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	char buffer[4096];
	size_t held = 0;
	uint64_t expired;

	while (poll(fds, 3, -1) >= 0 || errno == EINTR) {
		if (fds[2].revents != 0)
			return;
		if (fds[1].revents != 0 && read(bus->timer, &expired, sizeof expired) > 0) {
			pthread_mutex_lock(&bus->lock);
			bus->timer_ns = UINT64_MAX;
			bus_run(bus);
			pthread_mutex_unlock(&bus->lock);
		}
		if (fds[0].revents != 0 && !read_lines(bus, buffer, sizeof buffer, &held))
			return;
	}
}

int main(int argc, char **argv)
{
	static struct bus bus;
	sigset_t ends;
	char one[] = "";

	/* Before any thread is started. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	int signals = signalfd(-1, &ends, SFD_CLOEXEC);
	for (int i = 1; i < argc; i++) {
		if (!add_board(&bus, argv[i])) {
			fprintf(stderr, "umockdev_board: %s: invalid board\n", argv[i]);
			return 2;
		}
	}
	if ((argc < 2 && !add_board(&bus, one)) || signals < 0 || !bus_start(&bus)) {
		fprintf(stderr, "umockdev_board: can't create the testbed\n");
		return 1;
	}
	printf("ready %s\n", bus.root);
	fflush(stdout);
	serve(&bus, signals);
	bus_stop(&bus);
	return 0;
}
