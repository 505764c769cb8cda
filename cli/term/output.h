/* What a command writes to standard output or a file: gathered in one buffer, written in large
 * pieces.
 *
 * A failure is remembered and told once, by bc_output_close(); until then what follows goes
 * nowhere. Long work asks bc_output_failed() now and then, for nobody may be left to read it. */
#ifndef BC_CLI_TERM_OUTPUT_H
#define BC_CLI_TERM_OUTPUT_H

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/term/console.h"
#include "formats/base/must_check.h"

#define BC_OUTPUT_BYTES (512u << 10)

struct bc_output {
	int fd;
	int error;        /* 0, or the negative errno of the write that failed */
	const char *name; /* for messages; NULL: the console's output */
	size_t used;
	char *buffer;
};

/* Opens the console's output, or another descriptor, which stays the caller's. Return false when
 * memory ran out; bc_output_open() has then said so. */
bool bc_output_open(struct bc_output *output, const struct bc_console *console);
bool bc_output_open_fd(struct bc_output *output, int fd);

/* Room for `bytes`, at most BC_OUTPUT_BYTES, at the place where the next text goes; add what was
 * put there to output->used. */
char *bc_output_reserve(struct bc_output *output, size_t bytes);

void bc_output_text(struct bc_output *output, const void *text, size_t bytes);
void bc_output_vformat(struct bc_output *output, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));
void bc_output_format(struct bc_output *output, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Write a text of others made safe (cli/term/safe_text.h; NULL: nothing); "escaped": its
 * backslashes are escapes already. */
void bc_output_safe(struct bc_output *output, const char *text);
void bc_output_safe_bytes(struct bc_output *output, const char *text, size_t bytes);
void bc_output_escaped(struct bc_output *output, const char *text);

/* Writes a JSON text in one line, as it came but for what JSON doesn't allow in it as such: control
 * characters and bytes that are not UTF-8 become \uXXXX within strings and blanks outside. */
void bc_output_json(struct bc_output *output, const char *json, size_t bytes);

/* Writes our own JSON on a line, and releases it. Returns false when memory ran out, now or while
 * it was made (NULL). */
bool bc_output_json_value(struct bc_output *output, json_t *value) BC_MUST_CHECK;

/* Write a line with its name in a column; the second, a text of others made safe. */
void bc_status_line(struct bc_output *output, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void bc_status_line_safe(struct bc_output *output, const char *name, const char *text);

/* Writes out what is gathered. */
void bc_output_flush(struct bc_output *output);

static inline bool bc_output_failed(const struct bc_output *output)
{
	return output->error != 0;
}

/* Flushes and frees the buffer. Complains of a write that failed, and returns BC_EXIT_FAILED for
 * it; a pipe whose reader has left is no failure. */
enum bc_exit bc_output_close(struct bc_output *output, const struct bc_console *console);

#endif
