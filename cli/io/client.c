/* Each request has a connection of its own: a struct exchange, which a call waits for, and which
 * the stream reads in bc_client_wait(). cli/io/http_response.h takes the response apart.
 *
 * Whatever the daemon sends is limited in length and escaped before it is printed. A step of an
 * exchange reads once, so endless sending delays neither timeouts nor other descriptors. */
#include "cli/io/client.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/io/http_response.h"
#include "cli/term/json_path.h"
#include "cli/term/text.h"
#include "formats/base/clock.h"
#include "formats/base/grow.h"
#include "formats/base/json.h"

bool bc_byte_buffer_add(struct bc_byte_buffer *b, const char *bytes, size_t n)
{
	if (n > b->max - b->used) {
		b->is_too_long = true;
		return false;
	}
	char *grown = bc_grow(b->bytes, &b->capacity, b->used + n, 1);
	if (grown == NULL) {
		b->is_out_of_memory = true;
		return false;
	}
	b->bytes = grown;
	memcpy(b->bytes + b->used, bytes, n);
	b->used += n;
	b->bytes[b->used] = '\0';
	return true;
}

void bc_byte_buffer_free(struct bc_byte_buffer *b)
{
	free(b->bytes);
	*b = (struct bc_byte_buffer){0};
}

/* ---- connecting, and why that failed */

/* Connects to the Unix socket at `path`. Waits up to timeout_ms for space in the socket's queue.
 * Returns a descriptor or a negative errno; -EAGAIN is a timeout. */
static int connect_to(const char *path, long timeout_ms)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct timeval time = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};

	if (*path == '\0')
		return -ENOENT;
	if (strlen(path) >= sizeof(name.sun_path))
		return -ENAMETOOLONG;
	memcpy(name.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	int rc = setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
	if (rc == 0)
		rc = connect(fd, (struct sockaddr *)&name, sizeof(name));
	if (rc == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* True if nothing listens there, by a result of connect_to(). */
static bool is_vacant(int rc)
{
	return rc == -ENOENT || rc == -ENOTDIR || rc == -ECONNREFUSED;
}

static bool is_other_file(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && !S_ISSOCK(st.st_mode);
}

static void write_permission_error(char *err, size_t errlen, const char *path)
{
	const struct group *entry = NULL;
	struct stat st;

	if (stat(path, &st) == 0) {
		/* Joining the group root would allow far more. */
		if ((st.st_mode & S_IWGRP) == 0 || st.st_gid == 0) {
			snprintf(err, errlen,
				"permission denied: only its owner may connect; try as root, or "
				"set [socket] group for buscapd");
			return;
		}
		entry = getgrgid(st.st_gid);
	}
	const char *group = entry != NULL ? entry->gr_name : "buscap";
	snprintf(err, errlen,
		"permission denied: only the group %s may connect; join it (usermod -aG %s NAME, "
		"then log in again) or try as root",
		group, group);
}

/* Some commands have --socket, too. */
#define ANOTHER_SOCKET "set $BUSCAP_SOCKET to its socket"

/* Writes the error text for `error`, a result of connect_to(), and what to do. */
static void write_connect_error(
	char *err, size_t errlen, const char *path, int error, long timeout_ms)
{
	switch (-error) {
	case ENOENT:
	case ENOTDIR:
		snprintf(err, errlen,
			"no such socket; is buscapd running? Start it, or " ANOTHER_SOCKET);
		break;
	case EACCES:
	case EPERM:
		write_permission_error(err, errlen, path);
		break;
	case ECONNREFUSED:
		if (is_other_file(path))
			snprintf(err, errlen, "not a socket of buscapd; " ANOTHER_SOCKET);
		else
			snprintf(err, errlen, "connection refused: buscapd has stopped; start it");
		break;
	case ENAMETOOLONG:
		snprintf(err, errlen, "too long for a socket path; the limit is 107 bytes");
		break;
	case EAGAIN:
		snprintf(err, errlen,
			"no response within %ld s: buscapd accepts no connections; if this "
			"persists, see journalctl -u buscapd",
			timeout_ms / 1000);
		break;
	default:
		snprintf(err, errlen, "can't connect: %s", strerror(-error));
		break;
	}
}

#define FDS_MAX 8

/* The longest wait without looking at the time. */
#define WAIT_MS 60000

#define BAD_RESPONSE "unexpected response from the daemon; is it buscapd " BC_VERSION "?"

/* A request and its response. */
struct exchange {
	int fd; /* -1: not connected */
	char *request;
	size_t request_bytes;
	size_t sent;
	uint64_t deadline_ns;
	struct bc_http_response response;
};

struct stream {
	bool is_open;
	struct exchange exchange; /* its deadline is that of the status */
	bool (*line)(void *context, char *text, size_t bytes);
	void *context;
	struct bc_byte_buffer partial; /* line without an end so far, or body of an error */
	bool is_stopped;               /* line() returned false */
	uint64_t lines;
};

struct bc_client {
	const struct bc_console *console;
	char *given;                             /* the path to use; NULL: the default ones */
	char user[BC_SOCKET_PATH_MAX];           /* the user's own, or empty */
	const char *path;                        /* the one in use */
	char tried[2 * BC_SOCKET_PATH_MAX + 16]; /* all, if none has a daemon; else empty */
	struct stream stream;
	long timeout_ms;
	bool is_vacant; /* nothing listened when it last connected */
	char err[1200];
};

static enum bc_exit fail(struct bc_client *c, enum bc_exit code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static enum bc_exit fail(struct bc_client *c, enum bc_exit code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->err, sizeof(c->err), format, args);
	va_end(args);
	return code;
}

/* Connects to the given socket; or to the user's own if a daemon has it, else to the system's: each
 * request chooses, as daemons come and go. Returns a descriptor, or -1 after an error. */
static int connect_client(struct bc_client *c)
{
	bool has_user = c->given == NULL && c->user[0] != '\0';
	int fd = has_user ? connect_to(c->user, c->timeout_ms) : -ENOENT;

	c->err[0] = c->tried[0] = '\0';
	c->path = c->user;
	if (!has_user || is_vacant(fd)) {
		c->path = c->given != NULL ? c->given : BC_SYSTEM_SOCKET;
		fd = connect_to(c->path, c->timeout_ms);
		if (has_user && is_vacant(fd))
			snprintf(c->tried, sizeof(c->tried), "%s, %s", c->user, c->path);
	}
	c->is_vacant = is_vacant(fd) && !is_other_file(c->path);
	if (fd >= 0)
		return fd;
	write_connect_error(c->err, sizeof(c->err), c->path, fd, c->timeout_ms);
	return -1;
}

/* Writes the error text of a failed exchange: `body` could not take what was received, or `error`
 * is from exchange_step(), or a timeout. */
static enum bc_exit fail_exchange(struct bc_client *c, int error, const struct bc_byte_buffer *body)
{
	if (body->is_out_of_memory)
		return fail(c, BC_EXIT_FAILED, "out of memory");
	if (body->is_too_long)
		return fail(c, BC_EXIT_FAILED, "response from the daemon exceeds %zu MiB; ignored",
			body->max >> 20);
	switch (error) {
	case -ETIMEDOUT:
		return fail(c, BC_EXIT_UNREACHABLE,
			"no response within %ld s; if this persists, see journalctl -u buscapd",
			c->timeout_ms / 1000);
	case -ECONNRESET:
		return fail(c, BC_EXIT_UNREACHABLE,
			"connection closed without a response: buscapd has stopped or has too "
			"many clients; try again, or see journalctl -u buscapd");
	case -EPIPE:
		return fail(c, BC_EXIT_FAILED, "incomplete response from the daemon");
	default:
		return fail(c, BC_EXIT_FAILED, "invalid response from the daemon: not HTTP");
	}
}

/* Uses the daemon's error text, or names the status. */
static enum bc_exit fail_refused(struct bc_client *c, int status, const json_t *json)
{
	const char *error = bc_json_path_text(json, "error");

	if (error == NULL)
		return fail(c, BC_EXIT_FAILED,
			"request refused with HTTP status %d and no error text", status);
	bc_safe_text(c->err, sizeof(c->err), error);
	return status == 400 ? BC_EXIT_USAGE : BC_EXIT_FAILED;
}

/* ---- requests */

/* Connects and prepares the request. Close the exchange, whatever is returned. */
static enum bc_exit exchange_open(struct bc_client *c, struct exchange *e, const char *method,
	const char *path, const char *body)
{
	const char *type = body != NULL ? "Content-Type: application/json\r\n" : "";
	char length[48] = "";

	e->deadline_ns = bc_now_ns() + (uint64_t)c->timeout_ms * 1000000;
	if (body != NULL)
		snprintf(length, sizeof(length), "Content-Length: %zu\r\n", strlen(body));
	int n = asprintf(&e->request,
		"%s %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: buscap/" BC_VERSION
		"\r\nConnection: close\r\n%s%s\r\n%s",
		method, path, type, length, body != NULL ? body : "");
	if (n < 0) {
		e->request = NULL;
		return fail(c, BC_EXIT_FAILED, "out of memory");
	}
	e->request_bytes = (size_t)n;
	e->fd = connect_client(c);
	return e->fd >= 0 ? BC_EXIT_OK : BC_EXIT_UNREACHABLE;
}

static void exchange_close(struct exchange *e)
{
	if (e->fd >= 0)
		close(e->fd);
	free(e->request);
}

static void send_request(struct exchange *e)
{
	ssize_t n = send(e->fd, e->request + e->sent, e->request_bytes - e->sent,
		MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n >= 0)
		e->sent += (size_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		e->sent = e->request_bytes; /* refused: the response or its absence says why */
}

/* Sends what it can and receives once, without waiting. Returns 0 or a negative errno. */
static int exchange_step(struct exchange *e)
{
	char bytes[65536];

	if (e->sent < e->request_bytes)
		send_request(e);
	ssize_t n = recv(e->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n > 0)
		return bc_http_response_add(&e->response, bytes, (size_t)n);
	if (n == 0)
		return bc_http_response_end(&e->response);
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	return e->response.status != 0 ? -EPIPE : -ECONNRESET;
}

/* What to wait for before the next step. */
static struct pollfd exchange_wait(const struct exchange *e)
{
	return (struct pollfd){.fd = e->fd,
		.events = (short)(POLLIN | (e->sent < e->request_bytes ? POLLOUT : 0))};
}

/* Returns the ms until a time, at most WAIT_MS; 0 if it has passed. */
static int ms_until(uint64_t until_ns)
{
	uint64_t now = bc_now_ns();
	uint64_t ms = until_ns > now ? (until_ns - now + 999999) / 1000000 : 0;

	return ms < WAIT_MS ? (int)ms : WAIT_MS;
}

static bool on_body(void *context, const char *bytes, size_t n)
{
	return bc_byte_buffer_add(context, bytes, n);
}

/* Moves the body into *a and parses it. */
static enum bc_exit parse_response(
	struct bc_client *c, int status, struct bc_byte_buffer *body, struct bc_response *a)
{
	a->text = body->bytes;
	a->bytes = body->used;
	*body = (struct bc_byte_buffer){0};
	if (a->bytes != 0)
		a->json = bc_json_parse_object(a->text, a->bytes);
	if (status > 299)
		return fail_refused(c, status, a->json);
	if (a->bytes == 0 || a->json != NULL)
		return BC_EXIT_OK;
	return fail(c, BC_EXIT_FAILED, "invalid response from the daemon: not a JSON object");
}

/* Sends the request and waits for the response. */
static int exchange_run(struct exchange *e)
{
	for (;;) {
		int rc = exchange_step(e);
		if (rc != 0 || e->response.is_complete)
			return rc;
		int ms = ms_until(e->deadline_ns);
		if (ms == 0)
			return -ETIMEDOUT;
		struct pollfd wait = exchange_wait(e);
		(void)poll(&wait, 1, ms);
	}
}

enum bc_exit bc_client_call(struct bc_client *c, const char *method, const char *path,
	const json_t *body, struct bc_response *response)
{
	struct bc_byte_buffer got = {.max = BC_CLIENT_RESPONSE_MAX};
	struct exchange e = {.fd = -1, .response = {.body = on_body, .context = &got}};
	char *text = NULL;

	*response = (struct bc_response){0};
	if (body != NULL && (text = bc_json_print(body)) == NULL)
		return fail(c, BC_EXIT_FAILED, "out of memory");
	enum bc_exit code = exchange_open(c, &e, method, path, text);
	if (code == BC_EXIT_OK) {
		int rc = exchange_run(&e);
		code = rc == 0 ? parse_response(c, e.response.status, &got, response)
			       : fail_exchange(c, rc, &got);
	}
	exchange_close(&e);
	bc_byte_buffer_free(&got);
	free(text);
	return code;
}

void bc_response_free(struct bc_response *response)
{
	json_decref(response->json);
	free(response->text);
	*response = (struct bc_response){0};
}

/* ---- the stream */

static void close_stream(struct bc_client *c)
{
	if (c->stream.is_open)
		exchange_close(&c->stream.exchange);
	bc_byte_buffer_free(&c->stream.partial);
	c->stream = (struct stream){0};
}

static bool deliver_line(struct stream *s)
{
	size_t bytes = s->partial.used;

	s->partial.used = 0;
	if (bytes != 0 && s->partial.bytes[bytes - 1] == '\r')
		s->partial.bytes[--bytes] = '\0';
	if (bytes == 0)
		return true;
	s->lines++;
	s->is_stopped = !s->line(s->context, s->partial.bytes, bytes);
	return !s->is_stopped;
}

static bool on_stream_data(void *context, const char *bytes, size_t n)
{
	struct stream *s = context;
	const char *end = bytes + n;

	if (s->exchange.response.status > 299)
		return bc_byte_buffer_add(&s->partial, bytes, n);
	for (const char *p = bytes; p < end;) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		const char *to = newline != NULL ? newline : end;
		if (!bc_byte_buffer_add(&s->partial, p, (size_t)(to - p)))
			return false;
		if (newline != NULL && !deliver_line(s))
			return false;
		p = newline != NULL ? newline + 1 : end;
	}
	return true;
}

enum bc_exit bc_client_stream(struct bc_client *c, const char *path,
	bool (*line)(void *context, char *text, size_t bytes), void *context)
{
	struct stream *s = &c->stream;

	close_stream(c);
	*s = (struct stream){.is_open = true,
		.exchange = {.fd = -1, .response = {.body = on_stream_data, .context = s}},
		.partial.max = BC_CLIENT_LINE_MAX,
		.line = line,
		.context = context};
	enum bc_exit code = exchange_open(c, &s->exchange, "GET", path, NULL);
	if (code != BC_EXIT_OK)
		close_stream(c);
	return code;
}

/* Closes the stream, which ended with `rc`, and returns its result. */
static enum bc_exit finish_stream(struct bc_client *c, int rc)
{
	struct stream *s = &c->stream;
	int status = s->exchange.response.status;
	enum bc_exit code = BC_EXIT_OK;
	json_t *json = NULL;

	if (s->is_stopped)
		code = BC_EXIT_OK;
	else if (rc == -EPIPE && status >= 200 && status <= 299)
		code = fail(c, BC_EXIT_UNREACHABLE, "buscapd has stopped");
	else if (rc != 0)
		code = fail_exchange(c, rc, &s->partial);
	else if (status > 299) {
		if (s->partial.used != 0)
			json = bc_json_parse_object(s->partial.bytes, s->partial.used);
		code = fail_refused(c, status, json);
	} else if (s->partial.used != 0) {
		code = fail(c, BC_EXIT_FAILED, "incomplete response from the daemon");
	}
	json_decref(json);
	close_stream(c);
	return code;
}

/* Transfers what is available without blocking. Returns false at the end, with *code set. */
static bool transfer(struct bc_client *c, enum bc_exit *code)
{
	struct stream *s = &c->stream;
	int rc = exchange_step(&s->exchange);

	if (rc == 0 && s->exchange.response.status == 0 && ms_until(s->exchange.deadline_ns) == 0)
		rc = -ETIMEDOUT;
	if (rc == 0 && !s->exchange.response.is_complete)
		return true;
	*code = finish_stream(c, rc);
	return false;
}

/* Waits for the stream, the descriptors or the time. Returns whether a descriptor is ready. */
static bool poll_stream(struct bc_client *c, struct pollfd *fds, unsigned count, uint64_t until_ns)
{
	const struct exchange *e = &c->stream.exchange;
	struct pollfd wait[FDS_MAX + 1];

	assert(count <= FDS_MAX);
	for (unsigned i = 0; i < count; i++)
		wait[i] = fds[i];
	wait[count] = exchange_wait(e);
	if (e->response.status == 0 && until_ns > e->deadline_ns)
		until_ns = e->deadline_ns;
	(void)poll(wait, count + 1, ms_until(until_ns));
	return count != 0 && poll(fds, count, 0) > 0;
}

enum bc_exit bc_client_wait(struct bc_client *c, struct pollfd *fds, unsigned count, int timeout_ms)
{
	uint64_t until_ns = timeout_ms < 0 ? UINT64_MAX / 2
					   : bc_now_ns() + (uint64_t)timeout_ms * 1000000;
	enum bc_exit code = BC_EXIT_OK;

	for (unsigned i = 0; i < count; i++)
		fds[i].revents = 0;
	if (!c->stream.is_open)
		return BC_EXIT_OK;
	uint64_t lines = c->stream.lines;
	c->err[0] = '\0';
	/* Reads once more after the deadline: this process may not have run. */
	for (bool is_late = false;; is_late = bc_now_ns() >= until_ns) {
		if (!transfer(c, &code) || c->stream.lines != lines) {
			if (count != 0)
				(void)poll(fds, count, 0);
			return code;
		}
		if (is_late || poll_stream(c, fds, count, until_ns))
			return BC_EXIT_OK;
	}
}

uint64_t bc_client_lines(const struct bc_client *c)
{
	return c->stream.lines;
}

bool bc_client_is_over(const struct bc_client *c)
{
	return !c->stream.is_open;
}

/* ---- the client */

enum bc_exit bc_client_open(
	struct bc_client **client, const struct bc_console *console, const char *path)
{
	const char *set = getenv("BUSCAP_SOCKET");
	struct bc_client *c = calloc(1, sizeof(*c));

	*client = NULL;
	if (c == NULL)
		return bc_print_no_memory(console);
	if (path == NULL || *path == '\0')
		path = set != NULL && *set != '\0' ? set : NULL;
	c->console = console;
	c->given = path != NULL ? strdup(path) : NULL;
	(void)bc_user_socket(c->user);
	c->timeout_ms = BC_CLIENT_TIMEOUT_MS;
	if (path != NULL && c->given == NULL) {
		bc_client_close(c);
		return bc_print_no_memory(console);
	}
	*client = c;
	return BC_EXIT_OK;
}

void bc_client_close(struct bc_client *c)
{
	if (c == NULL)
		return;
	close_stream(c);
	free(c->given);
	free(c);
}

const char *bc_client_path(const struct bc_client *c)
{
	return c->tried[0] != '\0' ? c->tried : c->path;
}

void bc_client_set_timeout(struct bc_client *c, long ms)
{
	c->timeout_ms = ms;
}

bool bc_client_is_vacant(const struct bc_client *c)
{
	return c->is_vacant;
}

const char *bc_client_error(const struct bc_client *c)
{
	return c->err;
}

enum bc_exit bc_client_print_error(const struct bc_client *c, enum bc_exit code)
{
	bc_print_error(
		c->console, code == BC_EXIT_UNREACHABLE ? bc_client_path(c) : NULL, "%s", c->err);
	return code;
}

enum bc_exit bc_client_print_bad_response(const struct bc_client *c)
{
	return bc_print_error(c->console, NULL, BAD_RESPONSE);
}

enum bc_exit bc_client_directory(struct bc_client *c, char **dir)
{
	struct bc_response status;
	enum bc_exit code = bc_client_call(c, "GET", "/v1/status", NULL, &status);
	const char *text = bc_json_path_text(status.json, "directory");

	*dir = NULL;
	if (code == BC_EXIT_OK && text == NULL)
		code = fail(c, BC_EXIT_FAILED, BAD_RESPONSE);
	else if (code == BC_EXIT_OK && (*dir = strdup(text)) == NULL)
		code = fail(c, BC_EXIT_FAILED, "out of memory");
	bc_response_free(&status);
	return code;
}

void bc_response_write_json(struct bc_output *output, const struct bc_response *response)
{
	size_t bytes = response->bytes;

	while (bytes != 0 && response->text[bytes - 1] == '\n')
		bytes--;
	if (bytes != 0)
		bc_output_json(output, response->text, bytes);
}

char *bc_client_encode(const char *text)
{
	static const char digits[] = "0123456789ABCDEF";
	char *encoded = malloc(strlen(text) * 3 + 1);
	char *p = encoded;

	if (encoded == NULL)
		return NULL;
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;
		if (c < 0x80 && (isalnum(c) || strchr("-._~", c) != NULL)) {
			*p++ = (char)c;
			continue;
		}
		*p++ = '%';
		*p++ = digits[c >> 4];
		*p++ = digits[c & 15];
	}
	*p = '\0';
	return encoded;
}

char *bc_client_query(const char *path, json_t *object)
{
	char *query = strdup(path);
	const char *name;
	json_t *value;
	char between = '?';

	json_object_foreach(object, name, value)
	{
		char *encoded = bc_client_encode(json_string_value(value));
		char *longer = NULL;
		if (query != NULL && encoded != NULL &&
			asprintf(&longer, "%s%c%s=%s", query, between, name, encoded) < 0)
			longer = NULL;
		free(query);
		free(encoded);
		query = longer;
		between = '&';
	}
	return query;
}
