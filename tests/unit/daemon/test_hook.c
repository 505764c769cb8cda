#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/log_limit.h"
#include "daemon/main/hook.h"
#include "daemon/store/recording_info.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test.h"

TEST_THREADS;

#define REC  "20261120T091500Z-3f9a2c"
#define HASH "0123456789abcdef0123456789abcdef"
#define S    UINT64_C(1000000000)

struct fixture {
	struct temp_dir dir;
	char command[TEMP_PATH_BYTES];
	uv_loop_t loop;
	struct bc_log_limits limits;
	struct bc_hook *hook;
	unsigned failures;
	unsigned done;
	int status; /* of the latest failure */
	char path[128];
	char error[128];
	int stderr_fd; /* the real one, while the log goes into the directory */
};

static void set_up(struct fixture *f)
{
	temp_dir_make(&f->dir);
	assert_int_equal(uv_loop_init(&f->loop), 0);
	f->stderr_fd = dup(STDERR_FILENO);
	int fd = openat(f->dir.fd, "log", O_WRONLY | O_CREAT | O_APPEND, 0600);
	assert_true(fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	close(fd);
	bc_log_set_level(BC_LOG_INFO);
}

/* Checks that no handle is left. */
static void tear_down(struct fixture *f)
{
	bc_hook_close(f->hook);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	dup2(f->stderr_fd, STDERR_FILENO);
	close(f->stderr_fd);
	assert_int_equal(uv_loop_close(&f->loop), 0);
	temp_dir_remove(&f->dir);
}

TEST_FIXTURE(fixture, set_up, tear_down)

static void on_failed(void *context, const char *path, int status, const char *error)
{
	struct fixture *f = context;

	f->failures++;
	f->status = status;
	snprintf(f->path, sizeof(f->path), "%s", path);
	snprintf(f->error, sizeof(f->error), "%s", error);
}

static void on_done(void *context)
{
	struct fixture *f = context;

	f->done++;
}

static void open_hook(struct fixture *f, const char *command, uint64_t timeout_ns)
{
	struct bc_hook_options options = {
		.loop = &f->loop,
		.command = command,
		.timeout_ns = timeout_ns,
		.limits = &f->limits,
		.context = f,
		.on_failed = on_failed,
	};

	assert_int_equal(bc_hook_open(&f->hook, &options), 0);
}

/* Writes a script to the directory, which is $D in the script. Returns its path. */
static const char *script(struct fixture *f, const char *name, const char *text)
{
	char whole[2048];
	int n = snprintf(whole, sizeof(whole), "#!/bin/sh\nD=%s\n%s\n", f->dir.path, text);

	temp_write(&f->dir, name, whole, (size_t)n);
	temp_path(&f->dir, name, f->command);
	assert_int_equal(chmod(f->command, 0700), 0);
	return f->command;
}

static void add_file(struct fixture *f, unsigned number)
{
	static struct bc_recording_info recording = {.header.recording = REC};
	struct bc_writer_notice sealed = {.recording = &recording, .segment = number, .hash = HASH};

	snprintf(sealed.file, sizeof(sealed.file), "%05u", number);
	bc_hook_add(f->hook, "/out", &sealed);
}

static void run_until_idle(struct fixture *f)
{
	while (bc_hook_waiting(f->hook) != 0)
		uv_run(&f->loop, UV_RUN_ONCE);
}

static void run_until_exists(struct fixture *f, const char *name)
{
	while (!temp_exists(&f->dir, name)) {
		uv_run(&f->loop, UV_RUN_NOWAIT);
		usleep(2000);
	}
}

static char *read_text(struct fixture *f, const char *name)
{
	size_t n;
	char *text = (char *)temp_read(&f->dir, name, &n);

	text[n] = '\0';
	return text;
}

static unsigned count_in_log(struct fixture *f, const char *words)
{
	char *text = read_text(f, "log");
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
		n++;
	free(text);
	return n;
}

TEST_F(the_command_runs_for_each_file_in_order)
{
	setenv("NOTIFY_SOCKET", "/nowhere", 1);
	setenv("BUSCAP_HASH", "wrong", 1);
	setenv("TEST_HOOK", "kept", 1);
	open_hook(f,
		script(f, "c",
			"read line && line=some; echo \"$# $1 $BUSCAP_RECORDING $BUSCAP_SEGMENT "
			"$BUSCAP_HASH $TEST_HOOK-$NOTIFY_SOCKET-$line\" >>$D/out\n"
			"cut -d' ' -f1,5 /proc/$$/stat >>$D/groups\n"
			"while [ $(nice) -lt 10 ]; do sleep 0.01; done"),
		60 * S);
	for (unsigned i = 0; i < 3; i++)
		add_file(f, i);
	assert_int_equal(bc_hook_waiting(f->hook), 3);
	run_until_idle(f);
	char *out = read_text(f, "out");
	assert_string_equal(out, "1 /out/00000 " REC " 0 " HASH " kept--\n"
				 "1 /out/00001 " REC " 1 " HASH " kept--\n"
				 "1 /out/00002 " REC " 2 " HASH " kept--\n");
	free(out);
	char *groups = read_text(f, "groups");
	int pid;
	int group;
	assert_int_equal(sscanf(groups, "%d %d", &pid, &group), 2);
	assert_int_equal(pid, group);
	free(groups);
	assert_int_equal(f->failures, 0);
	assert_int_equal(bc_hook_failed(f->hook), 0);
}

TEST_F(an_empty_command_runs_nothing)
{
	open_hook(f, "", 0);
	add_file(f, 0);
	assert_int_equal(bc_hook_waiting(f->hook), 0);
	bc_hook_finish(f->hook, S, on_done);
	assert_int_equal(f->done, 0);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	assert_int_equal(f->done, 1);
}

TEST_F(a_failure_is_counted_and_reported)
{
	open_hook(f, script(f, "c", "case $1 in *0) exit 7;; *1) kill -9 $$;; esac"), 0);
	add_file(f, 0);
	run_until_idle(f);
	assert_int_equal(f->failures, 1);
	assert_int_equal(f->status, 7);
	assert_string_equal(f->path, "/out/00000");
	assert_string_equal(f->error, "exit code 7");
	add_file(f, 1);
	run_until_idle(f);
	assert_int_equal(f->status, -1);
	assert_string_equal(f->error, "killed by signal 9");
	add_file(f, 2);
	run_until_idle(f);
	assert_int_equal(f->failures, 2);
	assert_int_equal(bc_hook_failed(f->hook), 2);
	assert_int_equal(count_in_log(f, "/c: exit code 7; not tried again"), 1);
}

TEST_F(repeated_failures_are_limited_in_the_log)
{
	open_hook(f, script(f, "c", "exit 3"), 0);
	for (unsigned i = 0; i < 50; i++)
		add_file(f, i);
	run_until_idle(f);
	assert_int_equal(bc_hook_failed(f->hook), 50);
	assert_int_equal(count_in_log(f, "exit code 3"), 10);
	bc_log_limits_poll(&f->limits, uv_hrtime() + 60 * S);
	assert_int_equal(count_in_log(f, "40 more times"), 1);
	assert_int_equal(count_in_log(f, "/out/00049: "), 1);
	script(f, "c", "exit 0");
	add_file(f, 50);
	add_file(f, 51);
	run_until_idle(f);
	assert_int_equal(count_in_log(f, "succeeded again"), 1);
	assert_int_equal(count_in_log(f, "/c: succeeded again"), 1);
}

TEST_F(the_variables_of_the_service_manager_are_removed)
{
	static const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
		"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"};

	for (size_t i = 0; i < COUNT_OF(names); i++)
		setenv(names[i], "1", 1);
	open_hook(f, script(f, "c", "env >$D/out"), 0);
	add_file(f, 0);
	run_until_idle(f);
	for (size_t i = 0; i < COUNT_OF(names); i++)
		unsetenv(names[i]);
	char *out = read_text(f, "out");
	for (size_t i = 0; i < COUNT_OF(names); i++)
		assert_null(strstr(out, names[i]));
	assert_non_null(strstr(out, "BUSCAP_HASH=" HASH));
	free(out);
}

TEST_F(a_command_that_cannot_be_run_is_a_failure)
{
	temp_write(&f->dir, "no", "no program", 10);
	static const char *const names[] = {"missing", "no", "log/x", "."};
	open_hook(f, "", 0);
	for (unsigned i = 0; i < COUNT_OF(names); i++) {
		temp_path(&f->dir, names[i], f->command);
		assert_int_equal(bc_hook_set(f->hook, f->command, 0), 0);
		add_file(f, i);
		run_until_idle(f);
		assert_int_equal(f->failures, i + 1);
		/* Under valgrind, posix_spawn() doesn't return the error of exec(). */
		if (f->status == 127)
			assert_string_equal(f->error, "exit code 127 (command not found)");
		else
			assert_non_null(strstr(f->error, "can't be run: "));
	}
}

/* A zombie is not alive. */
static bool is_alive(int pid)
{
	char path[64];
	char what = 'Z';

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return false;
	if (fscanf(file, "%*d %*s %c", &what) != 1)
		what = 'Z'; /* it has just exited */
	fclose(file);
	return what != 'Z';
}

static void wait_until_dead(int pid)
{
	/* Its new parent may need a moment to reap it. */
	for (int i = 0; i < 6000 && is_alive(pid); i++)
		usleep(10000);
	assert_false(is_alive(pid));
}

TEST_F(a_timeout_ends_the_whole_process_group)
{
	open_hook(
		f, script(f, "c", "sleep 1000 & echo $! >$D/new; mv $D/new $D/child; wait"), S / 5);
	/* Raise the timeout until the script gets as far as writing the file. */
	unsigned tries = 0;
	do {
		assert_true(tries++ < 8);
		assert_int_equal(bc_hook_set(f->hook, f->command, (S / 5) << tries), 0);
		add_file(f, 0);
		run_until_idle(f);
		assert_int_equal(f->failures, tries);
		assert_int_equal(f->status, -1);
		assert_string_equal(f->error, "timed out");
	} while (!temp_exists(&f->dir, "child"));
	char *child = read_text(f, "child");
	wait_until_dead(atoi(child));
	free(child);
}

TEST_F(a_command_that_ignores_sigterm_is_killed)
{
	open_hook(f, script(f, "c", "trap '' TERM; echo there; while :; do sleep 1; done"), S / 5);
	add_file(f, 0);
	add_file(f, 1);
	run_until_idle(f);
	assert_int_equal(f->failures, 2);
	assert_string_equal(f->error, "timed out");
}

TEST_F(its_output_goes_to_our_standard_error)
{
	open_hook(f,
		script(f, "c", "echo one; echo two >&2; head -c 200000 /dev/zero | tr '\\0' x"), 0);
	add_file(f, 0);
	run_until_idle(f);
	assert_int_equal(f->failures, 0);
	size_t n;
	char *text = (char *)temp_read(&f->dir, "log", &n);
	assert_memory_equal(text, "one\ntwo\nxxxx", 12);
	assert_int_equal(n, 8 + 200000);
	free(text);
}

/* A process in the background would keep the daemon's standard error open: a pipe from it, as in
 * `buscapd --once 2>&1 | tee log`, would never end. */
TEST_F(processes_that_a_command_leaves_behind_are_killed)
{
	int fds[2] = {-1, -1};
	char byte;
	int one;
	int two;

	assert_int_equal(pipe(fds), 0);
	int log_fd = dup(STDERR_FILENO);
	assert_true(log_fd >= 0 && dup2(fds[1], STDERR_FILENO) >= 0);
	open_hook(f, script(f, "c", "sleep 1000 & echo $! >>$D/children"), 0);
	add_file(f, 0);
	add_file(f, 1);
	run_until_idle(f);
	dup2(log_fd, STDERR_FILENO);
	close(log_fd);
	close(fds[1]);
	char *children = read_text(f, "children");
	assert_int_equal(sscanf(children, "%d %d", &one, &two), 2);
	free(children);
	wait_until_dead(one);
	wait_until_dead(two);
	while (read(fds[0], &byte, 1) == 1)
		;
	close(fds[0]);
	assert_int_equal(f->failures, 0);
}

TEST_F(killing_what_was_left_behind_is_logged)
{
	const char *words = "exited before processes that it had started; killed them";
	unsigned tries = 0;

	open_hook(f, script(f, "c", "sleep 1000 & exit 0"), 0);
	/* Rarely, init has reaped the killed process before the hook looks for it. */
	do {
		assert_true(tries < 8);
		add_file(f, tries++);
		run_until_idle(f);
		assert_int_equal(f->failures, 0);
	} while (count_in_log(f, words) == 0);
	assert_int_equal(count_in_log(f, words), 1);
	assert_int_equal(bc_hook_set(f->hook, "/bin/true", 0), 0);
	add_file(f, tries);
	run_until_idle(f);
	assert_int_equal(count_in_log(f, "killed them"), 1);
}

TEST_F(the_queue_is_bounded_and_skipped_files_are_counted)
{
	open_hook(f, "/bin/true", 0);
	for (unsigned i = 0; i < 10000; i++)
		add_file(f, i);
	/* One is running. */
	assert_int_equal(bc_hook_waiting(f->hook), BC_HOOK_WAITING_MAX + 1);
	assert_int_equal(bc_hook_failed(f->hook), 10000 - BC_HOOK_WAITING_MAX - 1);
	assert_int_equal(f->failures, bc_hook_failed(f->hook));
	assert_string_equal(f->error, "not run: too many are waiting");
	assert_int_equal(count_in_log(f, "too many are waiting"), 10);
	/* All that wait are tried, also after a failure: with a command that starts no program. */
	temp_path(&f->dir, "missing", f->command);
	assert_int_equal(bc_hook_set(f->hook, f->command, 0), 0);
	run_until_idle(f);
	assert_int_equal(bc_hook_failed(f->hook), 10000 - 1);
	assert_string_equal(f->path, "/out/01024");
	assert_int_equal(bc_hook_set(f->hook, "/bin/true", 0), 0);
	add_file(f, 10000);
	run_until_idle(f);
	assert_int_equal(f->failures, 10000 - 1);
}

TEST_F(finish_runs_the_waiting_commands)
{
	open_hook(f, script(f, "c", "echo $1 >>$D/out"), 0);
	for (unsigned i = 0; i < 20; i++)
		add_file(f, i);
	bc_hook_finish(f->hook, 1000 * S, on_done);
	assert_int_equal(f->done, 0);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	assert_int_equal(f->done, 1);
	assert_int_equal(bc_hook_failed(f->hook), 0);
	char *out = read_text(f, "out");
	assert_non_null(strstr(out, "/out/00019"));
	free(out);
}

TEST_F(finish_gives_up_after_its_timeout)
{
	open_hook(f, script(f, "c", "trap '' TERM; while :; do sleep 1; done"), 0);
	for (unsigned i = 0; i < 20; i++)
		add_file(f, i);
	bc_hook_finish(f->hook, S / 10, on_done);
	uv_run(&f->loop, UV_RUN_DEFAULT);
	assert_int_equal(f->done, 1);
	assert_int_equal(bc_hook_waiting(f->hook), 0);
	/* If the machine stands still for a second, the command is also counted as one that does
	 * not exit on SIGKILL. */
	uint64_t late = count_in_log(f, "does not exit on SIGKILL");
	assert_int_equal(bc_hook_failed(f->hook), 20 + late);
	assert_int_equal(count_in_log(f, "not run 19 times: "), 1);
	add_file(f, 20);
	assert_int_equal(bc_hook_failed(f->hook), 21 + late);
}

TEST_F(close_is_safe_at_any_moment)
{
	script(f, "c", "echo out; touch $D/runs; sleep 0.05");
	for (unsigned turns = 0; turns < 60; turns++) {
		open_hook(f, f->command, 0);
		add_file(f, 0);
		add_file(f, 1);
		for (unsigned i = 0; i < turns; i++)
			uv_run(&f->loop, turns % 2 != 0 ? UV_RUN_ONCE : UV_RUN_NOWAIT);
		bc_hook_close(f->hook);
		uv_run(&f->loop, UV_RUN_DEFAULT);
	}
	f->hook = NULL;
}

/* Adds two files; the command for the first runs until "go" exists. */
static void run_held(struct fixture *f, char command[TEMP_PATH_BYTES])
{
	strcpy(command, script(f, "one",
				"touch $D/runs; while [ ! -e $D/go ]; do sleep 0.01; done; "
				"echo one $1 >>$D/out"));
	open_hook(f, command, 0);
	add_file(f, 0);
	add_file(f, 1);
	run_until_exists(f, "runs");
}

TEST_F(a_new_command_applies_to_the_next_file)
{
	char first[TEMP_PATH_BYTES];

	run_held(f, first);
	assert_int_equal(bc_hook_set(f->hook, script(f, "two", "echo two $1 >>$D/out"), 0), 0);
	temp_write(&f->dir, "go", "", 0);
	run_until_idle(f);
	char *out = read_text(f, "out");
	assert_string_equal(out, "one /out/00000\ntwo /out/00001\n");
	free(out);
	assert_int_equal(bc_hook_set(f->hook, "", 0), 0);
	add_file(f, 2);
	assert_int_equal(bc_hook_waiting(f->hook), 0);
}
