/* The output file of a command, or standard output.
 *
 * A regular file is replaced only once the new one is complete: data goes to FILE.partial, which
 * bc_output_file_close() renames. A symbolic link, a device or a pipe is written in place. An
 * output that is also an input is refused, whatever its name: it would be overwritten while it is
 * read, or would grow without limit. */
#ifndef BC_CLI_IO_OUTPUT_FILE_H
#define BC_CLI_IO_OUTPUT_FILE_H

#include <stdbool.h>

#include "cli/term/console.h"
#include "cli/term/interrupt.h"

struct bc_output_file {
	int fd;
	const char *path;               /* the caller's; NULL: the console's output */
	char *partial;                  /* temporary name; NULL: written in place */
	struct bc_interrupt_note *note; /* or NULL */
};

/* Opens the output. `inputs` are the paths of the input files; "-" is the console's input. Returns
 * BC_EXIT_OK, or prints an error and returns BC_EXIT_FAILED with nothing to close. */
enum bc_exit bc_output_file_open(struct bc_output_file *file, const struct bc_console *console,
	const char *path, const char *const *inputs, int count);

/* Closes the output. If `is_whole`, renames it to its final name; otherwise leaves FILE.partial and
 * prints a message about it. Returns BC_EXIT_OK, or prints an error and returns BC_EXIT_FAILED. */
enum bc_exit bc_output_file_close(
	struct bc_output_file *file, const struct bc_console *console, bool is_whole);

#endif
