/* A server on a real loop and its clients on real sockets, in one thread: clients never block, and
 * waiting turns the loop. */
#ifndef BC_TESTS_SUPPORT_SERVER_RIG_H
#define BC_TESTS_SUPPORT_SERVER_RIG_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/base/clock.h"
#include "daemon/http/server.h"
#include "tests/support/test.h"

/* Nothing here takes so long; a test that waits for it in vain has failed. */
#define RIG_WAIT_NS UINT64_C(30000000000)

struct server_rig {
	uv_loop_t loop;
	struct sockaddr_un address;
	int listen_fd;
	struct bc_server *server;
	void (*request)(struct server_rig *rig, struct bc_request *request);
	unsigned requests;
	void *context; /* the test's */
};

static inline void rig_on_request(void *context, struct bc_request *request)
{
	struct server_rig *rig = context;

	rig->requests++;
	rig->request(rig, request);
}

/* `options` may be NULL; what is zero in it is filled in. */
static inline void rig_open(struct server_rig *rig, const struct bc_server_options *with,
	void (*request)(struct server_rig *rig, struct bc_request *request))
{
	struct bc_server_options options = {.is_local = true, .connections_max = 64};

	if (with != NULL)
		options = *with;
	memset(rig, 0, sizeof(*rig));
	rig->request = request;
	assert_int_equal(uv_loop_init(&rig->loop), 0);
	rig->address.sun_family = AF_UNIX;
	/* An abstract name, which the kernel chooses: nothing is left behind. */
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
	assert_int_equal(bc_server_start(&rig->server, &rig->loop, &options), 0);
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

static inline void rig_turn(struct server_rig *rig, int n)
{
	while (n-- > 0)
		uv_run(&rig->loop, UV_RUN_NOWAIT);
}

#define RIG_UNTIL(rig, condition)                                \
	do {                                                     \
		uint64_t rig_end_ns = bc_now_ns() + RIG_WAIT_NS; \
		while (!(condition)) {                           \
			assert_true(bc_now_ns() < rig_end_ns);   \
			uv_run(&(rig)->loop, UV_RUN_NOWAIT);     \
		}                                                \
	} while (0)

static inline int rig_connect(struct server_rig *rig)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(rig->address.sun_family) + 6; /* a zero, and five digits */

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&rig->address, length), 0);
	return fd;
}

/* Sends as much as the server takes. Returns how much: less, when it has closed. */
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
		rig_turn(rig, 1);
	}
	return done;
}

static inline void rig_say(struct server_rig *rig, int fd, const char *text)
{
	assert_int_equal(rig_send(rig, fd, text, strlen(text)), strlen(text));
}

/* What has come, as text that the caller frees, after waiting for `n` bytes or the end; *is_over
 * says whether it was the end. */
static inline char *rig_read(struct server_rig *rig, int fd, size_t n, bool *is_over)
{
	size_t room = 4096;
	size_t used = 0;
	char *text = malloc(room);
	uint64_t end_ns = bc_now_ns() + RIG_WAIT_NS;

	*is_over = false;
	while (used < n) {
		assert_non_null(text);
		ssize_t now = recv(fd, text + used, room - used - 1, 0);
		if (now == 0 || (now < 0 && errno == ECONNRESET)) {
			*is_over = true;
			break;
		}
		assert_true(now > 0 || errno == EAGAIN);
		assert_true(bc_now_ns() < end_ns);
		used += now > 0 ? (size_t)now : 0;
		if (room - used < 2048)
			text = realloc(text, room *= 2);
		rig_turn(rig, 1);
	}
	assert_non_null(text);
	text[used] = '\0';
	return text;
}

/* All that comes until the server closes. */
static inline char *rig_read_all(struct server_rig *rig, int fd)
{
	bool is_over;
	char *text = rig_read(rig, fd, SIZE_MAX, &is_over);

	assert_true(is_over);
	return text;
}

/* Asks on a connection of its own that the server closes; the caller frees the answer. */
static inline char *rig_ask(struct server_rig *rig, const char *request)
{
	int fd = rig_connect(rig);

	rig_send(rig, fd, request, strlen(request));
	char *answer = rig_read_all(rig, fd);
	close(fd);
	return answer;
}

static inline int rig_status(const char *answer)
{
	int status = 0;

	return sscanf(answer, "HTTP/1.%*d %d ", &status) == 1 ? status : -1;
}

static inline const char *rig_body(const char *answer)
{
	const char *body = strstr(answer, "\r\n\r\n");

	assert_non_null(body);
	return body + 4;
}

#endif
