/* Ctrl-C. As a file descriptor: a command that runs until Ctrl-C can then flush its output and exit
 * normally. As a note: a command that Ctrl-C kills says what it leaves behind. */
#ifndef BC_CLI_TERM_INTERRUPT_H
#define BC_CLI_TERM_INTERRUPT_H

#include <stdbool.h>

#include "cli/term/console.h"
#include "formats/base/must_check.h"

/* Makes SIGINT, SIGTERM and SIGHUP set the returned descriptor readable (POLLIN) instead of killing
 * the program. Those that are ignored, as in background jobs and with nohup, stay ignored. The
 * descriptor stays open until the program exits. Returns a negative errno on failure; the signals
 * then still kill the program. */
int bc_interrupt_open(void) BC_MUST_CHECK;

/* If SIGINT, SIGTERM or SIGHUP kills the program from now on, first prints that `file` is
 * interrupted and incomplete data is in `left`. Returns NULL if out of memory: then nothing is
 * printed. */
struct bc_interrupt_note *bc_interrupt_note_add(
	const struct bc_console *console, const char *file, const char *left);

/* Removes and frees a note. NULL is allowed. */
void bc_interrupt_note_remove(struct bc_interrupt_note *note);

/* Waits up to timeout_ms for a signal. Returns true if one arrived. */
bool bc_interrupt_wait(int fd, int timeout_ms);

#endif
