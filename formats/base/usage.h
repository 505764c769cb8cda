/* Command-line options as a table. getopt_long()'s arguments, the text of --help and the list of
 * --options are made from the same table, so they always agree.
 *
 * This module is in formats/ because both programs use it, and formats/ is all they share.
 *
 * --options prints one line per option, with fields separated by tabs:
 *
 *     COMMAND SHORT LONG METAVAR KIND SUMMARY
 *
 * COMMAND is "-" for options of the program itself, otherwise "cut" or "record start". SHORT is a
 * letter and LONG a name, both without dashes. METAVAR names the value; "[N]" is an optional value,
 * given after '='. Fields can be empty. A line with neither SHORT nor LONG describes the command:
 * METAVAR is its operands, KIND has one word for each operand (the last one is for all that
 * follow), and SUMMARY says what the command does. buscapd also lists its configuration: COMMAND is
 * "config" and LONG is "section.key".
 *
 * KIND tells shell completion what a value can be:
 *
 *     none               there is no value
 *     file, dir          a path
 *     format-read        a format that can be read, with its options
 *     format-write       a format that can be written, with its options
 *     choice:A|B|C       one of these words, or another value described in SUMMARY; a word that
 *                        ends in ':' or '=' is followed by a value ("file:" by a path)
 *     list:A|B|C         some of these words, separated by commas
 *     command            a command; for a command with verbs, a verb
 *     recording          a file or directory, or the id of one of the daemon's recordings
 *     id, trigger, mark  one that the daemon knows
 *     map                a file, or "pc"
 *     region             a name of "pc" or of a --map, or "help"
 *     setting            a configuration key and its value: SECTION.KEY=VALUE
 *     number, size, time, length, range, text
 *                        can't be completed; a length is a time or a size */
#ifndef BC_FORMATS_BASE_USAGE_H
#define BC_FORMATS_BASE_USAGE_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#define BC_USAGE_COLUMNS 100 /* width of the help text */

struct bc_usage_option {
	int letter;          /* value returned by getopt_long(); the short name if printable */
	const char *name;    /* long name, without dashes; NULL: none */
	const char *metavar; /* name of the value; "[N]": optional; NULL: no value */
	const char *kind;    /* of the value, as above; NULL: none */
	const char *help;    /* without newlines */
};

struct bc_usage {
	const char *name;     /* "cut", "record start"; NULL: the program itself */
	const char *required; /* required options, such as "-O FMT"; may be NULL */
	const char *operands; /* "[FILE]..."; NULL: none */
	const char *kind;     /* of the operands, as above */
	const char *summary;  /* one line: "compare two traces" */

	/* Each line of these strings is wrapped separately. Continuation lines get the line's
	 * indentation. Spaces inside a line are kept, so short lines can have columns. */
	const char *text; /* before the options; NULL: the summary as a sentence */
	const char *more; /* after the options; may be NULL */
	const char *exits;
	const char *example; /* a command line; indent further lines by 13 spaces */

	const struct bc_usage_option *options; /* ends with a row without help; without --help */
	/* A command that takes a verb, such as "record start", has no options itself. */
	const struct bc_usage *const *verbs; /* ends with NULL; NULL: no verbs */
};

/* Arguments for getopt_long(). */
#define BC_USAGE_OPTIONS_MAX 31
struct bc_usage_getopt {
	struct option all[BC_USAGE_OPTIONS_MAX + 2];
	char brief[2 + 3 * (BC_USAGE_OPTIONS_MAX + 1)]; /* starts with ':' */
};

/* Fills in *getopt. `usage` has at most BC_USAGE_OPTIONS_MAX options. Adds --help, which is 'h'. */
void bc_usage_getopt(struct bc_usage_getopt *getopt, const struct bc_usage *usage);

/* True if argv[1] .. argv[argc - 1] are only options of the command and their values. */
bool bc_usage_are_options(const struct bc_usage *usage, int argc, char **argv);

#define BC_USAGE_ERROR_MAX 400u

/* Writes an error message such as "option --source requires a value; see buscapd --help" after
 * getopt_long() returned ':' or '?' (`got`). `before` is optind before that call, at first 1. */
void bc_usage_format_error(char err[BC_USAGE_ERROR_MAX], const char *program,
	const struct bc_usage *usage, int got, char *const *argv, int before);

/* Writes that a word such as "--verison" isn't an option, and which one may be meant. */
void bc_usage_unknown_option(char err[BC_USAGE_ERROR_MAX], const char *program,
	const struct bc_usage *usage, const char *word);

/* Prints the text of --help for a command and its verbs. */
void bc_usage_help(FILE *out, const char *program, const struct bc_usage *usage);

/* Prints only the options, in the form of a help text. */
void bc_usage_print_options(FILE *out, const struct bc_usage_option *options);

/* Prints text. Each line is wrapped separately and keeps its indentation. */
void bc_usage_print_text(FILE *out, const char *text);

/* Prints the lines of --options for a command and its verbs. */
void bc_usage_list(FILE *out, const struct bc_usage *usage);

/* Prints one line of --options. Texts may be NULL; `letter` may be 0. */
void bc_usage_list_row(FILE *out, const char *command, int letter, const char *name,
	const char *metavar, const char *kind, const char *summary);

/* The exit codes of both programs; --help lists them. */
enum bc_exit {
	BC_EXIT_OK = 0,
	BC_EXIT_FAILED = 1,
	BC_EXIT_USAGE = 2,
	BC_EXIT_DAMAGED = 3,     /* the input is damaged or torn; its intact parts were processed */
	BC_EXIT_LOST = 4,        /* buscapd: finished, but samples were lost */
	BC_EXIT_NO_DEVICE = 5,   /* buscapd --once: no board appeared in time */
	BC_EXIT_UNREACHABLE = 6, /* buscap: can't connect to the daemon */
};

#endif
