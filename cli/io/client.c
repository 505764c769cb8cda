/* Calls block in libcurl's easy interface; the stream is one transfer of its multi interface,
 * driven by bc_client_wait(). libcurl is loaded when a client is opened
 * (formats/base/late_library.h), because most commands don't need it.
 *
 * libcurl reports little about a Unix socket and accepts a truncated head. So a failed connection
 * is probed for the reason, and the head's last line is watched. Whatever the daemon sends is
 * limited in length and escaped before it is printed. */
#include "cli/io/client.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "formats/base/grow.h"

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

#define CURL_DISABLE_TYPECHECK /* its macros call functions by name */
#include <curl/curl.h>
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

#include "cli/term/json_path.h"
#include "cli/term/text.h"
#include "formats/base/clock.h"
#include "formats/base/json.h"
#include "formats/base/late_library.h"

/* ---- Why the daemon's socket can't be connected to. libcurl only reports that it failed, and
 * does not wait while the socket's queue is full. */

/* Connects to the Unix socket at `path` and closes the connection. Waits up to timeout_ms for space
 * in the socket's queue. Returns 0 or a negative errno; -EAGAIN is a timeout. */
static int probe_socket(const char *path, long timeout_ms)
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
	rc = rc == 0 ? 0 : -errno;
	close(fd);
	return rc;
}

/* True if nothing listens there, by a result of probe_socket(). */
static bool is_vacant(int rc)
{
	return rc == -ENOENT || rc == -ENOTDIR || rc == -ECONNREFUSED;
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

/* Writes the error text for `error`, a result of probe_socket(), and what to do. */
static void write_connect_error(
	char *err, size_t errlen, const char *path, int error, long timeout_ms)
{
	struct stat st;

	switch (-error) {
	case 0:
		snprintf(err, errlen, "connection lost; try again");
		break;
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
		if (stat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
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

#define BAD_RESPONSE "unexpected response from the daemon; is it buscapd " BC_VERSION "?"

/* libcurl, built with either library for TLS. */
#define CURL_FUNCTIONS(F)           \
	F(curl_easy_cleanup)        \
	F(curl_easy_getinfo)        \
	F(curl_easy_init)           \
	F(curl_easy_perform)        \
	F(curl_easy_reset)          \
	F(curl_easy_setopt)         \
	F(curl_easy_strerror)       \
	F(curl_global_cleanup)      \
	F(curl_global_init)         \
	F(curl_multi_add_handle)    \
	F(curl_multi_cleanup)       \
	F(curl_multi_info_read)     \
	F(curl_multi_init)          \
	F(curl_multi_perform)       \
	F(curl_multi_poll)          \
	F(curl_multi_remove_handle) \
	F(curl_slist_append)        \
	F(curl_slist_free_all)

static struct {
	CURL_FUNCTIONS(BC_LATE_POINTER)
} lib;
static struct bc_late_library curl_library = {
	.names = {"libcurl-gnutls.so.4", "libcurl.so.4"},
	.package = "libcurl3-gnutls",
	.functions = (const char *const[]){CURL_FUNCTIONS(BC_LATE_NAME) NULL},
	.pointers = &lib,
};

struct stream {
	CURL *curl; /* NULL: no stream */
	bool (*line)(void *context, char *text, size_t bytes);
	void *context;
	struct bc_byte_buffer partial; /* line without an end so far, or body of an error */
	uint64_t deadline_ns;          /* until has_status */
	bool has_status;
	bool is_head_complete;
	bool is_stopped; /* line() returned false */
	uint64_t lines;
};

struct bc_client {
	const struct bc_console *console;
	char *given;                             /* the path to use; NULL: the default ones */
	char user[BC_SOCKET_PATH_MAX];           /* the user's own, or empty */
	const char *path;                        /* the one in use */
	char tried[2 * BC_SOCKET_PATH_MAX + 16]; /* all, if none has a daemon; else empty */
	CURLM *multi;
	CURL *call;
	struct curl_slist *json_header;
	struct stream stream;
	long timeout_ms;
	bool is_head_complete; /* of the last call's response */
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

static enum bc_exit fail_connect(struct bc_client *c)
{
	int rc = probe_socket(c->path, c->timeout_ms);

	if (c->given == NULL && c->user[0] != '\0' && c->path != c->user && is_vacant(rc))
		snprintf(c->tried, sizeof(c->tried), "%s, %s", c->user, c->path);
	write_connect_error(c->err, sizeof(c->err), c->path, rc, c->timeout_ms);
	return BC_EXIT_UNREACHABLE;
}

static enum bc_exit fail_timeout(struct bc_client *c)
{
	return fail(c, BC_EXIT_UNREACHABLE,
		"no response within %ld s; if this persists, see journalctl -u buscapd",
		c->timeout_ms / 1000);
}

/* Translates libcurl's code of a failed request. */
static enum bc_exit fail_curl(struct bc_client *c, CURLcode code, const struct bc_byte_buffer *body)
{
	if (body->is_out_of_memory || code == CURLE_OUT_OF_MEMORY)
		return fail(c, BC_EXIT_FAILED, "out of memory");
	if (body->is_too_long)
		return fail(c, BC_EXIT_FAILED, "response from the daemon exceeds %zu MiB; ignored",
			body->max >> 20);
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST: /* path too long */
	case CURLE_COULDNT_CONNECT:
	case CURLE_SEND_ERROR: /* can mean that the socket's queue is full */
		return fail_connect(c);
	case CURLE_OPERATION_TIMEDOUT:
		return fail_timeout(c);
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
		return fail(c, BC_EXIT_UNREACHABLE,
			"connection closed without a response: buscapd has stopped or has too "
			"many clients; try again, or see journalctl -u buscapd");
	case CURLE_PARTIAL_FILE:
		return fail(c, BC_EXIT_FAILED, "incomplete response from the daemon");
	default:
		return fail(c, BC_EXIT_FAILED, "invalid response from the daemon: %s",
			lib.curl_easy_strerror(code));
	}
}

/* Uses the daemon's error text, or names the status. */
static enum bc_exit fail_refused(struct bc_client *c, long status, const json_t *json)
{
	const char *error = bc_json_path_text(json, "error");

	if (error == NULL)
		return fail(c, BC_EXIT_FAILED,
			"request refused with HTTP status %ld and no error text", status);
	bc_safe_text(c->err, sizeof(c->err), error);
	return status == 400 ? BC_EXIT_USAGE : BC_EXIT_FAILED;
}

/* ---- requests */

/* libcurl does not report a truncated head: remember whether its last line, an empty one, came. */
static size_t on_header(char *bytes, size_t one, size_t n, void *context)
{
	bool *is_head_complete = context;

	*is_head_complete = one * n == 2 && memcmp(bytes, "\r\n", 2) == 0;
	return one * n;
}

/* Chooses between the default sockets at each request: daemons come and go. */
static void choose_socket(struct bc_client *c)
{
	bool has_user = c->given == NULL && c->user[0] != '\0' &&
			!is_vacant(probe_socket(c->user, 1));

	c->tried[0] = '\0';
	c->path = has_user ? c->user : c->given != NULL ? c->given : BC_SYSTEM_SOCKET;
}

/* Sets the URL and the options that all requests share. */
static bool set_common_options(
	struct bc_client *c, CURL *curl, const char *path, bool *is_head_complete)
{
	char *url;

	if (asprintf(&url, "http://localhost%s", path) < 0)
		return false;
	choose_socket(c);
	lib.curl_easy_reset(curl);
	bool ok = lib.curl_easy_setopt(curl, CURLOPT_URL, url) == CURLE_OK &&
		  lib.curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, c->path) == CURLE_OK &&
		  lib.curl_easy_setopt(curl, CURLOPT_PROXY, "") == CURLE_OK &&
		  lib.curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
		  lib.curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http") == CURLE_OK &&
		  lib.curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK &&
		  lib.curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) ==
			  CURLE_OK &&
		  lib.curl_easy_setopt(curl, CURLOPT_USERAGENT, "buscap/" BC_VERSION) == CURLE_OK &&
		  lib.curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
		  lib.curl_easy_setopt(curl, CURLOPT_HEADERDATA, is_head_complete) == CURLE_OK;
	free(url);
	*is_head_complete = false;
	c->err[0] = '\0';
	return ok;
}

static size_t on_body(char *bytes, size_t one, size_t n, void *context)
{
	return bc_byte_buffer_add(context, bytes, one * n) ? one * n : 0;
}

static long status_of(CURL *curl)
{
	long status = 0;

	lib.curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static bool set_call_options(struct bc_client *c, const char *method, const char *path, char *body,
	struct bc_byte_buffer *response)
{
	CURL *curl = c->call;
	bool ok = set_common_options(c, curl, path, &c->is_head_complete) &&
		  lib.curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK &&
		  lib.curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
		  lib.curl_easy_setopt(curl, CURLOPT_WRITEDATA, response) == CURLE_OK;

	if (!ok || body == NULL)
		return ok;
	return lib.curl_easy_setopt(curl, CURLOPT_HTTPHEADER, c->json_header) == CURLE_OK &&
	       lib.curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body) == CURLE_OK;
}

/* Moves the body into *a and parses it. */
static enum bc_exit parse_response(
	struct bc_client *c, struct bc_byte_buffer *body, struct bc_response *a)
{
	bool is_ok = a->status >= 200 && a->status <= 299;

	a->text = body->bytes;
	a->bytes = body->used;
	*body = (struct bc_byte_buffer){0};
	if (a->bytes != 0)
		a->json = bc_json_parse_object(a->text, a->bytes);
	if (!is_ok)
		return fail_refused(c, a->status, a->json);
	if (a->bytes == 0 || a->json != NULL)
		return BC_EXIT_OK;
	return fail(c, BC_EXIT_FAILED, "invalid response from the daemon: not a JSON object");
}

/* Sends the prepared request. */
static enum bc_exit perform(
	struct bc_client *c, struct bc_byte_buffer *body, struct bc_response *response)
{
	CURLcode rc = lib.curl_easy_perform(c->call);

	if (rc == CURLE_OK && !c->is_head_complete)
		rc = CURLE_PARTIAL_FILE;
	if (rc != CURLE_OK)
		return fail_curl(c, rc, body);
	response->status = status_of(c->call);
	return parse_response(c, body, response);
}

enum bc_exit bc_client_call(struct bc_client *c, const char *method, const char *path,
	const json_t *body, struct bc_response *response)
{
	struct bc_response own = {0};
	struct bc_byte_buffer got = {.max = BC_CLIENT_RESPONSE_MAX};
	char *text = NULL;
	enum bc_exit code;

	struct bc_response *a = response != NULL ? response : &own;
	*a = (struct bc_response){0};
	if (body != NULL && (text = bc_json_print(body)) == NULL)
		return fail(c, BC_EXIT_FAILED, "out of memory");
	if (set_call_options(c, method, path, text, &got) &&
		lib.curl_easy_setopt(c->call, CURLOPT_TIMEOUT_MS, c->timeout_ms) == CURLE_OK)
		code = perform(c, &got, a);
	else
		code = fail(c, BC_EXIT_FAILED, "out of memory");
	bc_byte_buffer_free(&got);
	free(text);
	if (response == NULL)
		bc_response_free(&own);
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
	if (c->stream.curl != NULL) {
		lib.curl_multi_remove_handle(c->multi, c->stream.curl);
		lib.curl_easy_cleanup(c->stream.curl);
	}
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

static size_t on_stream_data(char *bytes, size_t one, size_t n, void *context)
{
	struct bc_client *c = context;
	struct stream *s = &c->stream;
	long status = status_of(s->curl);
	const char *end = bytes + one * n;

	if (status < 200 || status > 299)
		return bc_byte_buffer_add(&s->partial, bytes, one * n) ? one * n : 0;
	for (const char *p = bytes; p < end;) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		const char *to = newline != NULL ? newline : end;
		if (!bc_byte_buffer_add(&s->partial, p, (size_t)(to - p)))
			return 0;
		if (newline != NULL && !deliver_line(s))
			return 0;
		p = newline != NULL ? newline + 1 : end;
	}
	return one * n;
}

enum bc_exit bc_client_stream(struct bc_client *c, const char *path,
	bool (*line)(void *context, char *text, size_t bytes), void *context)
{
	struct stream *s = &c->stream;

	close_stream(c);
	s->curl = lib.curl_easy_init();
	s->partial.max = BC_CLIENT_LINE_MAX;
	s->line = line;
	s->context = context;
	s->deadline_ns = bc_now_ns() + (uint64_t)c->timeout_ms * 1000000;
	if (s->curl != NULL && set_common_options(c, s->curl, path, &s->is_head_complete) &&
		lib.curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, on_stream_data) == CURLE_OK &&
		lib.curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, c) == CURLE_OK &&
		lib.curl_multi_add_handle(c->multi, s->curl) == CURLM_OK)
		return BC_EXIT_OK;
	if (s->curl != NULL)
		lib.curl_easy_cleanup(s->curl);
	s->curl = NULL;
	return fail(c, BC_EXIT_FAILED, "out of memory");
}

/* Closes the stream, which ended with `rc`, and returns its result. */
static enum bc_exit finish_stream(struct bc_client *c, CURLcode rc)
{
	struct stream *s = &c->stream;
	long status = status_of(s->curl);
	enum bc_exit code = BC_EXIT_OK;
	json_t *json = NULL;

	if (rc == CURLE_OK && !s->is_head_complete)
		rc = CURLE_PARTIAL_FILE;
	if (s->is_stopped)
		code = BC_EXIT_OK;
	else if (rc == CURLE_PARTIAL_FILE && s->is_head_complete && status >= 200 && status <= 299)
		code = fail(c, BC_EXIT_UNREACHABLE, "buscapd has stopped");
	else if (rc != CURLE_OK)
		code = fail_curl(c, rc, &s->partial);
	else if (status < 200 || status > 299) {
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

/* Transfers what is available without blocking. If the stream has ended, sets *code and returns
 * false. */
static bool transfer(struct bc_client *c, enum bc_exit *code)
{
	struct stream *s = &c->stream;
	int running = 0;
	int left;

	if (lib.curl_multi_perform(c->multi, &running) != CURLM_OK) {
		*code = fail(c, BC_EXIT_FAILED, "out of memory");
		close_stream(c);
		return false;
	}
	const CURLMsg *message = lib.curl_multi_info_read(c->multi, &left);
	if (message != NULL && message->msg == CURLMSG_DONE) {
		*code = finish_stream(c, message->data.result);
		return false;
	}
	s->has_status = s->has_status || status_of(s->curl) != 0;
	if (!s->has_status && bc_now_ns() >= s->deadline_ns) {
		*code = fail_timeout(c);
		close_stream(c);
		return false;
	}
	return true;
}

/* Waits for the stream, the descriptors or the time. Returns whether a descriptor is ready. */
static bool poll_stream(struct bc_client *c, struct pollfd *fds, unsigned count, uint64_t until_ns)
{
	struct curl_waitfd wait[FDS_MAX] = {0};
	uint64_t now = bc_now_ns();
	int ready;

	assert(count <= FDS_MAX);
	for (unsigned i = 0; i < count; i++) {
		wait[i].fd = fds[i].fd;
		wait[i].events = (short)((fds[i].events & POLLIN ? CURL_WAIT_POLLIN : 0) |
					 (fds[i].events & POLLOUT ? CURL_WAIT_POLLOUT : 0));
	}
	if (!c->stream.has_status && until_ns > c->stream.deadline_ns)
		until_ns = c->stream.deadline_ns;
	uint64_t ms = until_ns > now ? (until_ns - now + 999999) / 1000000 : 0;
	lib.curl_multi_poll(c->multi, wait, count, ms < 60000 ? (int)ms : 60000, &ready);
	/* Poll again because libcurl does not report POLLHUP. */
	return count != 0 && poll(fds, count, 0) > 0;
}

enum bc_exit bc_client_wait(struct bc_client *c, struct pollfd *fds, unsigned count, int timeout_ms)
{
	uint64_t until_ns = timeout_ms < 0 ? UINT64_MAX / 2
					   : bc_now_ns() + (uint64_t)timeout_ms * 1000000;
	enum bc_exit code = BC_EXIT_OK;

	for (unsigned i = 0; i < count; i++)
		fds[i].revents = 0;
	if (c->stream.curl == NULL)
		return BC_EXIT_OK;
	uint64_t lines = c->stream.lines;
	c->err[0] = '\0';
	/* Reads once more after the deadline: lines may have arrived while this process did not
	 * run. */
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
	return c->stream.curl == NULL;
}

/* ---- the client */

enum bc_exit bc_client_open(
	struct bc_client **client, const struct bc_console *console, const char *path)
{
	const char *set = getenv("BUSCAP_SOCKET");
	struct bc_client *c = calloc(1, sizeof(*c));
	char err[256];

	*client = NULL;
	if (c == NULL)
		return bc_print_no_memory(console);
	if (!bc_late_library_load(&curl_library, err, sizeof(err))) {
		free(c);
		bc_print_error(console, NULL, "%s", err);
		return BC_EXIT_FAILED;
	}
	if (lib.curl_global_init(CURL_GLOBAL_NOTHING) != CURLE_OK) {
		free(c);
		return bc_print_no_memory(console);
	}
	if (path == NULL || *path == '\0')
		path = set != NULL && *set != '\0' ? set : NULL;
	c->console = console;
	c->given = path != NULL ? strdup(path) : NULL;
	(void)bc_user_socket(c->user);
	c->timeout_ms = BC_CLIENT_TIMEOUT_MS;
	c->multi = lib.curl_multi_init();
	c->call = lib.curl_easy_init();
	c->json_header = lib.curl_slist_append(NULL, "Content-Type: application/json");
	if ((path != NULL && c->given == NULL) || c->multi == NULL || c->call == NULL ||
		c->json_header == NULL) {
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
	lib.curl_easy_cleanup(c->call);
	lib.curl_multi_cleanup(c->multi);
	lib.curl_slist_free_all(c->json_header);
	lib.curl_global_cleanup();
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
	bc_print_error(c->console, NULL, BAD_RESPONSE);
	return BC_EXIT_FAILED;
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
