/* A daemon that sends in any rhythm: in single bytes, without a pause, or without an end. */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/io/client.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

TEST_THREADS;

#define HEAD "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

struct fixture {
	struct temp_dir dir;
	char path[TEMP_PATH_BYTES];
	int listener;
	int fd; /* the daemon's side of the connection; -1: none */
	struct bc_console console;
	struct bc_client *client;
	char lines[100]; /* received */
	atomic_bool is_over;
	const char *again; /* what the thread sends */
};

static void set_up(struct fixture *f)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	temp_dir_make(&f->dir);
	temp_path(&f->dir, "s", f->path);
	strcpy(address.sun_path, f->path);
	f->console = (struct bc_console){.in = 0, .out = 1, .err = stderr};
	f->fd = -1;
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(f->listener, 4), 0);
	assert_int_equal(bc_client_open(&f->client, &f->console, f->path), BC_EXIT_OK);
}

static void tear_down(struct fixture *f)
{
	bc_client_close(f->client);
	if (f->fd >= 0)
		close(f->fd);
	close(f->listener);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static bool on_line(void *context, char *text, size_t bytes)
{
	struct fixture *f = context;

	assert_int_equal(strlen(text), bytes);
	if (strlen(f->lines) + bytes + 2 < sizeof(f->lines))
		strcat(strcat(f->lines, text), "|");
	return true;
}

static void start_stream(struct fixture *f)
{
	assert_int_equal(bc_client_stream(f->client, "/v1/events", on_line, f), BC_EXIT_OK);
	f->fd = accept(f->listener, NULL, NULL);
	assert_true(f->fd >= 0);
}

static void send_text(struct fixture *f, const char *text)
{
	assert_int_equal(send(f->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static enum bc_exit wait_stream(struct fixture *f)
{
	return bc_client_wait(f->client, NULL, 0, 0);
}

TEST_F(a_stream_arrives_in_single_bytes)
{
	static const char text[] = HEAD "4\r\none\n\r\n5\r\ntwo\nt\r\n5\r\nhree\n\r\n0\r\n\r\n";
	char request[1000];

	start_stream(f);
	assert_int_equal(wait_stream(f), BC_EXIT_OK); /* sends the request */
	ssize_t n = recv(f->fd, request, sizeof(request) - 1, 0);
	assert_true(n > 0);
	request[n] = '\0';
	assert_int_equal(strncmp(request, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n", 42), 0);
	assert_string_equal(request + n - 4, "\r\n\r\n");
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		assert_false(bc_client_is_over(f->client));
		assert_int_equal(send(f->fd, &text[i], 1, MSG_NOSIGNAL), 1);
		assert_int_equal(wait_stream(f), BC_EXIT_OK);
	}
	assert_true(bc_client_is_over(f->client));
	assert_string_equal(f->lines, "one|two|three|");
}

TEST_F(a_stream_without_a_pause_leaves_time_for_the_caller)
{
	static const char line[] = "0123456789abcde\n";
	enum { LINES = 6000, LINES_OF_A_STEP = 4096 };
	static char text[LINES * (sizeof(line) - 1) + 1];
	struct pollfd other = {.fd = f->listener, .events = POLLIN};
	uint64_t before = 0;

	start_stream(f);
	for (char *at = text; at != text + sizeof(text) - 1;)
		at = mempcpy(at, line, sizeof(line) - 1);
	send_text(f, "HTTP/1.1 200 OK\r\n\r\n");
	send_text(f, text);
	while (bc_client_lines(f->client) < LINES) {
		assert_int_equal(bc_client_wait(f->client, &other, 1, 10000), BC_EXIT_OK);
		assert_in_range(bc_client_lines(f->client) - before, 1, LINES_OF_A_STEP);
		before = bc_client_lines(f->client);
	}
}

TEST_F(a_daemon_that_dies_in_a_stream_has_stopped)
{
	start_stream(f);
	send_text(f, HEAD "4\r\none\n\r\n5\r\ntw");
	assert_int_equal(wait_stream(f), BC_EXIT_OK);
	close(f->fd);
	f->fd = -1;
	assert_int_equal(wait_stream(f), BC_EXIT_UNREACHABLE);
	assert_string_equal(bc_client_error(f->client), "buscapd has stopped");
	assert_string_equal(f->lines, "one|");
	assert_true(bc_client_is_over(f->client));
}

TEST_F(a_stream_without_a_daemon_fails_at_once)
{
	unlink(f->path);
	assert_int_equal(
		bc_client_stream(f->client, "/v1/events", on_line, f), BC_EXIT_UNREACHABLE);
	assert_true(bc_client_is_over(f->client));
	assert_non_null(strstr(bc_client_error(f->client), "no such socket"));
}

/* Sends the same again and again. */
static void *send_again(void *context)
{
	struct fixture *f = context;
	int fd = accept(f->listener, NULL, NULL);

	(void)!send(fd, HEAD, strlen(HEAD) - 2, MSG_NOSIGNAL);
	while (!atomic_load(&f->is_over) && send(fd, f->again, strlen(f->again), MSG_NOSIGNAL) > 0)
		;
	close(fd);
	return NULL;
}

TEST_F(a_response_without_an_end_is_bounded)
{
	static const struct {
		const char *again;
		long timeout_ms;
		enum bc_exit code;
		const char *words;
	} cases[] = {
		{"X: y\r\n", 10000, BC_EXIT_FAILED, "not HTTP"},
		/* 64 MiB take longer than this. */
		{"\r\n1\r\nx", 100, BC_EXIT_UNREACHABLE, "no response within 0 s"},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		pthread_t thread;
		f->again = cases[i].again;
		atomic_store(&f->is_over, false);
		assert_int_equal(pthread_create(&thread, NULL, send_again, f), 0);
		bc_client_set_timeout(f->client, cases[i].timeout_ms);
		struct bc_response response;
		enum bc_exit code = bc_client_call(f->client, "GET", "/v1/status", NULL, &response);
		bc_response_free(&response);
		atomic_store(&f->is_over, true);
		pthread_join(thread, NULL);
		assert_int_equal(code, cases[i].code);
		assert_non_null(strstr(bc_client_error(f->client), cases[i].words));
	}
}
