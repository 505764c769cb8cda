/* A run of the command for sealed files. It is started on libuv's pool and without a copy of our
 * memory, for a fork() would hold up the loop for as long as it takes to copy the page tables of
 * all chunks. The loop's thread. */
#ifndef BC_DAEMON_HOOK_HOOK_PROCESS_H
#define BC_DAEMON_HOOK_HOOK_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "formats/base/must_check.h"

struct bc_hook_process {
	uv_work_t work;
	uv_signal_t child; /* SIGCHLD */
	unsigned to_close; /* what bc_hook_process_close() waits for */
	bool is_starting;  /* a job runs on the pool */
	bool is_running;
	pid_t pid;
	int signal; /* to send once it runs; 0: none */

	/* What is to be run; in the job's hands while is_starting. */
	const char *command;
	const char *path;
	char **environment;
	int output_fd;

	/* How it went. */
	int start_error; /* 0 or a negative errno */
	int status;      /* as waitpid() gives it */

	void *context;
	void (*on_end)(void *context);
	void (*on_closed)(void *context);
};

/* Nothing runs. on_end() is called for each run that ends, or can't be started, never from within
 * another call than bc_hook_process_poll(). */
void bc_hook_process_init(struct bc_hook_process *process, uv_loop_t *loop,
	void (*on_end)(void *context), void *context);

/* Runs COMMAND PATH; both stay the caller's until on_end(). `environment` is one piece of allocated
 * memory (NULL: memory ran out); it and `output_fd`, standard output and error, become the
 * process's. One run at a time. Returns 0, or -ENOMEM with output_fd closed. */
int bc_hook_process_start(struct bc_hook_process *process, const char *command, const char *path,
	char **environment, int output_fd) BC_MUST_CHECK;

/* Whether it runs still: on_end() is called from within when it does not. */
bool bc_hook_process_poll(struct bc_hook_process *process);

/* Sends a signal to all of its process group, if it runs; as soon as it does. */
void bc_hook_process_signal(struct bc_hook_process *process, int number);

/* Whatever runs is left to itself, and on_end() not called any more. on_closed() is called when the
 * memory is free. */
void bc_hook_process_close(struct bc_hook_process *process, void (*on_closed)(void *context));

#endif
