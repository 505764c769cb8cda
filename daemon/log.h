/* The log: lines on standard error, each with its level as systemd reads it ("<4>...") when that is
 * where it goes, else as a word. Any thread may log; a line is written whole. */
#ifndef BC_DAEMON_LOG_H
#define BC_DAEMON_LOG_H

enum bc_log_level {
	BC_LOG_ERROR = 3,
	BC_LOG_WARNING = 4,
	BC_LOG_NOTICE = 5,
	BC_LOG_INFO = 6,
	BC_LOG_DEBUG = 7,
};

/* What is less urgent than this is left out; BC_LOG_INFO at the start. The one setting that all
 * threads of a process share. */
void bc_log_set_level(enum bc_log_level level);

/* The level of that name ("error", "warning", ...), or -1. */
int bc_log_level_by_name(const char *name);

void bc_log(enum bc_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
