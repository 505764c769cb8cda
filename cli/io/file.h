/* A trace file that a command was given: opened, and its format told. */
#ifndef BC_CLI_IO_FILE_H
#define BC_CLI_IO_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/term/console.h"
#include "formats/reader/input.h"

struct bc_file {
	const char *name; /* for messages */
	int fd;
	bool is_ours; /* the fd is to be closed */
	bool is_regular;
	bool is_partial; /* by its name, a segment that is still open */
	uint64_t bytes;  /* of a regular file */
	struct bc_probe probe;
	struct bc_input *input;
};

/* Opens a file, "-" for the console's input. `wanted` is the format that the user named, or
 * BC_FORMAT_UNKNOWN: it is then told by content and, where damage has left nothing to tell it by,
 * by the name of a segment. Returns BC_EXIT_OK, or BC_EXIT_FAILED after a complaint, with nothing
 * to close. */
enum bc_exit bc_file_open(struct bc_file *file, const struct bc_console *console, const char *path,
	enum bc_format wanted);
void bc_file_close(struct bc_file *file);

/* Whether reading on would wait for somebody else, as from a pipe that is empty: a good time to
 * show what there is. */
bool bc_file_would_wait(const struct bc_file *file);

/* Opens for reading what a path names, if it can be a trace. Returns a file descriptor, or a
 * negative errno after a complaint. */
int bc_open_readable(const struct bc_console *console, const char *path);

/* ", in gzip frames": what a file's description says of its compression; "" of none. */
const char *bc_packing_text(enum bc_packing packing);

/* Complains that what the file is compressed in is damaged or torn; `where` follows, or is "". */
void bc_print_packing(
	const struct bc_console *console, const struct bc_file *file, const char *where);

/* Complains that reading the file failed. */
enum bc_exit bc_print_read_error(
	const struct bc_console *console, const struct bc_file *file, int error);

#endif
