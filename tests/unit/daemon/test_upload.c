/* Bodies that are passed on as they arrive. The receiver of /upload accepts as much as the test
 * allows; that of /refused responds before the body. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/server_rig.h"
#include "tests/support/test.h"

#define HEAD      "PUT /upload HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
#define CHUNKED   "Transfer-Encoding: chunked\r\n\r\n"
#define EXPECTING "Expect: 100-continue\r\n"

struct receiver {
	struct bc_request *request; /* waiting for its response */
	size_t room;                /* bytes that may still arrive */
	size_t received;
	bool has_wrong; /* a byte that was not sent at this place */
	unsigned ends;
	unsigned abandoned;
};

struct fixture {
	struct server_rig rig;
	struct receiver receiver;
};

static char byte_at(size_t n)
{
	return (char)('a' + n % 23);
}

static size_t on_data(void *context, const char *bytes, size_t n)
{
	struct receiver *r = context;

	assert_int_equal(r->ends + r->abandoned, 0);
	n = n < r->room ? n : r->room;
	for (size_t i = 0; i < n; i++)
		r->has_wrong = r->has_wrong || bytes[i] != byte_at(r->received + i);
	r->room -= n;
	r->received += n;
	return n;
}

static void on_end(void *context)
{
	struct receiver *r = context;

	r->ends++;
}

static void on_abandoned(void *context)
{
	struct receiver *r = context;

	r->abandoned++;
}

static const struct bc_deferred_ops ops = {
	.data = on_data, .end = on_end, .abandoned = on_abandoned};

static void on_request(struct server_rig *rig, struct bc_request *request)
{
	struct receiver *r = rig->context;

	if (strcmp(bc_request_path(request), "/upload") == 0) {
		r->request = request;
		bc_request_defer(request, &ops, r);
	} else {
		bc_request_respond(request, 409, "text/plain", strdup("no\n"), NULL);
	}
}

static bool is_upload(void *context, const struct bc_request *request)
{
	(void)context;
	return strcmp(bc_request_method(request), "PUT") == 0;
}

static void start_server(struct fixture *f, unsigned timeout_s)
{
	struct bc_server_options options = {.is_local = true,
		.connections_max = 64,
		.is_upload = is_upload,
		.timeout_s = timeout_s};

	rig_open(&f->rig, &options, on_request);
	memset(&f->receiver, 0, sizeof(f->receiver));
	f->receiver.room = SIZE_MAX;
	f->rig.context = &f->receiver;
}

static void set_up(struct fixture *f)
{
	start_server(f, 600);
}

static void tear_down(struct fixture *f)
{
	rig_close(&f->rig);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void respond(struct fixture *f)
{
	bc_request_respond(f->receiver.request, 201, "text/plain", strdup("done\n"), NULL);
	f->receiver.request = NULL;
}

/* Returns an allocated body of n bytes, in chunks of `chunk` bytes if that is not 0. */
static char *make_body(size_t n, size_t chunk, size_t *bytes)
{
	char *body = malloc(n + (chunk != 0 ? n / chunk : 0) * 16 + 64);
	char *p = body;

	assert_non_null(body);
	for (size_t at = 0; at < n;) {
		size_t k = chunk != 0 && chunk < n - at ? chunk : n - at;
		if (chunk != 0)
			p += sprintf(p, "%zx\r\n", k);
		for (size_t end = at + k; at < end; at++)
			*p++ = byte_at(at);
		if (chunk != 0)
			p += sprintf(p, "\r\n");
	}
	if (chunk != 0)
		p += sprintf(p, "0\r\n\r\n");
	*bytes = (size_t)(p - body);
	return body;
}

/* Sends as much as the server reads. Returns how many bytes. */
static size_t send_some(struct fixture *f, int fd, const char *bytes, size_t n)
{
	size_t done = 0;

	for (unsigned idle = 0; idle < 50 && done < n; idle++) {
		ssize_t now = send(fd, bytes + done, n - done, MSG_NOSIGNAL);
		done += now > 0 ? (size_t)now : 0;
		idle = now > 0 ? 0 : idle;
		rig_run(&f->rig, 1);
	}
	return done;
}

static void assert_responds(struct fixture *f, int fd, int status, const char *body)
{
	char *response = rig_read_all(&f->rig, fd);

	assert_int_equal(rig_status(response), status);
	assert_string_equal(rig_body(response), body);
	free(response);
	close(fd);
}

TEST_F(an_upload_of_any_length_is_passed_on_whole)
{
	static const size_t lengths[] = {0, 1, 4096, 65536, 65537, 3000000};
	static const size_t chunks[] = {0, 7, 5000, 70000};
	char head[200];

	for (size_t i = 0; i < 24; i++) {
		size_t n = lengths[i / 4];
		size_t chunk = chunks[i % 4];
		size_t bytes;
		if (chunk == 7 && n > 65537)
			continue; /* slow */
		char *body = make_body(n, chunk, &bytes);
		snprintf(head, sizeof(head), HEAD "Content-Length: %zu\r\n\r\n", n);
		int fd = rig_connect(&f->rig);
		f->receiver = (struct receiver){.room = SIZE_MAX};
		rig_send_text(&f->rig, fd, chunk != 0 ? HEAD CHUNKED : head);
		/* The request arrives with its head. */
		RIG_UNTIL(&f->rig, f->receiver.request != NULL);
		assert_int_equal(rig_send(&f->rig, fd, body, bytes), bytes);
		RIG_UNTIL(&f->rig, f->receiver.ends == 1);
		assert_int_equal(f->receiver.received, n);
		assert_false(f->receiver.has_wrong);
		respond(f);
		assert_responds(f, fd, 201, "done\n");
		free(body);
	}
	assert_int_equal(f->receiver.abandoned, 0);
}

TEST_F(the_client_of_an_upload_waits_for_its_receiver)
{
	size_t n = 3000000;
	size_t bytes;
	char *body = make_body(n, 10000, &bytes);
	int fd = rig_connect(&f->rig);
	size_t allowed = 0;
	size_t sent = 0;

	f->receiver.room = 0;
	rig_send_text(&f->rig, fd, HEAD CHUNKED);
	RIG_UNTIL(&f->rig, f->receiver.request != NULL);
	for (uint64_t end_ns = bc_now_ns() + RIG_WAIT_NS; sent < bytes;) {
		assert_true(bc_now_ns() < end_ns);
		sent += send_some(f, fd, body + sent, bytes - sent);
		if (sent < bytes)
			assert_int_equal(f->receiver.received, allowed);
		/* A socket buffers some 200 KiB, libmicrohttpd 32 KiB. */
		assert_true(sent < allowed + allowed / 500 + 1000000);
		f->receiver.room = 300007;
		allowed += 300007;
		bc_request_resume_upload(f->receiver.request);
	}
	RIG_UNTIL(&f->rig, f->receiver.ends == 1 || f->receiver.room == 0);
	f->receiver.room = SIZE_MAX;
	bc_request_resume_upload(f->receiver.request);
	RIG_UNTIL(&f->rig, f->receiver.ends == 1);
	assert_int_equal(f->receiver.received, n);
	assert_false(f->receiver.has_wrong);
	respond(f);
	assert_responds(f, fd, 201, "done\n");
	free(body);
}

TEST_F(a_refused_upload_is_not_sent_if_its_client_asks_first)
{
	int fd = rig_connect(&f->rig);

	rig_send_text(&f->rig, fd, "PUT /refused HTTP/1.1\r\nHost: h\r\n" EXPECTING CHUNKED);
	assert_responds(f, fd, 409, "no\n");
	/* One that is accepted is asked for. */
	fd = rig_connect(&f->rig);
	rig_send_text(&f->rig, fd, HEAD EXPECTING "Content-Length: 1\r\n\r\n");
	bool is_over;
	char *response = rig_read(&f->rig, fd, 25, &is_over);
	assert_string_equal(response, "HTTP/1.1 100 Continue\r\n\r\n");
	free(response);
	rig_send_text(&f->rig, fd, "a");
	RIG_UNTIL(&f->rig, f->receiver.ends == 1);
	respond(f);
	assert_responds(f, fd, 201, "done\n");
}

TEST_F(a_refused_upload_is_read_to_its_end)
{
	size_t bytes;
	char *body = make_body(1000000, 1000, &bytes);
	int fd = rig_connect(&f->rig);

	rig_send_text(
		&f->rig, fd, "PUT /refused HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" CHUNKED);
	assert_int_equal(rig_send(&f->rig, fd, body, bytes), bytes);
	assert_responds(f, fd, 409, "no\n");
	free(body);
}

/* For example when a replay reaches its limit. */
TEST_F(after_its_response_the_rest_of_an_upload_is_discarded)
{
	size_t bytes;
	char *body = make_body(1000000, 1000, &bytes);
	int fd = rig_connect(&f->rig);

	f->receiver.room = 12345;
	rig_send_text(&f->rig, fd, HEAD CHUNKED);
	size_t sent = send_some(f, fd, body, bytes);
	assert_int_equal(f->receiver.received, 12345);
	respond(f);
	f->receiver.room = 1;
	assert_int_equal(rig_send(&f->rig, fd, body + sent, bytes - sent), bytes - sent);
	assert_responds(f, fd, 201, "done\n");
	assert_int_equal(f->receiver.received, 12345);
	assert_int_equal(f->receiver.ends + f->receiver.abandoned, 0);
	free(body);
}

TEST(after_its_response_the_client_of_an_upload_must_not_pause)
{
	struct fixture f;

	start_server(&f, 1);
	/* While it sends, and while it has to wait. */
	for (size_t room = 2; room < 4; room++) {
		int fd = rig_connect(&f.rig);
		f.receiver = (struct receiver){.room = room};
		rig_send_text(&f.rig, fd, HEAD "Content-Length: 10\r\n\r\nab");
		RIG_UNTIL(&f.rig, f.receiver.received == 2);
		if (room == 3)
			rig_send_text(&f.rig, fd, "cd");
		RIG_UNTIL(&f.rig, f.receiver.received == room);
		respond(&f);
		RIG_UNTIL(&f.rig, bc_server_connections(f.rig.server) == 0);
		close(fd);
	}
	tear_down(&f);
}

TEST_F(the_receiver_learns_that_its_client_has_disconnected)
{
	static const size_t received[] = {2, 3, 5};
	static const char body[] = "5\r\nabcde\r\n0\r\n\r\n";

	/* While it sends, while it has to wait, and while it waits for the response. */
	for (int i = 0; i < 3; i++) {
		int fd = rig_connect(&f->rig);
		f->receiver = (struct receiver){.room = i == 1 ? 3 : SIZE_MAX};
		rig_send_text(&f->rig, fd, HEAD CHUNKED);
		rig_send(&f->rig, fd, body, i == 0 ? 5 : strlen(body));
		RIG_UNTIL(&f->rig, f->receiver.received == received[i]);
		rig_run(&f->rig, 3);
		assert_int_equal(f->receiver.abandoned, 0);
		close(fd);
		RIG_UNTIL(&f->rig, f->receiver.abandoned == 1);
		assert_int_equal(f->receiver.ends, i == 2);
		respond(f);
		RIG_UNTIL(&f->rig, bc_server_connections(f->rig.server) == 0);
		assert_int_equal(f->receiver.abandoned, 1);
	}
}

TEST_F(a_closing_server_abandons_its_uploads)
{
	int fd = rig_connect(&f->rig);

	f->receiver.room = 3;
	rig_send_text(&f->rig, fd, HEAD "Content-Length: 10\r\n\r\nabcde");
	RIG_UNTIL(&f->rig, f->receiver.received == 3);
	rig_close_server(&f->rig);
	assert_int_equal(f->receiver.abandoned, 1);
	respond(f);
	close(fd);
}
