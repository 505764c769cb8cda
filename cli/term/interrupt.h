/* Ctrl-C as a file descriptor: a command that runs until Ctrl-C can then flush its output and exit
 * normally. */
#ifndef BC_CLI_TERM_INTERRUPT_H
#define BC_CLI_TERM_INTERRUPT_H

#include "formats/base/must_check.h"

#include <stdbool.h>

/* Makes SIGINT, SIGTERM and SIGHUP set the returned descriptor readable (POLLIN) instead of killing
 * the program. The descriptor stays open until the program exits. Returns a negative errno on
 * failure; the signals then still kill the program. */
int bc_interrupt_open(void) BC_MUST_CHECK;

/* Waits up to timeout_ms for a signal. Returns true if one arrived. */
bool bc_interrupt_wait(int fd, int timeout_ms);

#endif
