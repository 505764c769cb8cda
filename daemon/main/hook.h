/* [output] sealed_command, which runs for each sealed file, for example to copy it to another host.
 *
 * The command runs as PROGRAM PATH, without a shell, one at a time, in the order of the files. It
 * runs in its own session, at nice 10. Its standard input is /dev/null; standard output and error
 * are the daemon's standard error (under systemd: the journal). Its environment is the daemon's
 * without the service manager's variables, plus:
 *
 *   BUSCAP_RECORDING   the recording's id
 *   BUSCAP_SEGMENT     the segment's number
 *   BUSCAP_HASH        the file's XXH3-128 in hex
 *
 * The command never delays the recording: up to BC_HOOK_WAITING_MAX runs wait. Further ones are
 * skipped, counted and logged. A command that exceeds the timeout is terminated with its whole
 * process group. Processes that it leaves in its group when it exits are killed.
 *
 *     bc_hook_open()
 *     bc_hook_add() ...       for each sealed file
 *     bc_hook_finish()        no more runs; calls done() after the last command
 *     bc_hook_close()
 *
 * Loop thread only; callbacks run there too. */
#ifndef BC_DAEMON_MAIN_HOOK_H
#define BC_DAEMON_MAIN_HOOK_H

#include <stdint.h>
#include <uv.h>

#include "daemon/store/writer_report.h"
#include "formats/base/must_check.h"

#define BC_HOOK_WAITING_MAX 1024u

struct bc_hook;
struct bc_log_limits;

struct bc_hook_options {
	uv_loop_t *loop;
	const char *command;          /* an absolute path; empty: run nothing */
	uint64_t timeout_ns;          /* then SIGTERM, later SIGKILL; 0: no limit */
	struct bc_log_limits *limits; /* of the loop's thread */
	void *context;
	/* Called when a command failed, could not be started, or was skipped. `status` is the exit
	 * code, or -1 if it has none; `error` describes the failure. bc_hook_add() may call it. */
	void (*on_failed)(void *context, const char *path, int status, const char *error);
};

/* Copies the command. Returns 0 or -ENOMEM. */
int bc_hook_open(struct bc_hook **hook, const struct bc_hook_options *options) BC_MUST_CHECK;

/* Changes command and timeout, starting with the next run. An empty command discards the waiting
 * ones. Returns 0, or -ENOMEM with nothing changed but the timeout. */
int bc_hook_set(struct bc_hook *hook, const char *command, uint64_t timeout_ns) BC_MUST_CHECK;

/* Queues a run for a segment that was sealed in `dir`. Does nothing if the command is empty. */
void bc_hook_add(struct bc_hook *hook, const char *dir, const struct bc_writer_notice *sealed);

/* Reaps children that are not the command, so that they don't remain as zombies: what commands
 * leave behind is inherited by process 1, which we may be in a container. Call once a second. */
void bc_hook_reap_orphans(const struct bc_hook *hook);

/* Runs waiting, including the current one. */
uint64_t bc_hook_waiting(const struct bc_hook *hook);

/* Runs that failed or were skipped, since the start. */
uint64_t bc_hook_failed(const struct bc_hook *hook);

/* Keeps running commands for at most timeout_ns. Then skips the runs still waiting (counted and
 * logged) and terminates the running command. Calls done() once, never from within this call, at
 * most 3 s after the timeout. Runs added after that are skipped. Call once. */
void bc_hook_finish(struct bc_hook *hook, uint64_t timeout_ns, void (*done)(void *context));

/* Sends a running command SIGTERM and does not wait for it. Memory is freed when the loop has
 * closed the handles. NULL is allowed. */
void bc_hook_close(struct bc_hook *hook);

#endif
