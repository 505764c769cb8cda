/* The log: lines on standard error, each with its level as systemd reads it ("<4>...") when that is
 * where it goes, else as a word. Any thread may log; a line is written whole. What they may say is
 * in docs/messages.md; what may come again and again is said through daemon/base/log_limit.h. */
#ifndef BC_DAEMON_BASE_LOG_H
#define BC_DAEMON_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes of a line, with its prefix, its newline and a zero. */
#define BC_LOG_LINE_MAX 1000u

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

/* Whether a line of that level is logged. */
bool bc_log_is_enabled(enum bc_log_level level);

/* The level of that name ("error", "warning", ...), or -1. */
int bc_log_level_by_name(const char *name);

/* Logs a line. What of it is a control character, turns the direction of writing or is no UTF-8 is
 * written as the numbers of its bytes, "\x1b"; what is too long ends in "...". */
void bc_log(enum bc_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends a line, of which `used` bytes stand there, with a text made harmless, and a newline and a
 * zero. Returns its length. */
size_t bc_log_write(char line[BC_LOG_LINE_MAX], size_t used, const char *text);

#endif
