/* What a command line takes, as a table: what getopt_long() is given, what --help prints and what
 * --options lists are all made of it, so that they are one.
 *
 * It is text and no bytes of a trace, and stands in formats/ because both programs have it and may
 * include nothing else in common.
 *
 * --options prints one line an option, its fields ended by tabs and newline:
 *
 *     COMMAND SHORT LONG METAVAR KIND SUMMARY
 *
 * COMMAND is "-" for what the program takes itself, else "cut" or "record start". SHORT is a letter
 * and LONG a name, both without dashes. METAVAR is what its value is called; "[N]" may be left out,
 * and is then given behind '='. A field is empty where there is none. A line with neither SHORT nor
 * LONG is the command itself: METAVAR are its operands, KIND has a word for each of them, the last
 * one standing for all that follow, and SUMMARY says what it does. buscapd lists its configuration,
 * too: COMMAND is "config" and LONG "section.key".
 *
 * KIND says what a value can be, for completion:
 *
 *     none               there is no value
 *     file, dir          a path
 *     format-read        a format that can be read, with its options; format-write: written
 *     choice:A|B|C       one of these words, or, by what SUMMARY says, something else; one that
 *                        ends in ':' or '=' goes on with a value, which of "file:" is a path
 *     list:A|B|C         some of these words, with commas between
 *     command            a command, or for one that has verbs a verb
 *     setting            a key of the configuration and its value: SECTION.KEY=VALUE
 *     number, size, time, length, range, text
 *                        what can't be completed: a length is a time or a size */
#ifndef BC_FORMATS_BASE_USAGE_H
#define BC_FORMATS_BASE_USAGE_H

#include <getopt.h>
#include <stdio.h>

#define BC_USAGE_COLUMNS 100 /* no line of a help text is longer */

struct bc_usage_option {
	int letter; /* what getopt_long() gives for it; its short name, if a character is that */
	const char *name;    /* the long one, without its dashes; NULL: there is none */
	const char *metavar; /* NULL: it has no value; "[N]": the value may be left out */
	const char *kind;    /* of the value, as above; NULL: none */
	const char *help;    /* without newlines */
};

struct bc_usage {
	const char *name;     /* "cut", "record start"; NULL: the program itself */
	const char *required; /* options that can't be left out, as "-O FMT"; may be NULL */
	const char *operands; /* "[FILE]..."; NULL: it takes none */
	const char *kind;     /* of the operands, as above */
	const char *summary;  /* a line in a list of commands: "compare two traces" */

	/* Lines that are wrapped each for itself, with the blanks at its head before each part;
	 * what stands in them as columns is kept if it is short enough. */
	const char *text; /* before the options; NULL: the summary as a sentence */
	const char *more; /* behind them; may be NULL */
	const char *exits;
	const char *example; /* a command line; several lines of it are indented by 13 blanks */

	const struct bc_usage_option *options; /* up to a row without help; --help is added */
	const struct bc_usage *const *verbs;   /* "record start" of "record", up to NULL; or NULL */
};

/* The options as getopt_long() wants them. */
#define BC_USAGE_OPTIONS_MAX 31
struct bc_usage_getopt {
	struct option all[BC_USAGE_OPTIONS_MAX + 2];
	char brief[2 + 3 * (BC_USAGE_OPTIONS_MAX + 1)]; /* begins with ':' */
};

/* `usage` has BC_USAGE_OPTIONS_MAX options at most; --help, which it need not list, gives 'h'. */
void bc_usage_getopt(struct bc_usage_getopt *getopt, const struct bc_usage *usage);

/* Says in `out` what is wrong with an option, for which getopt_long(), given all->brief and
 * all->all, has returned ':' or '?' (`got`): "option --source lacks its value". `before` is what
 * optind was before that call, 1 at the beginning. */
void bc_usage_refuse(char *out, size_t room, const struct bc_usage_getopt *all, int got,
	char *const *argv, int before);

/* Prints what --help says: of a command with verbs, of them all. */
void bc_usage_help(FILE *out, const char *program, const struct bc_usage *usage);

/* Prints the options alone, as they stand in a help text. */
void bc_usage_print_options(FILE *out, const struct bc_usage_option *options);

/* Prints lines; each is wrapped, with its indentation before each part. */
void bc_usage_print_text(FILE *out, const char *text);

/* Prints what --options says of it and its verbs. */
void bc_usage_list(FILE *out, const struct bc_usage *usage);

/* One line of that. Any text may be NULL; `letter` is 0 where there is none. */
void bc_usage_list_row(FILE *out, const char *command, int letter, const char *name,
	const char *metavar, const char *kind, const char *summary);

#endif
