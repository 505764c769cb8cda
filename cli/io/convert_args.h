/* What a command that reads traces and writes one is asked for: the format and the files to read,
 * the format and the file to write.
 *
 *     bc_convert_args_init()
 *     bc_convert_args_option()     each option that isn't the command's own
 *     bc_convert_args_operands()
 *     ...                        `reader`, `target` and `paths` are what is wanted
 *     bc_convert_args_free()
 */
#ifndef BC_CLI_IO_CONVERT_ARGS_H
#define BC_CLI_IO_CONVERT_ARGS_H

#include <stdbool.h>

#include "cli/io/target.h"
#include "cli/term/console.h"
#include "cli/term/options.h"
#include "formats/reader/reader.h"

/* Rows for the tables of these commands, which say themselves what -I and -O are to them. */
#define BC_CONVERT_ARGS_STRICT 999
/* clang-format off */
#define BC_CONVERT_ARGS_OPTIONS \
	{'o', "output", "FILE", "file", \
		"the file to write, instead of standard output; a segment wants one that isn't there yet, " \
		"any other is replaced"}, \
	{BC_CONVERT_ARGS_STRICT, "strict", NULL, NULL, \
		"refuse what the target can't hold, instead of counting it"}
/* clang-format on */

struct bc_convert_args {
	const struct bc_console *console;
	enum bc_format from; /* BC_FORMAT_UNKNOWN: told by content */
	struct bc_reader_options reader;
	struct bc_target_options target; /* its format: BC_FORMAT_UNKNOWN if none is said */
	const char **paths;              /* room for as many as there are arguments */
	int count;
};

/* Returns BC_EXIT_OK, or BC_EXIT_FAILED after a complaint; free it in any case. */
enum bc_exit bc_convert_args_init(
	struct bc_convert_args *args, const struct bc_console *console, int argc);
void bc_convert_args_free(struct bc_convert_args *args);

/* Takes the option at hand. Returns false after a complaint, or if it is none of these. */
bool bc_convert_args_option(struct bc_convert_args *args, int letter);

/* Takes the operands, from argv[optind] on, behind the paths that are there. Without any the
 * console's input is what is read. Returns BC_EXIT_OK, or BC_EXIT_USAGE after a complaint. */
enum bc_exit bc_convert_args_operands(struct bc_convert_args *args, int argc, char **argv);

#endif
