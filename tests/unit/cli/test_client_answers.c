/* Commands that get odd answers from the daemon: each member in turn is of another type, too large
 * or missing. The command fails with a message or copes, and its output can't harm a terminal.
 * tests/system/test_live_cli.py tries a few of them with the program. */
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
		body = text_of(odd);
		a = run(f, command, body);
		command_run_free(&a);
		free(body);
	}
	json_decref(all);
	json_decref(answer);
}

/* Returns {"NAME": VALUE}, or {"NAME": [VALUE]} with is_list. */
static json_t *answer_with(struct fixture *f, const char *name, const char *good, bool is_list)
{
	json_t *value = json_object_get(f->good, good);

	return is_list ? json_pack("{s:[O]}", name, value) : json_pack("{s:O}", name, value);
}

TEST_F(a_status_with_odd_members_is_handled)
{
	static const struct answered_command command = {.line = "status"};

	answer_oddly(f, &command, json_deep_copy(json_object_get(f->good, "status")));
}

TEST_F(recordings_with_odd_members_are_handled)
{
	static const struct answered_command list = {.line = "record list"};
	static const struct answered_command stop = {.line = "record stop"};
	static const struct answered_command show = {
		.line = "record show 20261120T091500Z-3f9a2c-boot"};

	answer_oddly(f, &list, answer_with(f, "recordings", "recording", true));
	answer_oddly(f, &stop, answer_with(f, "recording", "recording", false));
	answer_oddly(f, &show, answer_with(f, "recordings", "recording", true));
}

TEST_F(a_mark_with_odd_members_is_handled)
{
	static const struct answered_command command = {.line = "mark x"};

	answer_oddly(f, &command,
		json_pack("{s:{s:s, s:i, s:i, s:i}}", "mark", "text", "x", "record", 1, "tick", 2,
			"epoch", 0));
}

TEST_F(triggers_with_odd_members_are_handled)
{
	static const struct answered_command command = {.line = "trigger list"};

	answer_oddly(f, &command, answer_with(f, "triggers", "trigger", true));
}

TEST_F(replays_with_odd_members_are_handled)
{
	static const struct answered_command list = {.line = "replay list"};
	static const struct answered_command cancel = {.line = "replay cancel"};

	answer_oddly(f, &list, answer_with(f, "replays", "replay", true));
	answer_oddly(f, &cancel, answer_with(f, "replay", "replay", false));
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
