/* Ctrl-C as something to wait for: a command that shows what goes on ends then cleanly, with what
 * it has written out. */
#ifndef BC_CLI_TERM_INTERRUPT_H
#define BC_CLI_TERM_INTERRUPT_H

#include "formats/base/must_check.h"

#include <stdbool.h>

/* From now on SIGINT, SIGTERM and SIGHUP no longer end the program but make the returned descriptor
 * readable (POLLIN). Returns it, open until the program ends, or a negative errno: they then end it
 * as before. */
int bc_interrupt_open(void) BC_MUST_CHECK;

/* Waits up to timeout_ms for one of them. Returns whether it came. */
bool bc_interrupt_wait(int fd, int timeout_ms);

#endif
