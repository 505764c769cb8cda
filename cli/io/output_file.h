/* The file that a command writes, or standard output.
 *
 * What is there already is replaced only by what is whole: the file is FILE.partial until
 * bc_output_file_close() gives it its name. A link, a device or a pipe is written in place. No file
 * that is an input is written over, nor behind its end, by whatever name it came. */
#ifndef BC_CLI_IO_OUTPUT_FILE_H
#define BC_CLI_IO_OUTPUT_FILE_H

#include <stdbool.h>

#include "cli/term/console.h"

struct bc_output_file {
	int fd;
	const char *path; /* the caller's; NULL: the console's output */
	char *partial;    /* its name until it is whole; NULL: written in place */
};

/* Opens it; `inputs` are the paths that are read, "-" for the console's input. Returns BC_EXIT_OK,
 * or BC_EXIT_FAILED after a complaint, with nothing to close. */
enum bc_exit bc_output_file_open(struct bc_output_file *file, const struct bc_console *console,
	const char *path, const char *const *inputs, int count);

/* Closes it, and gives it its name if `is_whole`; else what is there of it is left, and that is
 * told. Returns BC_EXIT_OK, or BC_EXIT_FAILED after a complaint. */
enum bc_exit bc_output_file_close(
	struct bc_output_file *file, const struct bc_console *console, bool is_whole);

#endif
