/* The command that is run for each sealed file ([output] sealed_command), to copy it off the host
 * or whatever else: as PROGRAM PATH, no shell, one at a time, in the order of the sealing, with its
 * own process group, a lower priority, /dev/null as its input, and
 *
 *   BUSCAP_RECORDING   the recording's id
 *   BUSCAP_SEGMENT     the number of the segment
 *   BUSCAP_HASH        the file's XXH3-128 in hex, as in the manifest
 *
 * in its environment, which else is ours but for what systemd tells us alone. What it prints goes
 * to the log, line by line, so many of them. It is never in the way: up to BC_HOOK_WAITING_MAX
 * files wait, one more is left out, counted and logged; a command that takes longer than its time
 * is ended.
 *
 *     bc_hook_open()
 *     bc_hook_add() ...       for each sealed file
 *     bc_hook_poll() ...      once a second
 *     bc_hook_finish()        no more will come; done() when the last command has ended
 *     bc_hook_close()
 *
 * All calls are of the loop's thread, and so are the callbacks. */
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
	const char *command; /* an absolute path; empty: none is run */
	uint64_t timeout_ns; /* a command that takes longer gets SIGTERM, and SIGKILL; 0: none does
			      */
	void *context;
	/* A command failed, or could not be run; or was not, for too many were waiting. `status` is
	 * its exit code, or -1 if it has none; `error` a clause that says it. May be called from
	 * within bc_hook_add(), and be NULL. */
	void (*on_failed)(void *context, const char *path, int status, const char *error);
};

struct bc_hook_file {
	const char *path; /* of the sealed file */
	char recording[BC_RECORDING_ID_MAX];
	uint32_t segment;
	char hash[BC_FILE_HASH_CHARS];
};

/* Returns 0 or -ENOMEM. */
int bc_hook_open(struct bc_hook **hook, const struct bc_hook_options *options) BC_MUST_CHECK;

/* Another command, or none, and another time from the next file on; what waits for none is
 * forgotten. Returns 0, or -ENOMEM with the old ones kept. */
int bc_hook_set(struct bc_hook *hook, const char *command, uint64_t timeout_ns) BC_MUST_CHECK;

/* Runs the command for a file as soon as it is its turn. Does nothing without a command. */
void bc_hook_add(struct bc_hook *hook, const struct bc_hook_file *file);

/* To be called once a second, with bc_now_ns(): tells what was only counted of failures. */
void bc_hook_poll(struct bc_hook *hook, uint64_t now_ns);

/* Files that wait, the one whose command runs among them; and those whose command failed or was not
 * run, since the start. */
uint64_t bc_hook_waiting(const struct bc_hook *hook);
uint64_t bc_hook_failed(const struct bc_hook *hook);

/* Goes on for so long at most; what waits then is left out, counted and logged, and what runs is
 * ended. done() is called once, never from within, some 3 s after that time at the latest. Files
 * that are added still are left out. Once only. */
void bc_hook_finish(struct bc_hook *hook, uint64_t timeout_ns, void (*done)(void *context));

/* Frees it; memory goes when the loop has closed its handles. A command that runs still gets
 * SIGTERM and is left to itself. NULL is none. */
void bc_hook_close(struct bc_hook *hook);

#endif
