/* Responses are read the same however they are divided, up to their end and not beyond; what is not
 * HTTP is refused. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/io/http_response.h"
#include "tests/support/test.h"

#define OK      "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK "Transfer-Encoding: chunked\r\n\r\n"

struct reader {
	struct bc_http_response response;
	char body[400];
	size_t used;
	size_t max; /* stop after so much */
};

static bool on_body(void *context, const char *bytes, size_t n)
{
	struct reader *r = context;

	assert_true(n != 0 && r->used + n <= sizeof(r->body));
	memcpy(r->body + r->used, bytes, n);
	r->used += n;
	return r->used < r->max;
}

static void start(struct reader *r)
{
	*r = (struct reader){.response = {.body = on_body, .context = r}, .max = SIZE_MAX};
}

/* Reads a text in pieces. Returns the first error, or 0. */
static int read_text(struct reader *r, const char *text, size_t bytes, size_t piece)
{
	int rc = 0;

	for (size_t at = 0; at < bytes && rc == 0; at += piece)
		rc = bc_http_response_add(
			&r->response, text + at, bytes - at < piece ? bytes - at : piece);
	return rc;
}

static const struct good {
	const char *text;
	int status;
	const char *body;
	bool needs_end; /* of the connection */
} good[] = {
	{OK "Content-Length: 5\r\n\r\nhello", 200, "hello", false},
	{OK "content-length:0\r\n\r\n", 200, "", false},
	{"HTTP/1.0 404\r\nX: y\r\nContent-Length: \t2\r\n\r\n{}", 404, "{}", false},
	{"HTTP/1.1 503 Service Unavailable\n\nbusy", 503, "busy", true},
	{"HTTP/1.1 200 \r\n\r\n", 200, "", true},
	{"HTTP/1.1 204 No Content\r\nX:\r\n\r\n", 204, "", false},
	{"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, "", false},
	{CHUNKED "5\r\nhello\r\n1;name=value\r\n!\r\n0\r\n\r\n", 200, "hello!", false},
	{CHUNKED "a\n0123456789\n00\nX: y\nZ: \n\n", 200, "0123456789", false},
	{CHUNKED "3\r\n0\r\n\r\n0\r\n\r\n", 200, "0\r\n", false},
	{OK "TRANSFER-ENCODING: Chunked\r\nContent-Length: 7\r\n\r\n1\r\nx\r\n0\r\n\r\n", 200, "x",
		false},
};

static void assert_read(struct reader *r, const struct good *c)
{
	if (c->needs_end) {
		assert_false(r->response.is_complete);
		assert_int_equal(bc_http_response_end(&r->response), 0);
	}
	assert_true(r->response.is_complete);
	assert_int_equal(bc_http_response_end(&r->response), 0);
	assert_int_equal(r->response.status, c->status);
	assert_int_equal(r->used, strlen(c->body));
	assert_memory_equal(r->body, c->body, r->used);
}

TEST_CASES(a_response_is_read_in_pieces_of_any_size, good)
{
	struct reader r;

	for (size_t piece = 1; piece <= strlen(c->text); piece++) {
		start(&r);
		assert_int_equal(read_text(&r, c->text, strlen(c->text), piece), 0);
		assert_read(&r, c);
	}
}

TEST_CASES(what_follows_a_response_is_ignored, good)
{
	struct reader r;
	char text[300];

	if (c->needs_end)
		return;
	start(&r);
	snprintf(text, sizeof(text), "%sSSH-2.0", c->text);
	assert_int_equal(bc_http_response_add(&r.response, text, strlen(text)), 0);
	assert_read(&r, c);
}

TEST_CASES(a_response_that_ends_early_is_incomplete, good)
{
	struct reader r;
	const char *body = strstr(c->text, "\n\n");
	size_t bytes = c->needs_end && body != NULL ? (size_t)(body + 1 - c->text)
		       : c->needs_end               ? strlen(c->text) - 1
						    : strlen(c->text);

	for (size_t n = 0; n < bytes; n++) {
		start(&r);
		assert_int_equal(bc_http_response_add(&r.response, c->text, n), 0);
		assert_false(r.response.is_complete);
		assert_int_equal(bc_http_response_end(&r.response), n == 0 ? -ECONNRESET : -EPIPE);
	}
}

static const struct bad {
	const char *text;
} bad[] = {
	{"SSH-2.0-x\r\n"},
	{"\r\n"},
	{"\n"},
	{"http/1.1 200 OK\r\n"},
	{"HTTP/2 200\r\n"},
	{"HTTP/1.2 200 OK\r\n"},
	{"HTTP/1.1  200 OK\r\n"},
	{"HTTP/1.1 20 OK\r\n"},
	{"HTTP/1.1 2000 OK\r\n"},
	{"HTTP/1.1 -20 OK\r\n"},
	{"HTTP/1.1 200OK\r\n"},
	{"HTTP/1.1 100 Continue\r\n"},
	{"HTTP/1.1 600 OK\r\n"},
	{OK "Content-Length: -1\r\n"},
	{OK "Content-Length: +1\r\n"},
	{OK "Content-Length: 1 2\r\n"},
	{OK "Content-Length: \r\n"},
	{OK "Content-Length: 18446744073709551616\r\n"},
	{OK "Transfer-Encoding: gzip, chunked\r\n"},
	{CHUNKED "\r\n"},
	{CHUNKED "-1\r\n"},
	{CHUNKED "zz\r\n"},
	{CHUNKED "1 2\r\n"},
	{CHUNKED ";x\r\n"},
	{CHUNKED "10000000000000000\r\n"},
	{CHUNKED "2\r\nabc\r\n"},
	{CHUNKED "2\r\nab0\r\n"},
};

TEST_CASES(what_is_not_http_is_refused, bad)
{
	struct reader r;
	size_t bytes = strlen(c->text);

	for (size_t piece = 1; piece <= bytes; piece++) {
		start(&r);
		assert_int_equal(read_text(&r, c->text, bytes, piece), -EPROTO);
	}
}

TEST(a_zero_byte_hides_nothing)
{
	static const char text[] = OK "X\0: \r\nContent-Length: 2\r\n\r\nab";
	struct reader r;

	start(&r);
	assert_int_equal(read_text(&r, text, sizeof(text) - 1, 1), 0);
	assert_true(r.response.is_complete);
	assert_int_equal(r.used, 2);
}

/* Reads a start and then this many of one byte. */
static int read_many(struct reader *r, const char *text, char byte, size_t n, size_t piece)
{
	char many[1024];

	memset(many, byte, sizeof(many));
	start(r);
	int rc = read_text(r, text, strlen(text), piece);
	for (size_t at = 0; at < n && rc == 0; at += piece)
		rc = bc_http_response_add(&r->response, many, n - at < piece ? n - at : piece);
	return rc;
}

TEST(lines_and_heads_have_a_maximum_length)
{
	struct reader r;
	char line[1100];
	static const size_t pieces[] = {1, 7, 1000};

	for (size_t i = 0; i < COUNT_OF(pieces); i++) {
		assert_int_equal(read_many(&r, OK, 'x', 1023, pieces[i]), 0);
		assert_int_equal(read_many(&r, OK, 'x', 1024, pieces[i]), -EPROTO);
		assert_int_equal(read_many(&r, CHUNKED, '0', 1024, pieces[i]), -EPROTO);
	}
	snprintf(line, sizeof(line), "%01021d\r\n", 1);
	for (int in_trailer = 0; in_trailer <= 1; in_trailer++) {
		start(&r);
		const char *head = in_trailer ? CHUNKED "0\r\n" : OK;
		assert_int_equal(bc_http_response_add(&r.response, head, strlen(head)), 0);
		unsigned lines = 0;
		while (bc_http_response_add(&r.response, line, strlen(line)) == 0)
			lines++;
		assert_in_range(lines, 31, 32);
	}
}

TEST(chunks_may_have_any_number_of_lines)
{
	struct reader r;

	start(&r);
	assert_int_equal(bc_http_response_add(&r.response, CHUNKED, strlen(CHUNKED)), 0);
	for (unsigned i = 0; i < 20000; i++) {
		assert_int_equal(bc_http_response_add(&r.response, "1\r\nx\r\n", 6), 0);
		r.used = 0;
	}
	assert_int_equal(r.response.status, 200);
}

TEST_CASES(the_body_can_be_stopped, good)
{
	struct reader r;

	if (c->body[0] == '\0')
		return;
	start(&r);
	r.max = 1;
	assert_int_equal(read_text(&r, c->text, strlen(c->text), 1), -ECANCELED);
	assert_int_equal(r.used, 1);
}
