/* A queue of files, and the process that runs the command for one of them.
 *
 * IDLE -> RUNNING (being started, or started) -> IDLE; at the timeout or the end of the daemon
 * RUNNING -> TERMED -> KILLED -> IDLE. A job on libuv's pool starts the process, with
 * posix_spawn(): a fork() would stall the loop while the kernel copies the buffer's page tables.
 *
 * Invariant: at most one command runs; `running` belongs to it, and each file is run, or counted as
 * failed, exactly once. */
#include "daemon/main/hook.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/log_limit.h"
#include "daemon/store/recording_info.h"

/* The time from SIGTERM to SIGKILL, and the time that a stopping daemon waits after SIGKILL: a
 * process in an uninterruptible call, for example to a dead file server, survives SIGKILL. */
#define TERM_MS 2000
#define KILL_MS 1000

/* The exit code of a shell that does not find a command, and of a process that posix_spawn()
 * started but that could not run the program: some systems, and valgrind, report only this. */
#define NOT_FOUND 127

#define NICE 10

#define OWN_VARIABLES      3
#define OWN_VARIABLE_BYTES (BC_RECORDING_ID_MAX + 32)

struct hook_item {
	char variable[OWN_VARIABLES][OWN_VARIABLE_BYTES];
	char path[];
};

enum hook_state {
	HOOK_IDLE,
	HOOK_RUNNING,
	HOOK_TERMED, /* running; SIGTERM sent */
	HOOK_KILLED, /* running; SIGKILL sent */
};

struct bc_hook {
	struct bc_hook_options options;
	char *command;
	struct hook_item *waiting[BC_HOOK_WAITING_MAX]; /* ring buffer */
	unsigned first;
	unsigned count;
	uint64_t failed;
	bool last_failed;

	enum hook_state state;
	struct hook_item *running;
	char *running_command; /* of the latest run; `command` may have changed since */

	/* The process of the run. While it starts, the job on the pool has the first four. */
	char **environment;
	pid_t pid;
	int start_error; /* 0 or a negative errno */
	uv_work_t work;
	bool is_starting;
	bool is_running;
	int signal;           /* to send when is_starting ends; 0: none */
	int status;           /* from waitpid() */
	bool has_left_behind; /* it exited before processes that it had started */
	uv_signal_t child;    /* SIGCHLD */

	uv_timer_t command_timer;
	uv_timer_t finish_timer;
	unsigned to_close;           /* two timers, the signal, and the job if it is on the pool */
	void (*done)(void *context); /* NULL: not finishing, or already called */
	bool is_finishing;
	bool is_over; /* no more commands are started */
	bool is_closing;
};

static void hook_run_next(struct bc_hook *h);

static void discard_waiting(struct bc_hook *h)
{
	for (; h->count != 0; h->count--) {
		free(h->waiting[h->first]);
		h->first = (h->first + 1) % BC_HOOK_WAITING_MAX;
	}
}

static void hook_fail(
	struct bc_hook *h, const char *command, const char *path, int status, const char *error)
{
	h->failed++;
	h->last_failed = true;
	bc_log_limited(h->options.limits, BC_LOG_WARNING, "%s: %s: %s; not tried again", path,
		command, error);
	if (!h->is_closing)
		h->options.on_failed(h->options.context, path, status, error);
}

static void on_done(uv_timer_t *timer)
{
	struct bc_hook *h = timer->data;
	void (*done)(void *context) = h->done;

	h->done = NULL;
	done(h->options.context);
}

/* Calls done() from the loop if bc_hook_finish() was called. */
static void hook_conclude(struct bc_hook *h)
{
	if (h->done == NULL)
		return;
	h->is_over = true;
	uv_timer_start(&h->finish_timer, on_done, 0, 0);
}

/* A command's end */

static void report_exit(struct bc_hook *h, const struct hook_item *item, bool is_timeout)
{
	char error[128] = "";
	int status = -1;

	if (h->start_error != 0) {
		snprintf(error, sizeof(error), "can't be run: %s", strerror(-h->start_error));
	} else if (is_timeout) {
		snprintf(error, sizeof(error), "timed out");
	} else if (WIFSIGNALED(h->status)) {
		snprintf(error, sizeof(error), "killed by signal %d", WTERMSIG(h->status));
	} else if (WEXITSTATUS(h->status) != 0) {
		status = WEXITSTATUS(h->status);
		snprintf(error, sizeof(error), "exit code %d%s", status,
			status == NOT_FOUND ? " (command not found)" : "");
	}
	if (error[0] != '\0') {
		hook_fail(h, h->running_command, item->path, status, error);
	} else if (h->last_failed) {
		h->last_failed = false;
		bc_log_limited(h->options.limits, BC_LOG_NOTICE, "%s: %s: succeeded again",
			item->path, h->running_command);
	}
	if (h->has_left_behind && !is_timeout)
		bc_log_limited(h->options.limits, BC_LOG_WARNING,
			"%s: %s: exited before processes that it had started; killed them",
			item->path, h->running_command);
}

static void on_process_ended(struct bc_hook *h)
{
	struct hook_item *item = h->running;
	bool is_timeout = h->state != HOOK_RUNNING;

	uv_timer_stop(&h->command_timer);
	h->running = NULL;
	h->state = HOOK_IDLE;
	report_exit(h, item, is_timeout);
	free(item);
	hook_run_next(h);
}

/* The process */

/* A new session is also a new process group. Resets signal mask and ignored signals. */
static int set_attributes(posix_spawnattr_t *attributes)
{
	sigset_t none;
	sigset_t all;

	sigemptyset(&none);
	sigfillset(&all);
	int rc = posix_spawnattr_setflags(
		attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (rc == 0)
		rc = posix_spawnattr_setsigmask(attributes, &none);
	if (rc == 0)
		rc = posix_spawnattr_setsigdefault(attributes, &all);
	return rc;
}

/* The daemon's standard output carries its status (--once), so the command gets standard error. */
static int set_files(posix_spawn_file_actions_t *files)
{
	int rc = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(files, STDERR_FILENO, STDOUT_FILENO);
	return rc;
}

/* Returns 0 or an errno. */
static int spawn_command(struct bc_hook *h)
{
	char *words[] = {h->running_command, h->running->path, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;

	int rc = posix_spawnattr_init(&attributes);
	if (rc == 0) {
		rc = posix_spawn_file_actions_init(&files);
		if (rc == 0) {
			rc = set_attributes(&attributes);
			if (rc == 0)
				rc = set_files(&files);
			if (rc == 0)
				rc = posix_spawn(&h->pid, h->running_command, &files, &attributes,
					words, h->environment);
			posix_spawn_file_actions_destroy(&files);
		}
		posix_spawnattr_destroy(&attributes);
	}
	return rc;
}

/* Runs on the pool. */
static void spawn_job(uv_work_t *work)
{
	struct bc_hook *h = work->data;

	h->start_error = -spawn_command(h);
	if (h->start_error == 0)
		setpriority(PRIO_PGRP, (id_t)h->pid, NICE);
}

/* True if it has exited. Processes that it left running are killed: they would keep the daemon's
 * standard error open, so that a pipe there would never end, and outlive a stopped daemon. They are
 * killed before the command is reaped, because its id belongs to the group until then. */
static bool reap(struct bc_hook *h)
{
	siginfo_t exited = {.si_pid = 0};
	int rc = waitid(P_PID, (id_t)h->pid, &exited, WEXITED | WNOHANG | WNOWAIT);

	if (rc == 0 && exited.si_pid == 0)
		return false;
	if (rc != 0) /* it is not our child: its id may be another process's */
		return true;
	kill(-h->pid, SIGKILL);
	waitpid(h->pid, &h->status, 0);
	h->has_left_behind = kill(-h->pid, 0) == 0;
	return true;
}

/* Returns whether the command is still running. If it has exited, kills the processes that it has
 * left in its group, and reports its end first. */
static bool poll_process(struct bc_hook *h)
{
	if (!h->is_running || !reap(h))
		return true;
	h->is_running = false;
	uv_signal_stop(&h->child);
	on_process_ended(h);
	return false;
}

static void on_child(uv_signal_t *signal, int number)
{
	(void)number;
	poll_process(signal->data);
}

/* While the command is being started, the signal is sent when it runs. */
static void signal_process(struct bc_hook *h, int number)
{
	if (h->is_starting)
		h->signal = number;
	else if (h->is_running)
		kill(-h->pid, number);
}

static void on_part_closed(struct bc_hook *h);

static void on_spawned(uv_work_t *work, int status)
{
	struct bc_hook *h = work->data;

	h->is_starting = false;
	free(h->environment);
	if (status != 0)
		h->start_error = status;
	h->is_running = h->start_error == 0;
	if (h->signal != 0)
		signal_process(h, h->signal);
	if (h->is_closing) {
		on_part_closed(h);
	} else if (!h->is_running) {
		uv_signal_stop(&h->child);
		on_process_ended(h);
	} else {
		poll_process(h); /* it may have exited before is_running was set */
	}
}

/* Returns 0 or -ENOMEM. */
static int start_process(struct bc_hook *h)
{
	assert(!h->is_starting && !h->is_running);
	h->signal = 0;
	h->status = 0;
	h->has_left_behind = false;
	h->start_error = 0;
	if (uv_signal_start(&h->child, on_child, SIGCHLD) != 0 ||
		uv_queue_work(h->child.loop, &h->work, spawn_job, on_spawned) != 0) {
		uv_signal_stop(&h->child);
		return -ENOMEM;
	}
	h->is_starting = true;
	return 0;
}

/* Its time limit */

static void on_command_timer(uv_timer_t *timer);

/* Polls the process first: it may have exited in time while the loop was delayed. */
static void terminate_command(struct bc_hook *h)
{
	if (h->state != HOOK_RUNNING || !poll_process(h))
		return;
	h->state = HOOK_TERMED;
	signal_process(h, SIGTERM);
	uv_timer_start(&h->command_timer, on_command_timer, TERM_MS, 0);
}

static void on_command_timer(uv_timer_t *timer)
{
	struct bc_hook *h = timer->data;

	switch (h->state) {
	case HOOK_RUNNING:
		terminate_command(h);
		break;
	case HOOK_TERMED:
		h->state = HOOK_KILLED;
		signal_process(h, SIGKILL);
		if (h->is_finishing)
			uv_timer_start(timer, on_command_timer, KILL_MS, 0);
		break;
	case HOOK_KILLED:
		if (!poll_process(h))
			break;
		hook_fail(h, h->running_command, h->running->path, -1, "does not exit on SIGKILL");
		hook_conclude(h);
		break;
	case HOOK_IDLE:
		break;
	}
}

/* A command's start */

/* The service manager's variables are for the daemon only. JOURNAL_STREAM stays: the command has
 * the same standard error. */
static bool is_removed(const char *variable)
{
	static const char *const names[] = {
		"NOTIFY_SOCKET=", "WATCHDOG_USEC=", "WATCHDOG_PID=", "LISTEN_PID=", "LISTEN_FDS=",
		"LISTEN_FDNAMES=", "BUSCAP_RECORDING=", "BUSCAP_SEGMENT=", "BUSCAP_HASH="};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Returns one allocation, which refers to the item. NULL: out of memory. */
static char **make_environment(struct hook_item *item)
{
	size_t count = 0;

	while (environ[count] != NULL)
		count++;
	char **variables = malloc((count + OWN_VARIABLES + 1) * sizeof(char *));
	if (variables == NULL)
		return NULL;
	char **next = variables;
	for (size_t i = 0; i < count; i++)
		if (!is_removed(environ[i]))
			*next++ = environ[i];
	for (unsigned i = 0; i < OWN_VARIABLES; i++)
		*next++ = item->variable[i];
	*next = NULL;
	return variables;
}

/* Starts the command for the first one waiting. */
static void hook_start(struct bc_hook *h)
{
	struct hook_item *item = h->waiting[h->first];

	h->first = (h->first + 1) % BC_HOOK_WAITING_MAX;
	h->count--;
	free(h->running_command);
	h->running_command = strdup(h->command);
	h->running = item;
	h->environment = make_environment(item);
	if (h->running_command == NULL || h->environment == NULL || start_process(h) != 0) {
		hook_fail(h, h->command, item->path, -1, "not run: out of memory");
		free(h->environment);
		free(item);
		h->running = NULL;
		return;
	}
	h->state = HOOK_RUNNING;
	if (h->options.timeout_ns != 0)
		uv_timer_start(&h->command_timer, on_command_timer,
			(h->options.timeout_ns + 999999) / 1000000, 0);
}

static void hook_run_next(struct bc_hook *h)
{
	while (h->state == HOOK_IDLE && h->count != 0)
		hook_start(h);
	if (h->state == HOOK_IDLE)
		hook_conclude(h);
}

/* Calls */

int bc_hook_open(struct bc_hook **hook, const struct bc_hook_options *options)
{
	struct bc_hook *h = calloc(1, sizeof(*h));
	char *command = strdup(options->command);

	if (h == NULL || command == NULL) {
		free(h);
		free(command);
		return -ENOMEM;
	}
	h->options = *options;
	h->options.command = NULL;
	h->command = command;
	uv_timer_init(options->loop, &h->command_timer);
	uv_timer_init(options->loop, &h->finish_timer);
	uv_signal_init(options->loop, &h->child);
	h->command_timer.data = h;
	h->finish_timer.data = h;
	h->child.data = h;
	h->work.data = h;
	*hook = h;
	return 0;
}

int bc_hook_set(struct bc_hook *h, const char *command, uint64_t timeout_ns)
{
	char *copy = strdup(command);

	h->options.timeout_ns = timeout_ns;
	if (copy == NULL)
		return -ENOMEM;
	free(h->command);
	h->command = copy;
	if (command[0] == '\0')
		discard_waiting(h);
	return 0;
}

void bc_hook_add(struct bc_hook *h, const char *dir, const struct bc_writer_notice *sealed)
{
	char path[4096 + BC_SEGMENT_NAME_MAX];
	const char *error = "not run: out of memory";
	struct hook_item *item = NULL;

	if (h->command[0] == '\0' || h->is_closing)
		return;
	snprintf(path, sizeof(path), "%s/%s", dir, sealed->file);
	size_t path_bytes = strlen(path) + 1;
	if (h->is_over)
		error = "not run: the daemon is stopping";
	else if (h->count == BC_HOOK_WAITING_MAX)
		error = "not run: too many are waiting";
	else
		item = malloc(sizeof(*item) + path_bytes);
	if (item == NULL) {
		hook_fail(h, h->command, path, -1, error);
		return;
	}
	memcpy(item->path, path, path_bytes);
	snprintf(item->variable[0], OWN_VARIABLE_BYTES, "BUSCAP_RECORDING=%s",
		sealed->recording->header.recording);
	snprintf(item->variable[1], OWN_VARIABLE_BYTES, "BUSCAP_SEGMENT=%" PRIu32, sealed->segment);
	snprintf(item->variable[2], OWN_VARIABLE_BYTES, "BUSCAP_HASH=%s", sealed->hash);
	h->waiting[(h->first + h->count++) % BC_HOOK_WAITING_MAX] = item;
	hook_run_next(h);
}

/* Returns the next child that has exited, or 0. */
static pid_t next_exited(void)
{
	siginfo_t exited = {.si_pid = 0};

	return waitid(P_ALL, 0, &exited, WEXITED | WNOHANG | WNOWAIT) == 0 ? exited.si_pid : 0;
}

/* The command itself is reaped when it is polled. While it is being started, its pid is unknown;
 * then the others wait for the next call. */
void bc_hook_reap_orphans(const struct bc_hook *h)
{
	for (pid_t pid = next_exited(); pid != 0; pid = next_exited()) {
		if (h->is_starting || (h->is_running && h->pid == pid))
			return;
		waitpid(pid, NULL, 0);
	}
}

uint64_t bc_hook_waiting(const struct bc_hook *h)
{
	return h->count + (h->running != NULL);
}

uint64_t bc_hook_failed(const struct bc_hook *h)
{
	return h->failed;
}

static void on_finish_timeout(uv_timer_t *timer)
{
	struct bc_hook *h = timer->data;

	h->is_over = true;
	if (h->count != 0)
		bc_log(BC_LOG_WARNING, "%s: not run %u times: the daemon is stopping", h->command,
			h->count);
	h->failed += h->count;
	discard_waiting(h);
	terminate_command(h);
	if (h->state == HOOK_KILLED)
		uv_timer_start(&h->command_timer, on_command_timer, KILL_MS, 0);
}

void bc_hook_finish(struct bc_hook *h, uint64_t timeout_ns, void (*done)(void *context))
{
	assert(!h->is_finishing);
	h->is_finishing = true;
	h->done = done;
	uv_timer_start(&h->finish_timer, on_finish_timeout, timeout_ns / 1000000, 0);
	hook_run_next(h);
}

static void on_part_closed(struct bc_hook *h)
{
	if (--h->to_close != 0)
		return;
	discard_waiting(h);
	free(h->running);
	free(h->running_command);
	free(h->command);
	free(h);
}

static void on_handle_closed(uv_handle_t *handle)
{
	on_part_closed(handle->data);
}

void bc_hook_close(struct bc_hook *h)
{
	if (h == NULL)
		return;
	h->is_closing = true;
	if (h->state == HOOK_RUNNING)
		signal_process(h, SIGTERM);
	h->to_close = h->is_starting ? 4 : 3;
	uv_close((uv_handle_t *)&h->child, on_handle_closed);
	uv_close((uv_handle_t *)&h->command_timer, on_handle_closed);
	uv_close((uv_handle_t *)&h->finish_timer, on_handle_closed);
}
