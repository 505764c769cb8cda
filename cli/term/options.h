/* The options of a command: getopt_long() without its own messages, and the values that options
 * have.
 *
 * Each function that reads a value returns false after a complaint that names option and value. */
#ifndef BC_CLI_TERM_OPTIONS_H
#define BC_CLI_TERM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/term/console.h"
#include "formats/base/options.h"
#include "formats/base/usage.h"
#include "formats/reader/probe.h"

/* What a command is given: options are taken out one by one, then the operands are left. */
struct bc_options {
	const struct bc_console *console;
	const struct bc_usage *usage;
	int argc;
	char **argv;
	struct bc_usage_getopt getopt;
	bool is_started;
	enum bc_exit exit; /* how the command ends that takes no more of them */
};

/* `usage` is the command's table, or its verb's. */
void bc_options_start(struct bc_options *options, const struct bc_console *console,
	const struct bc_usage *usage, int argc, char **argv);

/* The next option's letter, its value in optarg; -1 after the last, the operands then standing from
 * argv[optind]; '?' when the command is over, with `exit` set: after a complaint about one that is
 * unknown or lacks its value, or once --help has been printed. */
int bc_options_next(struct bc_options *options);

struct bc_range {
	uint64_t first;
	uint64_t last; /* inclusive */
};

static inline bool bc_range_has(struct bc_range range, uint64_t n)
{
	return n >= range.first && n <= range.last;
}

/* Decimal numbers; the same with k, M or G behind them, of thousands; "A-B", "A-", "-B" or "A"; a
 * probability from 0 to 1, to the millionth. */
bool bc_option_u64(const struct bc_console *console, const char *option, uint64_t *value);
bool bc_option_count(const struct bc_console *console, const char *option, uint64_t *value);
bool bc_option_range(const struct bc_console *console, const char *option, struct bc_range *range);
bool bc_option_ppm(const struct bc_console *console, const char *option, uint32_t *ppm);

/* A format that can be read, or written, "fmt" or "fmt:key=value,key=value"; what is said behind
 * the name is set in *options. */
bool bc_option_read_format(const struct bc_console *console, const char *option,
	enum bc_format *format, struct bc_format_options *options);
bool bc_option_write_format(const struct bc_console *console, const char *option,
	enum bc_format *format, struct bc_format_options *options);

/* Standard input, "-", can be read once only. Returns BC_EXIT_OK, or BC_EXIT_USAGE after a
 * complaint that it is named again. */
enum bc_exit bc_check_inputs(const struct bc_console *console, const char **paths, int count);

/* Prints a command's help text on standard output. */
enum bc_exit bc_print_help(const struct bc_console *console, const struct bc_usage *usage);

/* Complains that the operands are not what the command takes. */
enum bc_exit bc_print_usage_error(const struct bc_console *console, const char *what);

#endif
