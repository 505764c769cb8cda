/* A server next to a real loop, and its clients on real sockets, in one thread. Clients never
 * block: functions that wait for the server run both. */
#ifndef BC_TESTS_SUPPORT_SERVER_RIG_H
#define BC_TESTS_SUPPORT_SERVER_RIG_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "formats/base/clock.h"
#include "formats/http/server.h"
#include "tests/support/test.h"

/* A test that waits longer than this fails. */
#define RIG_WAIT_NS UINT64_C(300000000000)

struct server_rig {
	uv_loop_t loop;
	struct sockaddr_un address;
	int listen_fd;
	struct bc_server *server;
	void (*request)(struct server_rig *rig, struct bc_request *request);
	unsigned requests;
	void *context; /* for the test */
};

static inline void rig_on_request(void *context, struct bc_request *request)
{
	struct server_rig *rig = context;

	rig->requests++;
	rig->request(rig, request);
}

/* `with` may be NULL. Sets the members that the rig needs. */
static inline void rig_open(struct server_rig *rig, const struct bc_server_options *with,
	void (*request)(struct server_rig *rig, struct bc_request *request))
{
	struct bc_server_options options = {.is_local = true, .connections_max = 64};
	char err[256];

	if (with != NULL)
		options = *with;
	memset(rig, 0, sizeof(*rig));
	rig->request = request;
	assert_int_equal(uv_loop_init(&rig->loop), 0);
	rig->address.sun_family = AF_UNIX;
	/* An abstract socket, named by the kernel, leaves no file. */
	socklen_t length = sizeof(rig->address);
	rig->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(rig->listen_fd >= 0);
	assert_int_equal(bind(rig->listen_fd, (struct sockaddr *)&rig->address,
				 sizeof(rig->address.sun_family)),
		0);
	assert_int_equal(getsockname(rig->listen_fd, (struct sockaddr *)&rig->address, &length), 0);
	assert_int_equal(listen(rig->listen_fd, 512), 0);
	options.listen_fd = rig->listen_fd;
	options.context = rig;
	options.request = rig_on_request;
	assert_true(bc_server_load(err, sizeof(err)));
	assert_int_equal(bc_server_start(&rig->server, &options), 0);
}

static inline void rig_close_server(struct server_rig *rig)
{
	bc_server_close(rig->server);
	rig->server = NULL;
}

static inline void rig_close(struct server_rig *rig)
{
	rig_close_server(rig);
	uv_run(&rig->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&rig->loop), 0);
	close(rig->listen_fd);
}

static inline void rig_run(struct server_rig *rig, int n)
{
	struct pollfd server = {.events = POLLIN};

	server.fd = rig->server != NULL ? bc_server_fd(rig->server) : -1;
	while (n-- > 0) {
		uv_run(&rig->loop, UV_RUN_NOWAIT);
		if (poll(&server, 1, 0) > 0)
			bc_server_run(rig->server);
	}
}

/* Waits for work, but at most 1 ms: what a test waits for may be its own doing. */
static inline void rig_rest(const struct server_rig *rig)
{
	struct pollfd fds[] = {{.fd = uv_backend_fd(&rig->loop), .events = POLLIN},
		{.fd = rig->server != NULL ? bc_server_fd(rig->server) : -1, .events = POLLIN}};

	poll(fds, 2, 1);
}

#define RIG_UNTIL(rig, condition)                                \
	do {                                                     \
		uint64_t rig_end_ns = bc_now_ns() + RIG_WAIT_NS; \
		while (!(condition)) {                           \
			assert_true(bc_now_ns() < rig_end_ns);   \
			rig_run(rig, 1);                         \
			rig_rest(rig);                           \
		}                                                \
	} while (0)

static inline int rig_connect(struct server_rig *rig)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(rig->address.sun_family) + 6; /* a zero byte and five digits */

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&rig->address, length), 0);
	return fd;
}

/* Sends n bytes while running the loop. Returns fewer if the server closes the connection. */
static inline size_t rig_send(struct server_rig *rig, int fd, const char *bytes, size_t n)
{
	size_t done = 0;
	uint64_t end_ns = bc_now_ns() + RIG_WAIT_NS;

	while (done < n) {
		ssize_t now = send(fd, bytes + done, n - done, MSG_NOSIGNAL);
		if (now < 0 && errno != EAGAIN)
			break;
		assert_true(bc_now_ns() < end_ns);
		done += now > 0 ? (size_t)now : 0;
		rig_run(rig, 1);
		if (now < 0)
			rig_rest(rig);
	}
	return done;
}

static inline void rig_send_text(struct server_rig *rig, int fd, const char *text)
{
	assert_int_equal(rig_send(rig, fd, text, strlen(text)), strlen(text));
}

/* Reads until there are `n` bytes or the connection ends, which sets *is_over. Returns allocated
 * text. */
static inline char *rig_read(struct server_rig *rig, int fd, size_t n, bool *is_over)
{
	size_t capacity = 4096;
	size_t used = 0;
	char *text = malloc(capacity);
	uint64_t end_ns = bc_now_ns() + RIG_WAIT_NS;

	*is_over = false;
	while (used < n) {
		assert_non_null(text);
		ssize_t now = recv(fd, text + used, capacity - used - 1, 0);
		if (now == 0 || (now < 0 && errno == ECONNRESET)) {
			*is_over = true;
			break;
		}
		assert_true(now > 0 || errno == EAGAIN);
		assert_true(bc_now_ns() < end_ns);
		used += now > 0 ? (size_t)now : 0;
		if (capacity - used < 2048)
			text = realloc(text, capacity *= 2);
		rig_run(rig, 1);
		if (now < 0)
			rig_rest(rig);
	}
	assert_non_null(text);
	text[used] = '\0';
	return text;
}

/* Reads until the server closes the connection. */
static inline char *rig_read_all(struct server_rig *rig, int fd)
{
	bool is_over;
	char *text = rig_read(rig, fd, SIZE_MAX, &is_over);

	assert_true(is_over);
	return text;
}

/* Sends a request on a new connection, which the server closes. Returns the response, allocated. */
static inline char *rig_request(struct server_rig *rig, const char *request)
{
	int fd = rig_connect(rig);

	rig_send(rig, fd, request, strlen(request));
	char *response = rig_read_all(rig, fd);
	close(fd);
	return response;
}

static inline int rig_status(const char *response)
{
	int status = 0;

	return sscanf(response, "HTTP/1.%*d %d ", &status) == 1 ? status : -1;
}

static inline const char *rig_body(const char *response)
{
	const char *body = strstr(response, "\r\n\r\n");

	assert_non_null(body);
	return body + 4;
}

#endif
