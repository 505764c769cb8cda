/* The log: lines on standard error. Under systemd's journal each line starts with its level
 * ("<4>..."), elsewhere with the time in UTC, the program's name and, for errors and warnings, the
 * level: "2026-01-31T12:00:00.000Z buscapd: warning: ...". Before bc_log_start(), an error is like
 * that of any command: "buscapd: ...". Any thread may log; a line is written with one call.
 *
 *     bc_log_start()
 *     bc_log() ...    never waits for the reader of standard error; lines that exceed a queue are
 *                     dropped, counted, and reported in a line when it is read again
 *     bc_log_set_recording() ... when a recording starts and ends
 *     bc_log_draw() ... what is below the lines
 *     bc_log_stop()
 *
 * In the journal, messages of a kind have the field MESSAGE_ID, and all messages while a recording
 * is open have RECORDING. docs/messages.md has the kinds, and the messages that need action.
 * Messages that may repeat go through daemon/base/log_limit.h.
 */
#ifndef BC_DAEMON_BASE_LOG_H
#define BC_DAEMON_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum bytes of a line, with its prefix, newline and terminating zero. */
#define BC_LOG_LINE_MAX 1000u

/* Bytes of a recording's id, with its zero. */
#define BC_LOG_RECORDING_MAX 128u

#define BC_LOG_KIND_SHIFT 3

enum bc_log_level {
	BC_LOG_ERROR = 3,
	BC_LOG_WARNING = 4,
	BC_LOG_NOTICE = 5,
	BC_LOG_INFO = 6,
	BC_LOG_DEBUG = 7,

	/* Kinds, to be combined with a level. */
	BC_LOG_STARTED = 1 << BC_LOG_KIND_SHIFT, /* a recording */
	BC_LOG_ENDED = 2 << BC_LOG_KIND_SHIFT,
	BC_LOG_LOST = 3 << BC_LOG_KIND_SHIFT,        /* samples */
	BC_LOG_DISK_FAILED = 4 << BC_LOG_KIND_SHIFT, /* accepts nothing, or has lost data */
	BC_LOG_DISK_BACK = 5 << BC_LOG_KIND_SHIFT,
	BC_LOG_DISK_LOW = 6 << BC_LOG_KIND_SHIFT, /* nearly full */
	BC_LOG_BOARD_GONE = 7 << BC_LOG_KIND_SHIFT,
	BC_LOG_BOARD_BACK = 8 << BC_LOG_KIND_SHIFT, /* or there for the first time */
	BC_LOG_DAMAGED = 9 << BC_LOG_KIND_SHIFT,    /* a file */
};

static inline enum bc_log_level bc_log_priority(enum bc_log_level level)
{
	return level & ((1 << BC_LOG_KIND_SHIFT) - 1);
}

/* Omits less urgent lines; BC_LOG_INFO at the start. The setting is shared by all threads. */
void bc_log_set_level(enum bc_log_level level);

/* True if lines of this level are logged. */
bool bc_log_is_enabled(enum bc_log_level level);

/* Starts the thread that writes the lines. Before that, or if it can't be created, bc_log() writes
 * them itself and waits for the reader. Call once in a process at a time. */
void bc_log_start(void);

/* Before the process ends: writes what is left, and erases the footer, for at most 1 s. */
void bc_log_stop(void);

/* The recording that is open now; "": none. */
void bc_log_set_recording(const char *id);

/* Sets the field ACTIVITY of messages about lost samples; "": none. */
void bc_log_set_activity(const char *text);

/* What is shown below the lines. The log's thread calls erase() before each line and at the end,
 * and draw() after the last line. */
struct bc_log_footer {
	void (*erase)(void);
	void (*draw)(void);
};

/* Has the log's thread draw this footer, from now on after each line. */
void bc_log_draw(const struct bc_log_footer *footer);

/* Lines dropped since the start. */
uint64_t bc_log_dropped(void);

/* Logs a line. Control characters, those that change the text direction, and invalid UTF-8 are
 * written as their bytes ("\x1b"). A line that is too long is shortened (formats/base/text.h). */
void bc_log(enum bc_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a string, escaped as above, "\n" and a zero to `used` bytes. Returns the length. */
size_t bc_log_write(char line[BC_LOG_LINE_MAX], size_t used, const char *text);

#endif
