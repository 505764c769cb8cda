#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/hook/event_command.h"
#include "formats/base/json.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

TEST_THREADS;

#define S UINT64_C(1000000000)

struct fixture {
	struct temp_dir dir;
	uv_loop_t loop;
	struct bc_event_command *command;
	char path[TEMP_PATH_BYTES];
	json_t *lines; /* what the command has read */
	unsigned done;
};

static json_t *make_status(void *context)
{
	struct fixture *f = context;

	/* Making the status may emit events. */
	json_t *members = json_object();
	bc_event_command_see(f->command, "state", members);
	json_decref(members);
	return json_pack("{s:s}", "state", "recording");
}

static void set_up(struct fixture *f)
{
	char text[512];
	struct bc_event_command_options options = {
		.loop = &f->loop,
		.command = f->path,
		.interval_ns = 60 * S,
		.context = f,
		.status = make_status,
	};

	temp_dir_make(&f->dir);
	int n = snprintf(text, sizeof(text), "#!/bin/sh\necho $1 >>%s/names\ncat >>%s/lines\n",
		f->dir.path, f->dir.path);
	temp_write(&f->dir, "command", text, (size_t)n);
	temp_path(&f->dir, "command", f->path);
	assert_int_equal(chmod(f->path, 0700), 0);
	assert_int_equal(uv_loop_init(&f->loop), 0);
	assert_int_equal(bc_event_command_open(&f->command, &options), 0);
}

static void tear_down(struct fixture *f)
{
	json_decref(f->lines);
	bc_event_command_close(f->command);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&f->loop), 0);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void see(struct fixture *f, const char *event, json_t *members)
{
	bc_event_command_see(f->command, event, members);
	json_decref(members);
}

static void see_gap(struct fixture *f, const char *cause, unsigned lost, bool is_exact)
{
	see(f, "gap",
		json_pack("{s:s, s:i, s:i, s:b}", "cause", cause, "gaps", 1, "lost", (int)lost,
			"exact", (int)is_exact));
}

static void on_done(void *context)
{
	struct fixture *f = context;

	f->done++;
}

/* Ends the command's runs. Returns the object that the run with this number read. */
static json_t *object_of(struct fixture *f, size_t number)
{
	if (f->done == 0) {
		bc_event_command_finish(f->command, 60 * S, on_done);
		while (f->done == 0)
			uv_run(&f->loop, UV_RUN_ONCE);
		size_t n;
		char *text = (char *)temp_read(&f->dir, "lines", &n);
		text[n] = '\0';
		f->lines = json_array();
		for (char *rest = text, *at; (at = strstr(rest, "}{")) != NULL || *rest != '\0';) {
			size_t bytes = at != NULL ? (size_t)(at + 1 - rest) : strlen(rest);
			json_array_append_new(f->lines, json_loadb(rest, bytes, 0, NULL));
			rest += bytes;
		}
		free(text);
	}
	json_t *object = json_array_get(f->lines, number);
	assert_non_null(object);
	return object;
}

static void assert_event(struct fixture *f, size_t number, const char *event, uint64_t count)
{
	json_t *object = object_of(f, number);

	assert_string_equal(json_string_value(json_object_get(object, "event")), event);
	assert_int_equal(bc_json_member_u64(object, "count"), count);
	assert_non_null(json_string_value(json_object_get(object, "since")));
	assert_non_null(json_string_value(json_object_get(object, "time")));
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(object, "status"), "state")),
		"recording");
}

TEST_F(the_first_loss_runs_it_at_once_and_further_ones_are_combined)
{
	see_gap(f, "buffer", 5, true);
	bc_event_command_poll(f->command, S);
	for (unsigned i = 0; i < 1000; i++) {
		see_gap(f, "buffer", 1, true);
		see_gap(f, "board", 2, i != 7);
		bc_event_command_poll(f->command, S + i);
	}
	bc_event_command_poll(f->command, 61 * S - 1);
	bc_event_command_poll(f->command, 61 * S);
	bc_event_command_poll(f->command, 62 * S);
	assert_event(f, 0, "loss", 1);
	assert_event(f, 1, "loss", 2000);
	json_t *first = json_object_get(object_of(f, 0), "lost");
	json_t *second = json_object_get(object_of(f, 1), "lost");
	assert_int_equal(bc_json_member_u64(first, "buffer"), 5);
	assert_true(json_is_true(json_object_get(object_of(f, 0), "exact")));
	assert_int_equal(bc_json_member_u64(second, "buffer"), 1000);
	assert_int_equal(bc_json_member_u64(second, "board"), 2000);
	assert_true(json_is_false(json_object_get(object_of(f, 1), "exact")));
	assert_int_equal(json_array_size(f->lines), 2);
}

TEST_F(each_kind_of_event_has_its_own_interval)
{
	see(f, "disk", json_pack("{s:b, s:s}", "stuck", 1, "error", "no space"));
	see(f, "trigger", json_pack("{s:s, s:s}", "name", "roi", "action", "mark"));
	bc_event_command_add(
		f->command, BC_ALERT_DISK_LOW, json_pack("{s:i}", "time_left_seconds", 60));
	bc_event_command_poll(f->command, S);
	see_gap(f, "disk", 7, true);
	bc_event_command_poll(f->command, 2 * S);
	assert_event(f, 0, "disk-low", 1);
	assert_int_equal(bc_json_member_u64(object_of(f, 0), "time_left_seconds"), 60);
	assert_event(f, 1, "stuck", 1);
	assert_string_equal(
		json_string_value(json_object_get(object_of(f, 1), "error")), "no space");
	assert_event(f, 2, "trigger", 1);
	assert_string_equal(json_string_value(json_object_get(object_of(f, 2), "name")), "roi");
	assert_event(f, 3, "loss", 1);
}

TEST_F(a_gap_of_an_unplugged_board_is_not_a_loss)
{
	see_gap(f, "unplugged", 0, false);
	see_gap(f, "buffer", 1, true);
	assert_event(f, 0, "loss", 1);
	assert_int_equal(json_array_size(f->lines), 1);
}

TEST_F(what_is_left_at_the_end_is_reported)
{
	see_gap(f, "buffer", 1, true);
	bc_event_command_poll(f->command, S);
	see_gap(f, "buffer", 2, true);
	see(f, "state", json_object());
	see(f, "disk", json_pack("{s:b, s:n}", "stuck", 0, "error"));
	see(f, "disk", json_pack("{s:b, s:s}", "stuck", 0, "error", "/out/x: deleted"));
	assert_event(f, 1, "loss", 1);
	assert_event(f, 2, "disk-error", 1);
	assert_string_equal(
		json_string_value(json_object_get(object_of(f, 2), "error")), "/out/x: deleted");
	assert_int_equal(json_array_size(f->lines), 3);
}

TEST_F(without_a_command_events_are_forgotten)
{
	assert_true(bc_event_command_is_on(f->command));
	see_gap(f, "buffer", 1, true);
	assert_int_equal(bc_event_command_set(f->command, "", S, 0), 0);
	assert_false(bc_event_command_is_on(f->command));
	see_gap(f, "buffer", 2, true);
	bc_event_command_poll(f->command, S);
	assert_int_equal(bc_event_command_set(f->command, f->path, S, 0), 0);
	see_gap(f, "buffer", 4, true);
	assert_event(f, 0, "loss", 1);
	assert_int_equal(json_array_size(f->lines), 1);
}
