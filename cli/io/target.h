/* The output trace of a command: a writable format, to a file, new for a segment, or to stdout.
 *
 *     bc_target_open()
 *     bc_target_add() ...       entries, in order; bc_target_add_run() for records
 *     bc_target_close()         reports, by kind, what the format could not hold
 */
#ifndef BC_CLI_IO_TARGET_H
#define BC_CLI_IO_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/io/file.h"
#include "cli/io/filter_args.h"
#include "cli/io/operands.h"
#include "cli/io/segment_target.h"
#include "cli/io/trace.h"
#include "cli/term/console.h"
#include "cli/term/options.h"
#include "cli/term/output.h"
#include "formats/codec/format.h"
#include "formats/codec/reader.h"
#include "formats/trace/printer.h"

struct bc_target {
	const struct bc_console *console;
	const char *path; /* NULL: the console's output */
	enum bc_format format;
	const struct bc_format_info *info;
	bool is_strict;
	/* The trace that the entries come from, for messages and a segment's metadata, and its
	 * times. A command with several inputs sets both before each bc_target_add(). */
	const struct bc_trace *source;
	const struct bc_moment *moment;
	struct bc_entry_converter converter;
	struct bc_segment_target *segment; /* NULL: the printer writes to `output` */
	struct bc_output_file file;        /* the file of `own` */
	struct bc_output own;
	struct bc_output *output; /* `own`, or the output of another target */
	void *state;              /* the printer's, and its options */
	struct bc_format_options options;
	uint64_t kept_lines; /* lines that buscap does not interpret, written unchanged */
	uint64_t splits;     /* references that were written as several bus samples */
	bool is_picture;     /* only types that become others are reported */
	enum bc_exit exit;
};

struct bc_target_options {
	enum bc_format format;
	struct bc_format_options options;
	const char *path;        /* "-" or NULL: the console's output */
	bool is_strict;          /* a loss is an error, not just counted */
	struct bc_origin origin; /* for a segment's metadata; key NULL: converted_from */
	bc_traits source_traits; /* traits of the entries in addition to the source's */
	/* Write to this target's output, which must be closed later; NULL: opens one. */
	struct bc_target *shared;
};

/* Checks that a trace can be converted to a format. Returns BC_EXIT_OK, or prints why not. */
enum bc_exit bc_target_check(
	const struct bc_console *console, const struct bc_trace *trace, enum bc_format to);

/* Opens the target. `source` is the trace that the entries come from; it stays the caller's.
 * Returns BC_EXIT_OK, or prints an error and returns another code with nothing to close. */
enum bc_exit bc_target_open(struct bc_target *target, const struct bc_console *console,
	const struct bc_target_options *options, const struct bc_trace *source);

/* Writes entries. Returns false if the caller should stop: writing failed, the reader of a pipe has
 * exited, an entry does not fit, or --strict forbids a loss; prints why, sets target->exit. */
bool bc_target_add(struct bc_target *target, const struct bc_entry *entries, size_t count);

/* Writes the entries of a run in the same way. */
bool bc_target_add_run(struct bc_target *target, struct bc_record_run run);

/* Passes on the source's exit code at its end. If part of the source could not be read
 * (BC_EXIT_FAILED), the output is incomplete: prints a message, and a segment is not sealed.
 * Damaged or malformed input (BC_EXIT_DAMAGED) does not prevent sealing. */
void bc_target_end_source(struct bc_target *target, enum bc_exit exit);

/* Completes the output and reports losses. Returns the exit code. */
enum bc_exit bc_target_close(struct bc_target *target);

/* ---- The arguments of a command that reads traces and writes one (convert, cut, merge): input
 * format and files, output format and file.
 *
 *     bc_convert_args_init()
 *     bc_convert_args_option()     for each option that the command does not handle itself
 *     bc_convert_args_operands()
 *     bc_convert_args_run()        or use `reader`, `target` and `files`
 *     bc_convert_args_free()
 */

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
	struct bc_target_options target;     /* format is BC_FORMAT_UNKNOWN without -O */
	const struct bc_filter_args *filter; /* what the input format must have; NULL: nothing */
	const char **words;                  /* has space for argc words */
	int word_count;
	struct bc_operands operands;
	struct bc_files files;
	/* While bc_convert_args_run() runs. */
	struct bc_trace source;
	struct bc_target output;
	bool has_run; /* the output was opened, and closed */
};

/* Returns BC_EXIT_OK, or prints an error and returns BC_EXIT_FAILED. Free it in either case. */
enum bc_exit bc_convert_args_init(
	struct bc_convert_args *args, const struct bc_console *console, int argc);
void bc_convert_args_free(struct bc_convert_args *args);

/* Handles an option. Returns false if its value is invalid (after printing an error), or if it is
 * not an option of these commands. */
bool bc_convert_args_option(struct bc_convert_args *args, int letter);

/* Appends the operands, from argv[optind], to `words`, and lists the files (cli/io/operands.h).
 * Without any, standard input ("-") is read. Returns BC_EXIT_OK, or another code, printing why. */
enum bc_exit bc_convert_args_operands(
	struct bc_convert_args *args, int argc, char **argv, unsigned how);

/* Reads the files and writes the output, in the format of the input if -O was not given. batch()
 * gets each batch of `source`, passes what it keeps to bc_target_add(), and returns false to stop.
 * Returns the exit code. */
enum bc_exit bc_convert_args_run(struct bc_convert_args *args,
	bool (*batch)(void *context, const struct bc_batch *batch), void *context);

#endif
