/* The command for sealed files ([output] sealed_command), for example to copy them to another host.
 *
 * The command runs as PROGRAM PATH, without a shell, one at a time, in the order in which the files
 * were sealed. It runs in its own session, at nice 10, with /dev/null as standard input. Standard
 * output and error are the daemon's standard error (under systemd: the journal). Its environment is
 * the daemon's without the service manager's variables, plus:
 *
 *   BUSCAP_RECORDING   the recording's id
 *   BUSCAP_SEGMENT     the segment's number
 *   BUSCAP_HASH        the file's XXH3-128 in hex, as in the manifest
 *
 * The command never delays the recording: up to BC_HOOK_WAITING_MAX files wait. Further files are
 * skipped, counted and logged. A command that exceeds the timeout is terminated with its whole
 * process group.
 *
 *     bc_hook_open()
 *     bc_hook_add() ...       for each sealed file
 *     bc_hook_poll() ...      once a second
 *     bc_hook_finish()        no more files; calls done() after the last command
 *     bc_hook_close()
 *
 * Loop thread only; callbacks run there too. */
#ifndef BC_DAEMON_HOOK_HOOK_H
#define BC_DAEMON_HOOK_HOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "formats/base/file_hash.h"
#include "formats/base/must_check.h"
#include "formats/segment/segment_header.h"

#define BC_HOOK_WAITING_MAX 1024u

struct bc_hook;

struct bc_hook_options {
	uv_loop_t *loop;
	const char *command; /* an absolute path; empty: run nothing */
	uint64_t timeout_ns; /* then SIGTERM, later SIGKILL; 0: no limit */
	void *context;
	/* Called when a command failed, could not be started, or was skipped. `status` is its exit
	 * code, or -1 if it has none; `error` describes the failure. May be called from within
	 * bc_hook_add(). May be NULL. */
	void (*on_failed)(void *context, const char *path, int status, const char *error);
};

struct bc_hook_file {
	const char *path; /* of the sealed file */
	char recording[BC_RECORDING_ID_MAX];
	uint32_t segment;
	char hash[BC_FILE_HASH_CHARS];
};

/* Copies the command. Returns 0 or -ENOMEM. */
int bc_hook_open(struct bc_hook **hook, const struct bc_hook_options *options) BC_MUST_CHECK;

/* Changes command and timeout, starting with the next file. An empty command discards the waiting
 * files. Returns 0, or -ENOMEM with nothing changed but the timeout. */
int bc_hook_set(struct bc_hook *hook, const char *command, uint64_t timeout_ns) BC_MUST_CHECK;

/* Queues a file, which is copied. Does nothing if the command is empty. */
void bc_hook_add(struct bc_hook *hook, const struct bc_hook_file *file);

/* Call once a second with bc_now_ns(): logs the summaries of repeated failures. */
void bc_hook_poll(struct bc_hook *hook, uint64_t now_ns);

/* Files waiting, including the one whose command is running. */
uint64_t bc_hook_waiting(const struct bc_hook *hook);

/* Files whose command failed or was skipped, since the start. */
uint64_t bc_hook_failed(const struct bc_hook *hook);

/* Keeps running commands for at most timeout_ns. Then skips the files still waiting (counted and
 * logged) and terminates the running command. Calls done() once, never from within this call, at
 * most 3 s after the timeout. Files added after that are skipped. Call once. */
void bc_hook_finish(struct bc_hook *hook, uint64_t timeout_ns, void (*done)(void *context));

/* Sends a running command SIGTERM and does not wait for it. Memory is freed when the loop has
 * closed the handles. NULL is allowed. */
void bc_hook_close(struct bc_hook *hook);

#endif
