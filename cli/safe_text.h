/* Text of others (a daemon, a device, a file) made safe for a terminal and for lines: what could
 * move the cursor, change colours, turn the direction of writing or end the line is written as the
 * numbers of its bytes, "\x1b"; so are bytes that are no UTF-8, and the backslash, so that it can
 * be told from those. */
#ifndef BC_CLI_SAFE_TEXT_H
#define BC_CLI_SAFE_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include "cli/output.h"

/* Copies `text` (NULL: nothing) to `out`, cut to fit with its zero, never within an escape or a
 * character. Returns `out`. */
const char *bc_safe_text(char *out, size_t room, const char *text);

/* Write it to an output. */
void bc_safe_write(struct bc_output *output, const char *text);
void bc_safe_write_bytes(struct bc_output *output, const char *text, size_t bytes);

/* The same of a text whose backslashes are escapes already, as of JSON or of a sentence that was
 * made safe in part: they stay. */
void bc_safe_write_escaped(struct bc_output *output, const char *text);
void bc_safe_print_escaped(FILE *out, const char *text);

/* Writes a JSON text in one line, as it came but for what JSON doesn't allow in it as such: control
 * characters and bytes that are no UTF-8 become \uXXXX within strings and blanks outside. */
void bc_safe_json(struct bc_output *output, const char *json, size_t bytes);

#endif
