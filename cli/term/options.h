/* The options of a command: getopt_long() with our own errors, and parsers for option values.
 *
 * Each function that reads a value takes it from `optarg`. On an invalid value it prints an error
 * that names the option and the value, and returns false. */
#ifndef BC_CLI_TERM_OPTIONS_H
#define BC_CLI_TERM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/term/console.h"
#include "formats/base/format_id.h"
#include "formats/base/usage.h"
#include "formats/codec/input.h"

/* The state of option parsing. */
struct bc_options {
	const struct bc_console *console;
	const struct bc_usage *usage;
	int argc;
	char **argv;
	struct bc_usage_getopt getopt;
	enum bc_exit exit; /* exit code of the command if parsing ends with '?' */
};

/* `usage` describes the command or its verb. */
void bc_options_start(struct bc_options *options, const struct bc_console *console,
	const struct bc_usage *usage, int argc, char **argv);

/* Returns the next option's letter, with its value in `optarg`. Returns -1 after the last option;
 * the operands then start at argv[optind]. Returns '?' if the command must exit with
 * `options->exit`: after an error (unknown option, missing value) or after printing --help. */
int bc_options_next(struct bc_options *options);

/* Read a count, a size or a time from `first` to `last`: formats/base/quantity.h. */
bool bc_option_count(const struct bc_console *console, const char *option, uint64_t first,
	uint64_t last, uint64_t *value);
bool bc_option_size(
	const struct bc_console *console, const char *option, uint64_t first, uint64_t *bytes);
bool bc_option_time(const struct bc_console *console, const char *option, uint64_t first_ns,
	uint64_t last_ns, uint64_t *ns);

/* Reads a range: "A-B", "A-", "-B" or "A". `last` is inclusive. */
bool bc_option_range(
	const struct bc_console *console, const char *option, uint64_t *first, uint64_t *last);

/* Reads a word of the row of this letter, "choice:A|B|C". Sets *choice to its place, from 0. */
bool bc_option_choice(const struct bc_console *console, const struct bc_usage_option *options,
	int letter, unsigned *choice);

/* Reads a probability from 0 to 1 and converts it to parts per million. */
bool bc_option_ppm(const struct bc_console *console, const char *option, uint32_t *ppm);

/* Read a format that can be read (written): "fmt" or "fmt:key=value,key=value", into *options. */
bool bc_option_read_format(const struct bc_console *console, const char *option,
	enum bc_format *format, struct bc_format_options *options);
bool bc_option_write_format(const struct bc_console *console, const char *option,
	enum bc_format *format, struct bc_format_options *options);

/* Checks that standard input ("-") is given at most once. Returns BC_EXIT_OK, or prints an error
 * and returns BC_EXIT_USAGE. */
enum bc_exit bc_check_inputs(const struct bc_console *console, const char *const *paths, int count);

/* Prints what print() writes to the console's output. Returns the exit code. */
enum bc_exit bc_print_text(const struct bc_console *console,
	void (*print)(FILE *out, const void *context), const void *context);

/* Prints a command's help text to the console's output. Returns the exit code. */
enum bc_exit bc_print_help(const struct bc_console *console, const struct bc_usage *usage);

/* Prints an error followed by "see buscap COMMAND --help". Returns BC_EXIT_USAGE. */
enum bc_exit bc_print_usage_error(const struct bc_console *console, const char *what);

#define BC_NO_OPERANDS "takes no operands"

#endif
