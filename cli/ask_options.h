/* The options that all commands of the live side have, the verbs of those that have several, and
 * what they may say of a recording that they ask for. */
#ifndef BC_CLI_ASK_OPTIONS_H
#define BC_CLI_ASK_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/ask.h"
#include "cli/options.h"

struct bc_ask_options {
	const char *socket; /* NULL: see bc_client_open() */
	bool is_json;
};

/* These alone, --json and --socket, for the tables of commands that have no more. */
extern const struct bc_usage_option bc_ask_options[];

/* Reads the options of such a command. Returns false when it is over with that, *code then being
 * how; else the operands stand from argv[optind]. */
bool bc_ask_options_read(struct bc_ask_options *options, const struct bc_console *console, int argc,
	char **argv, const struct bc_usage *usage, enum bc_exit *code);

/* What a word behind a command's name does: "record start". */
typedef int bc_verb(const struct bc_console *console, int argc, char **argv);

/* Runs the verb that argv[1] names, with arguments that begin with it; --help in its place prints
 * the help text of all. Complains where it names none. `run` is in the order of usage->verbs. */
int bc_verbs_run(const struct bc_console *console, const struct bc_usage *usage,
	bc_verb *const *run, int argc, char **argv);

/* Options whose value goes into the body of a request, for the tables of those commands that have
 * them. */
enum {
	BC_ASK_LABEL = BC_ASK_MORE,
	BC_ASK_NOTE,
	BC_ASK_LIMIT,
	BC_ASK_TRIGGER,
	BC_ASK_PRE,
	BC_ASK_POST,
	BC_ASK_TEXT,
	BC_ASK_HOLDOFF,
	BC_ASK_OWN, /* what a command alone has begins here */
};

/* Takes one of these, --json or --socket. Returns false, having complained, when it makes no sense;
 * a letter that is none of them is false, too. */
bool bc_ask_body_option(
	const struct bc_console *console, int letter, cJSON *body, struct bc_ask_options *options);

/* Whether an option's member isn't in the body yet; complains where it is. */
bool bc_ask_is_first(
	const struct bc_console *console, const cJSON *body, const char *option, const char *name);

/* Adds an option's value to the body, or complains that it stands there already and returns
 * false. */
bool bc_ask_text(const struct bc_console *console, cJSON *body, const char *option,
	const char *name, const char *value);

/* The same of a note, k=v. */
bool bc_ask_note(const struct bc_console *console, cJSON *body, const char *value);

/* Their rows; those that mean something else to each command stand in its own table. */
/* clang-format off */
#define BC_ASK_OPTIONS \
	{BC_ASK_JSON, "json", NULL, NULL, "print the daemon's answer as it came"}, \
	BC_ASK_OPTION_SOCKET
#define BC_ASK_OPTION_LABEL \
	{BC_ASK_LABEL, "label", "TEXT", "text", \
		"goes into the recording's name: letters, digits, '.', '_', '-'"}
#define BC_ASK_OPTION_NOTE \
	{BC_ASK_NOTE, "note", "KEY=VALUE", "text", "kept with the recording; as often as needed"}
#define BC_ASK_OPTION_LIMIT \
	{BC_ASK_LIMIT, "limit", "RULE", "choice:duration:|records:|filesize:", \
		"it ends then: duration:10s, records:1000000, filesize:64M; the first that is reached"}
#define BC_ASK_OPTION_TRIGGER \
	{BC_ASK_TRIGGER, "trigger", "NAME:ACTION:WHEN", "text", \
		"armed while it lasts; ACTION is mark or stop; WHEN as in \"buscap trigger --help\""}
/* clang-format on */

#endif
