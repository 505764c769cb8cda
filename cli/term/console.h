/* The streams of a command, its messages and Ctrl-C.
 *
 * A command is a function of a console and arguments, without global streams: tests can call it. */
#ifndef BC_CLI_TERM_CONSOLE_H
#define BC_CLI_TERM_CONSOLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "formats/base/must_check.h"
#include "formats/base/text.h"
#include "formats/base/usage.h"

struct bc_console {
	int in; /* standard input, output and error */
	int out;
	FILE *err;                    /* NULL: messages are not printed */
	const char *command;          /* "dump"; NULL: none */
	struct bc_progress *progress; /* NULL: this command shows none */
};

/* Returns a console without messages. */
static inline struct bc_console bc_console_silent(const struct bc_console *console)
{
	return (struct bc_console){console->in, console->out, NULL, console->command, NULL};
}

/* Prints one line to standard error: "buscap COMMAND: FILE: ...". Control characters are escaped
 * (cli/term/text.h). `file` may be NULL. Returns BC_EXIT_FAILED. */
enum bc_exit bc_print_error(const struct bc_console *console, const char *file, const char *format,
	...) __attribute__((format(printf, 3, 4)));

/* Prints "out of memory" and returns BC_EXIT_FAILED. */
enum bc_exit bc_print_no_memory(const struct bc_console *console);

/* Prints an error about `bytes` damaged bytes at `offset` of a file; 0: something is missing. */
void bc_print_damage(const struct bc_console *console, const char *file, uint64_t offset,
	uint64_t bytes, const char *what);

/* Returns the more severe code: 2 (usage), 6, 1, 3, 0. */
enum bc_exit bc_exit_worse(enum bc_exit a, enum bc_exit b);

/* ---- The progress line of a long operation on files. It is updated four times a second and erased
 * before each message and at the end. It is shown only if standard error is a terminal, and only
 * after the first second. */

struct bc_progress {
	FILE *err;            /* NULL: no progress line */
	uint64_t total_bytes; /* 0: unknown */
	uint64_t done_bytes;
	uint64_t start_ns;
	uint64_t next_ns;
	bool is_shown; /* the line is on the screen */
};

/* Starts, or adds to the total. 0 makes the total unknown for good. */
void bc_progress_extend(const struct bc_console *console, uint64_t total_bytes);

/* Draws the line from done_bytes and total_bytes, if it is time. Cheap enough for each batch. */
void bc_progress_show(const struct bc_console *console);

/* Erases the line. */
void bc_progress_clear(const struct bc_console *console);

/* Formats the line: "1.20 GB of 4.00 GB (30 %), 250 MB/s, 0:11 left". */
#define BC_PROGRESS_TEXT_MAX 176
void bc_progress_print(char out[BC_PROGRESS_TEXT_MAX], uint64_t done_bytes, uint64_t total_bytes,
	uint64_t elapsed_ns);

/* Starts a program, found in $PATH, with the default signals, out of reach of the terminal and its
 * Ctrl-C. Its input is /dev/null; so is its output or standard error if it is -1. Returns 0 or an
 * errno. The process is the leader of its process group. */
int bc_spawn(pid_t *pid, char *const *argv, int out, int err) BC_MUST_CHECK;

/* ---- Ctrl-C. A command that runs until Ctrl-C gets a descriptor, so that it can flush its output
 * and exit normally. A command that Ctrl-C kills prints what it leaves behind. */

/* Makes SIGINT, SIGTERM and SIGHUP set the returned descriptor readable (POLLIN) instead of killing
 * the program. Those that are ignored, as in background jobs and with nohup, stay ignored. The
 * descriptor stays open until the program exits. Returns a negative errno on failure; the signals
 * then still kill the program. */
int bc_interrupt_open(void) BC_MUST_CHECK;

/* Waits up to timeout_ms for a signal. Returns true if one arrived. */
bool bc_interrupt_wait(int fd, int timeout_ms);

/* If SIGINT, SIGTERM or SIGHUP kills the program before bc_interrupt_note_clear(), it first prints
 * that `file` is interrupted and incomplete data is in `left`. Replaces an earlier note. Out of
 * memory, nothing will be printed. */
void bc_interrupt_note(const struct bc_console *console, const char *file, const char *left);
void bc_interrupt_note_clear(void);

#endif
