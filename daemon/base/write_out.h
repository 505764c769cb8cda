/* Writing to a descriptor that belongs to others: standard output and error. */
#ifndef BC_DAEMON_BASE_WRITE_OUT_H
#define BC_DAEMON_BASE_WRITE_OUT_H

#include "formats/base/must_check.h"

#include <stddef.h>

/* Writes everything, even if another program that shares the terminal or pipe has set O_NONBLOCK.
 * Waits for the reader, so only threads that may wait call it. Returns 0 or a negative errno. */
int bc_write_out(int fd, const char *text, size_t bytes) BC_MUST_CHECK;

#endif
