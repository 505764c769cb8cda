/* Fuzz target: bytes sent by a client. The input reaches a server in pieces, through a socket. The
 * server answers each request immediately, later, or with a stream, depending on the path. Every
 * request must be answered, and all resources must be released. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "formats/http/server.h"

#define PENDING 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	struct bc_server *server;
	struct sockaddr_un address;
	socklen_t address_bytes;
	int listen_fd;
	struct bc_request *late[PENDING];
	unsigned late_count;
	unsigned streams;
};

static size_t read_stream(void *context, char *out, size_t room)
{
	(void)context;
	if (room < 100)
		abort();
	memset(out, 's', 50);
	return 50;
}

static size_t read_nothing(void *context, char *out, size_t room)
{
	(void)context;
	(void)out;
	(void)room;
	return 0;
}

static bool is_over(void *context)
{
	(void)context;
	return false;
}

static void on_closed(void *context)
{
	struct run *run = context;

	if (run->streams-- == 0)
		abort();
}

static const struct bc_stream_ops sending = {
	.read = read_stream, .is_over = is_over, .closed = on_closed};
static const struct bc_stream_ops waiting = {
	.read = read_nothing, .is_over = is_over, .closed = on_closed};

static bool count_query(void *context, const char *name, const char *value)
{
	size_t *n = context;

	*n += strlen(name) + strlen(value);
	return true;
}

static void answer(struct run *run, struct bc_request *request)
{
	char text[64];
	size_t n;
	const char *body = bc_request_body(request, &n);
	const char *type = bc_request_header(request, "Content-Type");

	if (body[n] != '\0')
		abort();
	bc_request_each_query(request, &n, count_query);
	n += type != NULL ? strlen(type) : 0;
	snprintf(text, sizeof(text), "%zu\n", n + strlen(bc_request_method(request)));
	(void)run;
	bc_request_respond(request, 200, "text/plain", strdup(text), NULL);
}

static void on_request(void *context, struct bc_request *request)
{
	struct run *run = context;
	const char *path = bc_request_path(request);
	const char *query = bc_request_query(request, "q");

	if (strchr(path, 'l') != NULL && run->late_count < PENDING) {
		run->late[run->late_count++] = request;
	} else if (strchr(path, 's') != NULL) {
		if (bc_request_stream(request, "text/plain", query != NULL ? &waiting : &sending,
			    run) == NULL)
			abort();
		run->streams++;
	} else {
		answer(run, request);
	}
}

static void answer_all(struct run *run)
{
	for (unsigned i = 0; i < run->late_count; i++)
		answer(run, run->late[i]);
	run->late_count = 0;
}

static void run_server(struct run *run)
{
	for (int i = 0; i < 4; i++)
		bc_server_run(run->server);
	answer_all(run);
}

static void start_server(struct run *run)
{
	struct bc_server_options options = {
		.is_local = true, .connections_max = 8, .context = run, .request = on_request};
	char err[256];

	memset(run, 0, sizeof(*run));
	run->address.sun_family = AF_UNIX;
	run->address_bytes = sizeof(run->address);
	run->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (bind(run->listen_fd, (struct sockaddr *)&run->address,
		    sizeof(run->address.sun_family)) != 0 ||
		getsockname(run->listen_fd, (struct sockaddr *)&run->address,
			&run->address_bytes) != 0 ||
		listen(run->listen_fd, 8) != 0)
		abort();
	options.listen_fd = run->listen_fd;
	if (!bc_server_load(err, sizeof(err)) || bc_server_start(&run->server, &options) != 0)
		abort();
}

static void stop_server(struct run *run)
{
	bc_server_close(run->server);
	answer_all(run);
	if (run->streams != 0)
		abort();
	close(run->listen_fd);
}

/* The first byte selects the length of the pieces and whether the client closes before the
 * answers. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run run;
	char answers[4096];

	if (size == 0)
		return 0;
	size_t piece = (size_t)1 << (data[0] & 15);
	start_server(&run);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&run.address, run.address_bytes) != 0)
		abort();
	for (size_t at = 1; at < size;) {
		size_t n = size - at < piece ? size - at : piece;
		if (send(fd, data + at, n, MSG_NOSIGNAL) != (ssize_t)n)
			break;
		at += n;
		run_server(&run);
		if (recv(fd, answers, sizeof(answers), 0) == 0)
			break;
	}
	if ((data[0] & 16) != 0)
		shutdown(fd, SHUT_WR);
	if ((data[0] & 32) != 0)
		close(fd);
	if ((data[0] & 64) != 0)
		run_server(&run);
	stop_server(&run);
	if ((data[0] & 32) == 0)
		close(fd);
	return 0;
}
