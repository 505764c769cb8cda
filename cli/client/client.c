#include "cli/client/client.h"

#include <assert.h>
#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/client/byte_buffer.h"
#include "cli/client/socket_probe.h"
#include "cli/term/json_path.h"
#include "cli/term/safe_text.h"
#include "formats/base/json.h"

#define FDS_MAX 8

struct stream {
	CURL *curl; /* NULL: there is none */
	bool (*line)(void *context, char *text, size_t bytes);
	void *context;
	struct bc_byte_buffer
		rest; /* of a line whose end hasn't come; or of an answer that refuses */
	uint64_t answer_by_ns;
	bool is_answered;
	bool has_head;
	bool is_enough; /* the caller wants no more */
	uint64_t lines;
};

struct bc_client {
	const struct bc_console *console;
	char *path;
	CURLM *multi;
	CURL *call;
	struct curl_slist *json_header;
	struct stream stream;
	long timeout_ms;
	bool has_head; /* the last answer's head came whole */
	char err[1200];
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

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
	int rc = bc_socket_probe(c->path, c->timeout_ms);

	bc_socket_probe_error(c->err, sizeof(c->err), c->path, rc, c->timeout_ms);
	return BC_EXIT_UNREACHABLE;
}

static enum bc_exit fail_timeout(struct bc_client *c)
{
	return fail(c, BC_EXIT_UNREACHABLE,
		"no answer within %ld s; if that stays so, look into the log of buscapd",
		c->timeout_ms / 1000);
}

/* What libcurl's code of a request that failed means here. */
static enum bc_exit fail_curl(struct bc_client *c, CURLcode code, const struct bc_byte_buffer *body)
{
	if (body->is_without_memory || code == CURLE_OUT_OF_MEMORY)
		return fail(c, BC_EXIT_FAILED, "out of memory");
	if (body->is_too_long)
		return fail(c, BC_EXIT_FAILED,
			"what the daemon sent is longer than %zu MiB: it is not taken",
			body->most >> 20);
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST: /* a path that is too long */
	case CURLE_COULDNT_CONNECT:
	case CURLE_SEND_ERROR: /* where the queue is full, too */
		return fail_connect(c);
	case CURLE_OPERATION_TIMEDOUT:
		return fail_timeout(c);
	case CURLE_GOT_NOTHING:
	case CURLE_RECV_ERROR:
		return fail(c, BC_EXIT_UNREACHABLE,
			"the connection broke before an answer came whole: buscapd has ended, or "
			"has too many clients; try again, or see journalctl -u buscapd");
	case CURLE_PARTIAL_FILE:
		return fail(c, BC_EXIT_FAILED, "what the daemon sent is cut off in the middle");
	default:
		return fail(c, BC_EXIT_FAILED,
			"what the daemon sent is no HTTP that makes sense (%s)",
			curl_easy_strerror(code));
	}
}

/* The daemon's own sentence, or what stands for it. */
static enum bc_exit fail_refused(struct bc_client *c, long status, const json_t *json)
{
	const char *error = bc_json_path_text(json, "error");

	if (error == NULL)
		return fail(c, BC_EXIT_FAILED,
			"the daemon refused it with HTTP status %ld, and doesn't say why", status);
	bc_safe_text(c->err, sizeof(c->err), error);
	return status == 400 ? BC_EXIT_USAGE : BC_EXIT_FAILED;
}

/* ---- requests */

/* libcurl takes a head that is cut off for a whole one. */
static size_t take_head(char *bytes, size_t one, size_t n, void *context)
{
	bool *has_head = context;

	*has_head = one * n == 2 && memcmp(bytes, "\r\n", 2) == 0;
	return one * n;
}

/* Makes `curl` ask for a path of this client's socket, with the options that all requests share. */
static bool set_up(struct bc_client *c, CURL *curl, const char *path, bool *has_head)
{
	char *url;

	if (asprintf(&url, "http://localhost%s", path) < 0)
		return false;
	curl_easy_reset(curl);
	bool ok = curl_easy_setopt(curl, CURLOPT_URL, url) == CURLE_OK &&
		  curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, c->path) == CURLE_OK &&
		  curl_easy_setopt(curl, CURLOPT_PROXY, "") == CURLE_OK &&
		  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
		  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http") == CURLE_OK &&
		  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK &&
		  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) ==
			  CURLE_OK &&
		  curl_easy_setopt(curl, CURLOPT_USERAGENT, "buscap/" BC_VERSION) == CURLE_OK &&
		  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_head) == CURLE_OK &&
		  curl_easy_setopt(curl, CURLOPT_HEADERDATA, has_head) == CURLE_OK;
	free(url);
	*has_head = false;
	c->err[0] = '\0';
	return ok;
}

static size_t take_body(char *bytes, size_t one, size_t n, void *context)
{
	return bc_byte_buffer_add(context, bytes, one * n) ? one * n : 0;
}

static long status_of(CURL *curl)
{
	long status = 0;

	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static bool set_call(struct bc_client *c, const char *method, const char *path, char *body,
	struct bc_byte_buffer *answer)
{
	CURL *curl = c->call;
	bool ok = set_up(c, curl, path, &c->has_head) &&
		  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method) == CURLE_OK &&
		  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, c->timeout_ms) == CURLE_OK &&
		  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
		  curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer) == CURLE_OK;

	if (!ok || body == NULL)
		return ok;
	return curl_easy_setopt(curl, CURLOPT_HTTPHEADER, c->json_header) == CURLE_OK &&
	       curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body) == CURLE_OK;
}

/* An answer's body as an object, where there is one. */
static enum bc_exit read_answer(
	struct bc_client *c, struct bc_byte_buffer *body, struct bc_answer *a)
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
	return fail(c, BC_EXIT_FAILED, "the daemon's answer is not a JSON object");
}

enum bc_exit bc_client_call(struct bc_client *c, const char *method, const char *path,
	const json_t *body, struct bc_answer *answer)
{
	struct bc_answer own = {0};
	struct bc_byte_buffer got = {.most = BC_CLIENT_ANSWER_BYTES};
	char *text = NULL;
	enum bc_exit code;

	struct bc_answer *a = answer != NULL ? answer : &own;
	*a = (struct bc_answer){0};
	if (body != NULL && (text = bc_json_print(body)) == NULL)
		return fail(c, BC_EXIT_FAILED, "out of memory");
	if (!set_call(c, method, path, text, &got)) {
		code = fail(c, BC_EXIT_FAILED, "out of memory");
	} else {
		CURLcode rc = curl_easy_perform(c->call);
		if (rc == CURLE_OK && !c->has_head)
			rc = CURLE_PARTIAL_FILE;
		if (rc == CURLE_OK) {
			a->status = status_of(c->call);
			code = read_answer(c, &got, a);
		} else {
			code = fail_curl(c, rc, &got);
		}
	}
	bc_byte_buffer_free(&got);
	free(text);
	if (answer == NULL)
		bc_answer_free(&own);
	return code;
}

void bc_answer_free(struct bc_answer *answer)
{
	json_decref(answer->json);
	free(answer->text);
	*answer = (struct bc_answer){0};
}

/* ---- the stream */

static void end_stream(struct bc_client *c)
{
	if (c->stream.curl != NULL) {
		curl_multi_remove_handle(c->multi, c->stream.curl);
		curl_easy_cleanup(c->stream.curl);
	}
	bc_byte_buffer_free(&c->stream.rest);
	c->stream = (struct stream){0};
}

/* Hands over the line that is gathered. */
static bool give_line(struct stream *s)
{
	size_t bytes = s->rest.used;

	s->rest.used = 0;
	if (bytes != 0 && s->rest.bytes[bytes - 1] == '\r')
		s->rest.bytes[--bytes] = '\0';
	if (bytes == 0)
		return true;
	s->lines++;
	s->is_enough = !s->line(s->context, s->rest.bytes, bytes);
	return !s->is_enough;
}

static size_t take_lines(char *bytes, size_t one, size_t n, void *context)
{
	struct bc_client *c = context;
	struct stream *s = &c->stream;
	long status = status_of(s->curl);
	const char *end = bytes + one * n;

	if (status < 200 || status > 299)
		return bc_byte_buffer_add(&s->rest, bytes, one * n) ? one * n : 0;
	for (const char *p = bytes; p < end;) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		const char *to = newline != NULL ? newline : end;
		if (!bc_byte_buffer_add(&s->rest, p, (size_t)(to - p)))
			return 0;
		if (newline != NULL && !give_line(s))
			return 0;
		p = newline != NULL ? newline + 1 : end;
	}
	return one * n;
}

enum bc_exit bc_client_stream(struct bc_client *c, const char *path,
	bool (*line)(void *context, char *text, size_t bytes), void *context)
{
	struct stream *s = &c->stream;

	end_stream(c);
	s->curl = curl_easy_init();
	s->rest.most = BC_CLIENT_LINE_BYTES;
	s->line = line;
	s->context = context;
	s->answer_by_ns = now_ns() + (uint64_t)c->timeout_ms * 1000000;
	if (s->curl != NULL && set_up(c, s->curl, path, &s->has_head) &&
		curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, take_lines) == CURLE_OK &&
		curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, c) == CURLE_OK &&
		curl_multi_add_handle(c->multi, s->curl) == CURLM_OK)
		return BC_EXIT_OK;
	if (s->curl != NULL)
		curl_easy_cleanup(s->curl);
	s->curl = NULL;
	return fail(c, BC_EXIT_FAILED, "out of memory");
}

/* The stream has ended as `rc` says. */
static enum bc_exit finish_stream(struct bc_client *c, CURLcode rc)
{
	struct stream *s = &c->stream;
	long status = status_of(s->curl);
	enum bc_exit code = BC_EXIT_OK;
	json_t *json = NULL;

	if (rc == CURLE_OK && !s->has_head)
		rc = CURLE_PARTIAL_FILE;
	if (s->is_enough)
		code = BC_EXIT_OK;
	else if (rc == CURLE_PARTIAL_FILE && s->has_head && status >= 200 && status <= 299)
		code = fail(c, BC_EXIT_UNREACHABLE,
			"the connection broke: buscapd has ended; its log says why, start it "
			"again");
	else if (rc != CURLE_OK)
		code = fail_curl(c, rc, &s->rest);
	else if (status < 200 || status > 299) {
		if (s->rest.used != 0)
			json = bc_json_parse_object(s->rest.bytes, s->rest.used);
		code = fail_refused(c, status, json);
	} else if (s->rest.used != 0) {
		code = fail(c, BC_EXIT_FAILED, "what the daemon sent is cut off in the middle");
	}
	json_decref(json);
	end_stream(c);
	return code;
}

/* Takes what is there. Returns false when the stream has ended, with *code set. */
static bool perform(struct bc_client *c, enum bc_exit *code)
{
	struct stream *s = &c->stream;
	int running = 0;
	int left;

	if (curl_multi_perform(c->multi, &running) != CURLM_OK) {
		*code = fail(c, BC_EXIT_FAILED, "out of memory");
		end_stream(c);
		return false;
	}
	const CURLMsg *message = curl_multi_info_read(c->multi, &left);
	if (message != NULL && message->msg == CURLMSG_DONE) {
		*code = finish_stream(c, message->data.result);
		return false;
	}
	s->is_answered = s->is_answered || status_of(s->curl) != 0;
	if (!s->is_answered && now_ns() >= s->answer_by_ns) {
		*code = fail_timeout(c);
		end_stream(c);
		return false;
	}
	return true;
}

/* Waits until there is something to do. Returns whether one of the descriptors is ready. */
static bool poll_all(struct bc_client *c, struct pollfd *fds, unsigned count, uint64_t until_ns)
{
	struct curl_waitfd wait[FDS_MAX] = {0};
	uint64_t now = now_ns();
	bool is_ready = false;
	int ready;

	assert(count <= FDS_MAX);
	for (unsigned i = 0; i < count; i++) {
		wait[i].fd = fds[i].fd;
		wait[i].events = (short)((fds[i].events & POLLIN ? CURL_WAIT_POLLIN : 0) |
					 (fds[i].events & POLLOUT ? CURL_WAIT_POLLOUT : 0));
	}
	if (!c->stream.is_answered && until_ns > c->stream.answer_by_ns)
		until_ns = c->stream.answer_by_ns;
	uint64_t ms = until_ns > now ? (until_ns - now + 999999) / 1000000 : 0;
	curl_multi_poll(c->multi, wait, count, ms < 60000 ? (int)ms : 60000, &ready);
	/* Asked anew: what hung up, libcurl doesn't tell. */
	if (count != 0)
		is_ready = poll(fds, count, 0) > 0;
	return is_ready;
}

enum bc_exit bc_client_wait(struct bc_client *c, struct pollfd *fds, unsigned count, int timeout_ms)
{
	uint64_t until_ns = timeout_ms < 0 ? UINT64_MAX / 2
					   : now_ns() + (uint64_t)timeout_ms * 1000000;
	enum bc_exit code = BC_EXIT_OK;

	for (unsigned i = 0; i < count; i++)
		fds[i].revents = 0;
	if (c->stream.curl == NULL)
		return BC_EXIT_OK;
	uint64_t lines = c->stream.lines;
	c->err[0] = '\0';
	for (;;) {
		if (!perform(c, &code) || c->stream.lines != lines) {
			if (count != 0)
				(void)poll(fds, count, 0);
			return code;
		}
		if (poll_all(c, fds, count, until_ns) || now_ns() >= until_ns)
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

	*client = NULL;
	if (c == NULL)
		return bc_print_no_memory(console);
	if (curl_global_init(CURL_GLOBAL_NOTHING) != CURLE_OK) {
		free(c);
		return bc_print_no_memory(console);
	}
	if (path == NULL || *path == '\0')
		path = set != NULL && *set != '\0' ? set : BC_CLIENT_SOCKET;
	c->console = console;
	c->path = strdup(path);
	c->timeout_ms = BC_CLIENT_TIMEOUT_MS;
	c->multi = curl_multi_init();
	c->call = curl_easy_init();
	c->json_header = curl_slist_append(NULL, "Content-Type: application/json");
	if (c->path == NULL || c->multi == NULL || c->call == NULL || c->json_header == NULL) {
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
	end_stream(c);
	curl_easy_cleanup(c->call);
	curl_multi_cleanup(c->multi);
	curl_slist_free_all(c->json_header);
	curl_global_cleanup();
	free(c->path);
	free(c);
}

const char *bc_client_path(const struct bc_client *c)
{
	return c->path;
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
	bc_print_error(c->console, code == BC_EXIT_UNREACHABLE ? c->path : NULL, "%s", c->err);
	return code;
}

enum bc_exit bc_client_complain_answer(const struct bc_client *c)
{
	bc_print_error(c->console, NULL,
		"the daemon's answer lacks what it should have; is it a buscapd of "
		"version " BC_VERSION "?");
	return BC_EXIT_FAILED;
}

void bc_answer_write_json(struct bc_output *output, const struct bc_answer *answer)
{
	size_t bytes = answer->bytes;

	while (bytes != 0 && answer->text[bytes - 1] == '\n')
		bytes--;
	if (bytes != 0)
		bc_output_json(output, answer->text, bytes);
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
