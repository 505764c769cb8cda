#include "daemon/hook/hook_process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define NICE 10

/* A new session is also a new process group. The daemon's signal mask and ignored signals are
 * reset. */
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

/* The daemon's standard output carries its status (--once), so the command writes to standard
 * error only. */
static int set_files(posix_spawn_file_actions_t *files)
{
	int rc = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(files, STDERR_FILENO, STDOUT_FILENO);
	return rc;
}

/* Returns 0 or an errno. */
static int spawn_command(struct bc_hook_process *p)
{
	char *words[] = {(char *)p->command, (char *)p->argument, NULL};
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
				rc = posix_spawn(&p->pid, p->command, &files, &attributes, words,
					p->environment);
			posix_spawn_file_actions_destroy(&files);
		}
		posix_spawnattr_destroy(&attributes);
	}
	return rc;
}

/* Runs on the pool. */
static void spawn_job(uv_work_t *work)
{
	struct bc_hook_process *p = work->data;

	p->start_error = -spawn_command(p);
	if (p->start_error == 0)
		setpriority(PRIO_PGRP, (id_t)p->pid, NICE);
}

/* Whether it has exited. Processes that it left behind are killed: they would keep the daemon's
 * standard error open, so that a pipe there would never end, and outlive a stopped daemon. They are
 * killed before the command is reaped, because its id belongs to the group until then. */
static bool reap(struct bc_hook_process *p)
{
	siginfo_t exited = {.si_pid = 0};
	int rc = waitid(P_PID, (id_t)p->pid, &exited, WEXITED | WNOHANG | WNOWAIT);

	if (rc == 0 && exited.si_pid == 0)
		return false;
	if (rc != 0) /* it is not our child: its id may be another process's */
		return true;
	kill(-p->pid, SIGKILL);
	waitpid(p->pid, &p->status, 0);
	p->has_left_behind = kill(-p->pid, 0) == 0;
	return true;
}

bool bc_hook_process_poll(struct bc_hook_process *p)
{
	if (!p->is_running || !reap(p))
		return true;
	p->is_running = false;
	uv_signal_stop(&p->child);
	p->on_ended(p->context);
	return false;
}

static void on_child(uv_signal_t *signal, int number)
{
	(void)number;
	bc_hook_process_poll(signal->data);
}

static void on_part_closed(struct bc_hook_process *p)
{
	if (--p->to_close == 0)
		p->on_closed(p->context);
}

static void on_spawned(uv_work_t *work, int status)
{
	struct bc_hook_process *p = work->data;

	p->is_starting = false;
	free(p->environment);
	if (status != 0)
		p->start_error = status;
	p->is_running = p->start_error == 0;
	if (p->signal != 0)
		bc_hook_process_signal(p, p->signal);
	if (p->on_closed != NULL) {
		on_part_closed(p);
		return;
	}
	if (!p->is_running) {
		uv_signal_stop(&p->child);
		p->on_ended(p->context);
		return;
	}
	bc_hook_process_poll(p); /* it may have exited before is_running was set */
}

void bc_hook_process_init(
	struct bc_hook_process *p, uv_loop_t *loop, void (*on_ended)(void *context), void *context)
{
	*p = (struct bc_hook_process){.on_ended = on_ended, .context = context};
	uv_signal_init(loop, &p->child);
	p->child.data = p;
	p->work.data = p;
}

int bc_hook_process_start(
	struct bc_hook_process *p, const char *command, const char *argument, char **environment)
{
	assert(!p->is_starting && !p->is_running);
	p->command = command;
	p->argument = argument;
	p->signal = 0;
	p->status = 0;
	p->has_left_behind = false;
	p->start_error = 0;
	p->environment = environment;
	if (uv_signal_start(&p->child, on_child, SIGCHLD) != 0 ||
		uv_queue_work(p->child.loop, &p->work, spawn_job, on_spawned) != 0) {
		uv_signal_stop(&p->child);
		return -ENOMEM;
	}
	p->is_starting = true;
	return 0;
}

void bc_hook_process_signal(struct bc_hook_process *p, int number)
{
	if (p->is_starting)
		p->signal = number;
	else if (p->is_running)
		kill(-p->pid, number);
}

bool bc_hook_process_may_be(const struct bc_hook_process *p, pid_t pid)
{
	return p->is_starting || (p->is_running && p->pid == pid);
}

static void on_signal_closed(uv_handle_t *handle)
{
	on_part_closed(handle->data);
}

void bc_hook_process_close(struct bc_hook_process *p, void (*on_closed)(void *context))
{
	p->on_closed = on_closed;
	p->to_close = p->is_starting ? 2 : 1;
	uv_close((uv_handle_t *)&p->child, on_signal_closed);
}
