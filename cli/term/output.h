/* Buffered output of a command, to standard output or a file.
 *
 * An error is sticky: later output is discarded, and the end reports the error once. Long
 * operations should check bc_output_failed() and stop early, for example when a pipe is closed. */
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
	int error;        /* 0, or the negative errno of the first failed write; -ENOMEM */
	bool has_written; /* anything; more may be in the buffer */
	size_t used;
	char *buffer;
};

/* Open the console's output, or another descriptor, which the caller keeps and closes. Return false
 * if out of memory; bc_output_open() then prints an error. */
bool bc_output_open(struct bc_output *output, const struct bc_console *console);
bool bc_output_open_fd(struct bc_output *output, int fd);

/* Returns buffer space for `bytes` (at most BC_OUTPUT_BYTES). The caller writes there and adds the
 * number of bytes written to output->used. */
char *bc_output_reserve(struct bc_output *output, size_t bytes);

void bc_output_text(struct bc_output *output, const void *text, size_t bytes);
void bc_output_vformat(struct bc_output *output, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));
void bc_output_format(struct bc_output *output, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Write untrusted text with control characters escaped (cli/term/text.h). NULL writes nothing.
 * bc_output_escaped() takes text whose backslashes already start escapes and leaves those alone. */
void bc_output_safe(struct bc_output *output, const char *text);
void bc_output_safe_bytes(struct bc_output *output, const char *text, size_t bytes);
void bc_output_escaped(struct bc_output *output, const char *text);

/* Writes a JSON text and a newline. The text is on one line and unchanged, except for control
 * characters and bytes that are not UTF-8: these become \uXXXX in strings, spaces elsewhere. */
void bc_output_json(struct bc_output *output, const char *json, size_t bytes);

/* Writes a JSON value like bc_output_json(), and releases it. NULL, a value for which there was no
 * memory, makes the output fail. */
void bc_output_json_value(struct bc_output *output, json_t *value);

/* Write a line of a name column and a value. bc_status_line_safe() escapes untrusted text. */
void bc_status_line(struct bc_output *output, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void bc_status_line_safe(struct bc_output *output, const char *name, const char *text);

/* Writes the buffered data. */
void bc_output_flush(struct bc_output *output);

static inline bool bc_output_failed(const struct bc_output *output)
{
	return output->error != 0;
}

/* Flushes and frees the buffer. Returns 0, or the negative errno of the first failed write. A
 * closed pipe (EPIPE) is not a failure. */
int bc_output_end(struct bc_output *output) BC_MUST_CHECK;

/* The same for the console's output; prints an error if it failed (BC_EXIT_FAILED). */
enum bc_exit bc_output_close(struct bc_output *output, const struct bc_console *console);

#endif
