/* One run of a command. It is spawned on libuv's pool with posix_spawn(). A fork() would stall the
 * loop while the kernel copies the page tables of the whole buffer. Loop thread only. */
#ifndef BC_DAEMON_HOOK_HOOK_PROCESS_H
#define BC_DAEMON_HOOK_HOOK_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "formats/base/must_check.h"

struct bc_hook_process {
	uv_work_t work;
	uv_signal_t child; /* SIGCHLD */
	unsigned to_close; /* parts that bc_hook_process_close() waits for */
	bool is_starting;  /* the job is on the pool */
	bool is_running;
	pid_t pid;
	int signal; /* to send when is_starting ends; 0: none */

	/* Input of the job; only the job uses it while is_starting. */
	const char *command;
	const char *argument;
	char **environment;

	/* Results. */
	int start_error;      /* 0 or a negative errno */
	int status;           /* from waitpid() */
	bool has_left_behind; /* it exited before processes that it had started */

	void *context;
	void (*on_ended)(void *context);
	void (*on_closed)(void *context);
};

/* on_ended() is called once for each start, when the process has exited or could not be started.
 * It is called from the loop or from within bc_hook_process_poll(). */
void bc_hook_process_init(struct bc_hook_process *process, uv_loop_t *loop,
	void (*on_ended)(void *context), void *context);

/* Runs COMMAND ARGUMENT. The strings must stay valid until on_ended() or on_closed(). `environment`
 * is one allocation, freed by the process if this succeeds. One run at a time. Returns 0 or
 * -ENOMEM. */
int bc_hook_process_start(struct bc_hook_process *process, const char *command,
	const char *argument, char **environment) BC_MUST_CHECK;

/* Returns whether it is still running. If it has exited, kills the processes that it has left in
 * its group, and calls on_ended() first. */
bool bc_hook_process_poll(struct bc_hook_process *process);

/* Sends a signal to the process group. While the process is being started, the signal is sent when
 * it runs. */
void bc_hook_process_signal(struct bc_hook_process *process, int number);

/* Whether this may be the process, or is it. */
bool bc_hook_process_may_be(const struct bc_hook_process *process, pid_t pid);

/* Leaves a running process alone; on_ended() is no longer called. Calls on_closed() when the
 * memory may be freed. */
void bc_hook_process_close(struct bc_hook_process *process, void (*on_closed)(void *context));

#endif
