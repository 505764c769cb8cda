/* The arguments of a command that reads traces and writes one (convert, cut, merge): input format
 * and files, output format and file.
 *
 *     bc_convert_args_init()
 *     bc_convert_args_option()     for each option that the command does not handle itself
 *     bc_convert_args_operands()
 *     ...                          use `reader`, `target` and `files`
 *     bc_convert_args_free()
 */
#ifndef BC_CLI_IO_CONVERT_ARGS_H
#define BC_CLI_IO_CONVERT_ARGS_H

#include <stdbool.h>

#include "cli/io/operands.h"
#include "cli/io/target.h"
#include "cli/term/console.h"
#include "cli/term/options.h"
#include "formats/reader/reader.h"

/* Rows for the option tables of these commands. Each command describes -I and -O itself. */
#define BC_CONVERT_ARGS_STRICT 999
/* clang-format off */
#define BC_CONVERT_ARGS_OPTIONS \
	{'o', "output", "FILE", "file", \
		"output file (default: standard output); an existing file is replaced, except by a segment"}, \
	{BC_CONVERT_ARGS_STRICT, "strict", NULL, NULL, \
		"fail if the output format can't hold something, instead of counting it"}
/* clang-format on */

struct bc_convert_args {
	const struct bc_console *console;
	enum bc_format from; /* BC_FORMAT_UNKNOWN: detect by content */
	struct bc_reader_options reader;
	struct bc_target_options target; /* format is BC_FORMAT_UNKNOWN without -O */
	const char **words;              /* has space for argc words */
	int word_count;
	struct bc_operands operands;
	struct bc_files files;
};

/* Returns BC_EXIT_OK, or prints an error and returns BC_EXIT_FAILED. Free it in either case. */
enum bc_exit bc_convert_args_init(
	struct bc_convert_args *args, const struct bc_console *console, int argc);
void bc_convert_args_free(struct bc_convert_args *args);

/* Handles an option. Returns false if its value is invalid (after printing an error), or if it is
 * not an option of these commands. */
bool bc_convert_args_option(struct bc_convert_args *args, int letter);

/* Appends the operands, from argv[optind], to `words`, and lists the files (cli/io/operands.h).
 * Without any, standard input ("-") is read. Returns BC_EXIT_OK, or prints an error and returns its
 * code. */
enum bc_exit bc_convert_args_operands(
	struct bc_convert_args *args, int argc, char **argv, unsigned how);

#endif
