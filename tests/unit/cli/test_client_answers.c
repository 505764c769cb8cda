/* Commands that get odd answers from the daemon: each member in turn is of another type, too large
 * or missing; errors; responses cut at any byte; no HTTP or JSON. The command fails with a message
 * or copes, and its output can't harm a terminal. */
#include <jansson.h>

#include "tests/support/answered.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

struct fixture {
	struct temp_dir dir;
	json_t *good; /* of a daemon without faults */
	json_t *odd;  /* an array of values */
};

static void set_up(struct fixture *f)
{
	static char text[5001];

	temp_dir_make(&f->dir);
	f->good = json_load_file("tests/support/answers.json", 0, NULL);
	if (f->good == NULL)
		fail_msg("run it in the top folder of the project");
	json_object_set_new(f->good, "mark",
		json_pack("{s:s, s:i, s:i, s:i}", "text", "x", "record", 1, "tick", 2, "epoch", 0));
	memset(text, 'x', sizeof(text) - 1);
	f->odd = json_loads("[null, true, -1, 0.5, 1e308, 9223372036854775807, \"\", "
			    "\"\\u001b[31m\\u0000\\u0085\\u2028\", [], [[]], {}, "
			    "{\"\\u001b\": \"\\u0007\"}]",
		JSON_ALLOW_NUL, NULL);
	assert_non_null(f->odd);
	json_array_append_new(f->odd, json_string(text));
}

static void tear_down(struct fixture *f)
{
	json_decref(f->good);
	json_decref(f->odd);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

/* Returns an array of this value with each of its parts in turn omitted or replaced by each odd
 * value, and of the odd values. */
static json_t *variants_of(struct fixture *f, json_t *value)
{
	json_t *all = json_array();
	const char *name;
	json_t *part;
	json_t *other;
	size_t at;
	size_t i;

	json_object_foreach(value, name, part)
	{
		json_t *copy = json_copy(value);
		json_object_del(copy, name);
		json_array_append_new(all, copy);
		json_t *others = variants_of(f, part);
		json_array_foreach(others, i, other)
		{
			copy = json_copy(value);
			json_object_set(copy, name, other);
			json_array_append_new(all, copy);
		}
		json_decref(others);
	}
	json_array_foreach(value, at, part)
	{
		json_t *others = variants_of(f, part);
		json_array_foreach(others, i, other)
		{
			json_t *copy = json_copy(value);
			json_array_set(copy, at, other);
			json_array_append_new(all, copy);
		}
		json_decref(others);
	}
	json_array_extend(all, f->odd);
	return all;
}

static char *text_of(const json_t *value)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);

	assert_non_null(text);
	return text;
}

static struct command_run run(
	struct fixture *f, const struct answered_command *command, const char *body)
{
	const struct answer answer = {"200 OK", body, strlen(body)};
	struct command_run a;

	answered_run(&a, command, f->dir.fd, &answer);
	const char *fault = answered_fault(&a, command);
	if (fault != NULL)
		fail_msg("%s: %s\nanswer: %s\noutput: %s\nerrors: %s", command->line, fault, body,
			a.out, a.err);
	/* One line. */
	assert_true(a.err_bytes == 0 || strchr(a.err, '\n') == a.err + a.err_bytes - 1);
	return a;
}

/* Takes over the answer. */
static void answer_oddly(struct fixture *f, const struct answered_command *command, json_t *answer)
{
	json_t *all = variants_of(f, answer);
	char *body = text_of(answer);
	struct command_run a = run(f, command, body);
	json_t *odd;
	size_t i;

	assert_int_equal(a.code, BC_EXIT_OK);
	assert_int_equal(a.err_bytes, 0);
	command_run_free(&a);
	free(body);
	assert_true(json_array_size(all) > 50);
	json_array_foreach(all, i, odd)
	{
		if (i % test_stride(15) != 0)
			continue;
		body = text_of(odd);
		a = run(f, command, body);
		command_run_free(&a);
		free(body);
	}
	json_decref(all);
	json_decref(answer);
}

/* An answer: a good value, or {NAME: VALUE}, or {NAME: [VALUE]}. */
static const struct form {
	const char *line;
	const char *name;
	const char *good;
	bool is_list;
} forms[] = {
	{"status", NULL, "status", false},
	{"record list", "recordings", "recording", true},
	{"record stop", "recording", "recording", false},
	{"record show 20261120T091500Z-3f9a2c-boot", "recordings", "recording", true},
	{"mark x", "mark", "mark", false},
	{"trigger list", "triggers", "trigger", true},
};

static json_t *answer_of(struct fixture *f, const struct form *form)
{
	json_t *value = json_object_get(f->good, form->good);

	if (form->name == NULL)
		return json_deep_copy(value);
	return json_pack(form->is_list ? "{s:[O]}" : "{s:O}", form->name, value);
}

TEST_F(answers_with_odd_members_are_handled)
{
	for (size_t i = 0; i < COUNT_OF(forms); i++) {
		const struct answered_command command = {.line = forms[i].line};
		answer_oddly(f, &command, answer_of(f, &forms[i]));
	}
}

/* The record before an odd one is printed. */
TEST_F(odd_records_in_a_stream_are_handled)
{
	static const struct answered_command command = {.line = "tail -t tick"};
	static const char line[] = "000b8000\tMEMWRITE\t 4\t03\t0\tffffffff\t1000\n";
	json_t *records = json_object_get(f->good, "records");
	char *first = text_of(json_array_get(records, 0));
	json_t *record;
	json_t *odd;
	size_t i;
	size_t k;

	json_array_foreach(records, i, record)
	{
		json_t *all = variants_of(f, record);
		json_array_foreach(all, k, odd)
		{
			if ((i + k) % test_stride(7) != 0)
				continue;
			char *other = text_of(odd);
			char *body;
			assert_true(asprintf(&body, "%s\n%s\n%s\n", first, other, first) > 0);
			struct command_run a = run(f, &command, body);
			if (strncmp(a.out, line, strlen(line)) != 0)
				fail_msg("%s\nis printed as\n%s%s", body, a.out, a.err);
			command_run_free(&a);
			free(body);
			free(other);
		}
		json_decref(all);
	}
	free(first);
}

/* ---- answers that are errors, cut off, or not HTTP or JSON */

/* Runs a command against a whole response. It prints at most one line of errors. */
static struct command_run run_raw(
	struct fixture *f, const char *line, const char *bytes, size_t count)
{
	const struct answered_command command = {.line = line};
	const struct answer answer = {NULL, bytes, count};
	struct command_run a;

	answered_run(&a, &command, f->dir.fd, &answer);
	const char *fault = answered_fault(&a, &command);
	if (fault != NULL || (a.err_bytes != 0 && strchr(a.err, '\n') != a.err + a.err_bytes - 1))
		fail_msg("%s: %s\nanswer: %.200s\noutput: %s\nerrors: %s", line,
			fault != NULL ? fault : "several lines", bytes, a.out, a.err);
	return a;
}

static char *response(const char *status, const char *body)
{
	char *text;

	assert_true(asprintf(&text,
			    "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: "
			    "%zu\r\n\r\n%s",
			    status, strlen(body), body) > 0);
	return text;
}

static const char *const requests[] = {"status", "status --watch 0.1", "record start",
	"record stop", "record list", "record show", "record show x", "record note a=b", "rotate",
	"mark x", "snapshot", "trigger list", "trigger add a mark gap", "trigger remove a", "tail",
	"events"};

TEST_F(a_missing_socket_is_reported_with_advice)
{
	char line[100];
	char err[300];

	for (size_t i = 0; i < COUNT_OF(requests); i++) {
		struct command_run a;
		snprintf(line, sizeof(line), "%s --socket no-socket", requests[i]);
		snprintf(err, sizeof(err),
			"buscap %.*s: no-socket: no such socket; is buscapd running? Start it, or "
			"set $BUSCAP_SOCKET to its socket\n",
			command_name_bytes(line), line);
		command_run(&a, line);
		assert_int_equal(a.code, BC_EXIT_UNREACHABLE);
		assert_string_equal(a.out, "");
		assert_string_equal(a.err, err);
		command_run_free(&a);
	}
}

TEST_F(the_daemons_error_text_is_printed)
{
	static const char *const others[][2] = {{"500 Word", "{}"}, {"500 Word", "{\"error\": 7}"},
		{"404 Word", "[]"}, {"503 Word", "busy"}, {"400 Word", ""}};
	char err[100];

	for (size_t i = 0; i < COUNT_OF(requests); i++) {
		char *text = response(
			"409 Word", "{\"error\": \"not \\u001b[2J\\u202enow: \\\\ \\u00e4\"}");
		struct command_run a = run_raw(f, requests[i], text, strlen(text));
		snprintf(err, sizeof(err),
			"buscap %.*s: not \\x1b[2J\\xe2\\x80\\xaenow: \\x5c \303\244\n",
			command_name_bytes(requests[i]), requests[i]);
		assert_int_equal(a.code, BC_EXIT_FAILED);
		assert_string_equal(a.out, "");
		assert_string_equal(a.err, err);
		command_run_free(&a);
		free(text);
		for (size_t k = 0; k < COUNT_OF(others); k++) {
			text = response(others[k][0], others[k][1]);
			a = run_raw(f, requests[i], text, strlen(text));
			assert_int_equal(a.code, BC_EXIT_FAILED);
			assert_string_equal(a.out, "");
			assert_non_null(strstr(a.err, "HTTP status"));
			command_run_free(&a);
			free(text);
		}
	}
}

TEST_F(a_response_cut_at_any_byte_is_reported)
{
	json_t *list = answer_of(f, &forms[1]);
	char *body = text_of(list);
	char *whole = response("200 OK", body);
	size_t bytes = strlen(whole);

	for (size_t at = 0; at < bytes; at += test_stride(5)) {
		struct command_run a = run_raw(f, "record list", whole, at);
		assert_string_equal(a.out, "");
		assert_true(a.err_bytes != 0);
		assert_true(at < bytes - strlen(body) || a.code == BC_EXIT_FAILED);
		command_run_free(&a);
	}
	free(whole);
	free(body);
	json_decref(list);
}

TEST_F(a_stream_cut_at_any_byte_is_reported)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
	static const char lines[] = "000b8000\tMEMWRITE\t 4\t03\t0\tffffffff\t1000\n"
				    "# gap: 17 samples lost (board)\n";
	json_t *records = json_object_get(f->good, "records");
	char *first = text_of(json_array_get(records, 0));
	char *second = text_of(json_array_get(records, 1));
	char *whole;

	int bytes = asprintf(&whole, "%s%zx\r\n%s\n%s\n\r\n0\r\n\r\n", head,
		strlen(first) + strlen(second) + 2, first, second);
	for (size_t at = 0; at < (size_t)bytes - 4; at++) {
		struct command_run a = run_raw(f, "tail -t tick", whole, at);
		assert_int_equal(strncmp(lines, a.out, a.out_bytes), 0);
		assert_true(a.err_bytes != 0);
		assert_true(at < sizeof(head) || strstr(a.err, "buscapd has stopped") != NULL);
		command_run_free(&a);
	}
	free(whole);
	free(first);
	free(second);
}

/* Returns allocated text: a start, a part many times, and an end. */
static char *repeat(const char *start, const char *part, size_t count, const char *end)
{
	size_t n = strlen(part);
	char *text = test_alloc(strlen(start) + n * count + strlen(end) + 1);
	char *at = stpcpy(text, start);

	for (size_t i = 0; i < count; i++)
		at = mempcpy(at, part, n);
	strcpy(at, end);
	return text;
}

static void answer_nonsense(struct fixture *f, const char *bytes, size_t count, bool is_empty)
{
	static const char *const lines[] = {"status", "record list", "record stop",
		"record show 20261120T091500Z-3f9a2c-boot", "mark x", "trigger list", "tail",
		"events"};

	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		bool is_stream = i >= COUNT_OF(lines) - 2;
		struct command_run a = run_raw(f, lines[i], bytes, count);
		assert_string_equal(a.out, "");
		assert_true(a.err_bytes != 0 || (is_stream && is_empty));
		command_run_free(&a);
	}
}

TEST_F(invalid_http_and_json_are_reported)
{
	static const char *const bodies[] = {"", "[]", "7", "null", "\"x\"", "{", "{}{}",
		"{\"a\":1,}", "\377\376{}", "\033[2J", "{} x"};
	static const char *const raws[] = {"", "SSH-2.0-x\r\n", "\033[2J\r\n\r\n",
		"HTTP/9.9 200 OK\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
		"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\037\213"};
	char *long_bodies[] = {repeat("", "[", 100000, ""), repeat("", "{\"a\":", 100000, ""),
		repeat("{\"", "a", 1000000, "\":1")};
	char *long_raws[] = {repeat("HTTP/1.1 200 OK\r\n", "X: y\r\n", 100000, ""),
		repeat("", "HTTP/1.1 100 Continue\r\n\r\n", 50, "")};
	static const char zeros[1000];

	for (size_t i = 0; i < COUNT_OF(bodies) + COUNT_OF(long_bodies); i++) {
		char *text = response("200 OK",
			i < COUNT_OF(bodies) ? bodies[i] : long_bodies[i - COUNT_OF(bodies)]);
		answer_nonsense(f, text, strlen(text), i == 0);
		free(text);
	}
	for (size_t i = 0; i < COUNT_OF(raws); i++)
		answer_nonsense(f, raws[i], strlen(raws[i]), false);
	answer_nonsense(f, zeros, sizeof(zeros), false);
	for (size_t i = 0; i < COUNT_OF(long_raws); i++)
		answer_nonsense(f, long_raws[i], strlen(long_raws[i]), false);
	for (size_t i = 0; i < COUNT_OF(long_bodies); i++)
		free(long_bodies[i]);
	for (size_t i = 0; i < COUNT_OF(long_raws); i++)
		free(long_raws[i]);
}
