/* The status line below the log, rewritten in place, in a terminal with buscapd in foreground. */
#ifndef BC_DAEMON_MAIN_FOREGROUND_H
#define BC_DAEMON_MAIN_FOREGROUND_H

/* Shows this text, escaped as in the log; "" removes the line. Standard error must be a terminal.
 * Only the latest text is kept until the terminal accepts it. bc_log_stop() removes the line. */
void bc_foreground_show(const char *text);

/* Removes the line for good, and waits for that, for at most 0.2 s. */
void bc_foreground_end(void);

#endif
