/* systemd's journal in its native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL), for log lines with
 * fields. Not with sd_journal_sendv(3): without a journal it returns success, and the line is lost.
 *
 * A line without fields is written to standard error, also if that is the journal: there, the
 * journal knows the line's unit even if the process has ended before it is read. */
#ifndef BC_DAEMON_BASE_JOURNAL_H
#define BC_DAEMON_BASE_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

/* Maximum bytes that an entry has more than its line. */
#define BC_JOURNAL_FIELDS_MAX 256u

/* True if standard error is the journal. */
bool bc_journal_is_stderr(void);

/* Writes the entry of a line "<6>TEXT\n" with these fields. Returns its length, or 0 if it has none
 * (`id` is NULL, `recording` is empty), or the line is not one for the journal. */
size_t bc_journal_format(
	char *entry, size_t size, const char *id, const char *recording, const char *line);

/* True for an entry, false for a line. */
bool bc_journal_is_entry(const char *text);

/* Returns the line of an entry, at its end. Overwrites the entry. */
char *bc_journal_line(char *entry);

/* May wait for the journal. Returns 0 or a negative errno: then the journal does not have it. */
int bc_journal_send(const char *entry, size_t bytes);

#endif
