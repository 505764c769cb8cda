/* An input file of a command: opened, with its format detected. */
#ifndef BC_CLI_IO_FILE_H
#define BC_CLI_IO_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/term/console.h"
#include "cli/term/output.h"
#include "formats/codec/input.h"

struct bc_file {
	const char *name; /* for messages */
	int fd;
	bool is_ours;    /* bc_file_close() closes the fd */
	bool is_regular; /* seekable: a regular file, and not a compressed segment */
	bool is_partial; /* named like an open segment: ".partial" */
	bool is_written; /* an open segment that is being recorded; only `bytes` of it are read */
	bool is_killed;  /* an open segment that was abandoned: bc_segment_path_is_killed() */
	uint64_t bytes;  /* size of a regular file; else 0 */
	struct bc_probe probe;
	struct bc_input *input;
};

/* Opens a file; "-" is the console's input. `wanted` is the format given by the user. If it is
 * BC_FORMAT_UNKNOWN, the format is detected by content or, if the content is too damaged, by a
 * segment's file name. Returns BC_EXIT_OK, or prints an error and returns BC_EXIT_FAILED with
 * nothing to close; is_regular and bytes are valid even then. */
enum bc_exit bc_file_open(struct bc_file *file, const struct bc_console *console, const char *path,
	enum bc_format wanted);

/* The same, but also opens a file that the user must describe: probe.needs_layout. */
enum bc_exit bc_file_open_any(struct bc_file *file, const struct bc_console *console,
	const char *path, enum bc_format wanted);

void bc_file_close(struct bc_file *file);

/* True if a listed file has been deleted since. */
bool bc_file_is_gone(const char *path);

/* Returns true if reading would block, as on an empty pipe. Flush the output then. */
bool bc_file_would_wait(const struct bc_file *file);

/* Opens a file, no directory, to read. Returns a descriptor; or a negative errno, printing why. */
int bc_open_readable(const struct bc_console *console, const char *path);

/* Opens the directory that `path` is in. Returns a descriptor, or -1 with errno set. */
int bc_open_parent(const char *path);

/* Opens the directory of `path`, to create the file. Returns a descriptor; or -1, printing why. */
int bc_open_directory(const struct bc_console *console, const char *path);

/* Gives way to a recorder, because reading its files must not cost samples: gives the calling
 * thread, and threads that it starts, the lowest priority for the processor and the disk if a
 * daemon is running in the directory `path`, or in the directory of the file `path`. Call before
 * reading; it stays so. Otherwise, or if that can't be told, nothing changes. */
void bc_give_way(const char *path);

/* Returns a description of the compression: ", gzip compressed", or "". */
const char *bc_packing_text(enum bc_packing packing);

/* Prints an error: the compressed data is damaged or torn. `where` is appended to the message. */
void bc_print_packing(
	const struct bc_console *console, const struct bc_file *file, const char *where);

/* Prints an error: reading failed with a negative errno; -EBADMSG is damaged compressed data.
 * Returns BC_EXIT_DAMAGED for -EBADMSG, otherwise BC_EXIT_FAILED. */
enum bc_exit bc_print_read_error(
	const struct bc_console *console, const struct bc_file *file, int error);

/* The output file of a command, or standard output.
 *
 * A regular file is replaced only once the new one is complete: data goes to FILE.partial, which
 * bc_output_file_close() renames. A symbolic link, a device or a pipe is written in place. An
 * output that is also an input is refused, whatever its name: it would be overwritten while it is
 * read, or would grow without limit. */

struct bc_output_file {
	int fd;
	const char *path; /* the caller's; NULL: the console's output */
	char *partial;    /* temporary name; NULL: written in place */
};

/* Opens the output. `inputs` are the paths of the input files; "-" is the console's input. Returns
 * BC_EXIT_OK, or prints an error and returns BC_EXIT_FAILED with nothing to close. */
enum bc_exit bc_output_file_open(struct bc_output_file *file, const struct bc_console *console,
	const char *path, const char *const *inputs, int count);

/* Closes the output, which writes to the file; NULL: none was opened. If it was written and
 * `is_whole`, renames the file to its final name; otherwise leaves FILE.partial and prints a
 * message that says so. Returns BC_EXIT_OK, or prints an error and returns BC_EXIT_FAILED. */
enum bc_exit bc_output_file_close(struct bc_output_file *file, const struct bc_console *console,
	struct bc_output *output, bool is_whole);

#endif
