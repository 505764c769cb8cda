/* How the commands that search segments open files, and print what is wrong with them. */
#ifndef BC_CLI_IO_SEGMENT_INPUT_H
#define BC_CLI_IO_SEGMENT_INPUT_H

#include "cli/io/operands.h"
#include "formats/search/segment_files.h"

/* Opens a segment file for struct bc_search_io. Returns a descriptor; or -1 with errno set: ENOENT
 * if the file was deleted; otherwise an error was printed and *code made worse. EBADMSG: it is not
 * a segment; EXDEV: it has the name of another one. */
int bc_segment_input_open(const struct bc_operands *operands, const char *path, enum bc_exit *code);

/* Prints a fault. Returns what it means for the exit code. */
enum bc_exit bc_segment_input_print_fault(
	const struct bc_console *console, const struct bc_search_fault *fault);

#endif
