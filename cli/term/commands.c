/* A table of commands, and what "buscap" does without one: --help, --options, --version, "help". A
 * command runs with a console that has its name. The console given to bc_commands_run() has none,
 * so its errors begin with "buscap: ". */
#include "cli/term/commands.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/term/options.h"
#include "formats/base/suggest.h"
#include "formats/base/versions.h"

static const struct {
	const struct bc_usage *usage;
	enum bc_exit (*run_command)(const struct bc_console *console, int argc, char **argv);
} commands[] = {
#define ROW(name, function) {&bc_##name##_usage, bc_cmd_##function},
	BC_COMMAND_LIST(ROW)};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

enum { OPTION_OPTIONS = 1000 };

static const struct bc_usage_option options[] = {
	{'V', "version", NULL, NULL,
		"print the version, the commit, and the versions of the libraries"},
	{OPTION_OPTIONS, "options", NULL, NULL,
		"list the options of all commands, one per line, for scripts"},
	{0},
};

static const struct bc_usage help_usage = {
	.name = "help",
	.operands = "[COMMAND [VERB]]",
	.kind = "command",
	.summary = "show the help of a command",
	.text = "Shows the help of a command, or of one of its verbs.",
	.exits = "0 ok, 2 no such command.",
	.example = "buscap help record start",
};

static const struct bc_usage usage = {
	.operands = "COMMAND",
	.kind = "command",
	.summary = "read, check and convert bus traces; control buscapd",
	.options = options,
};

static void print_help(FILE *out, const void *context)
{
	(void)context;
	fprintf(out, "usage: buscap COMMAND [OPTION]... [FILE]...\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-9s %s\n", commands[i].usage->name, commands[i].usage->summary);
	fputc('\n', out);
	bc_usage_print_options(out, options);
	fprintf(out, "\nRun buscap COMMAND --help or buscap help COMMAND for details.\n"
		     "\n"
		     "Example: buscap info *.byu.lz4\n");
}

static void list_options(FILE *out, const void *context)
{
	(void)context;
	bc_usage_list(out, &usage);
	for (size_t i = 0; i < COMMANDS; i++)
		bc_usage_list(out, commands[i].usage);
	bc_usage_list(out, &help_usage);
}

static void print_version(FILE *out, const void *context)
{
	(void)context;
	bc_versions_print(out, "buscap");
}

/* Other words for commands: those of other tools, and what a command does. */
static const struct {
	const char *word;
	const char *command;
} synonyms[] = {
	{"annotate", "mark"},
	{"capture", "record start"},
	{"cat", "dump"},
	{"check", "verify"},
	{"cmp", "diff"},
	{"compare", "diff"},
	{"concat", "merge"},
	{"count", "stats"},
	{"export", "convert"},
	{"extract", "cut"},
	{"filter", "cut"},
	{"fix", "recover"},
	{"follow", "tail"},
	{"gaps", "marks"},
	{"generate", "sim"},
	{"grep", "find"},
	{"gui", "web"},
	{"head", "dump"},
	{"import", "convert"},
	{"join", "merge"},
	{"live", "top"},
	{"log", "events"},
	{"ls", "info"},
	{"monitor", "top"},
	{"plot", "report"},
	{"print", "dump"},
	{"repair", "recover"},
	{"save", "snapshot"},
	{"search", "find"},
	{"serve", "web"},
	{"show", "info"},
	{"simulate", "sim"},
	{"slice", "cut"},
	{"summary", "stats"},
	{"test", "verify"},
	{"version", "--version"},
	{"view", "web"},
	{"watch", "top"},
};

/* Returns the command that is meant by `name`, or NULL if that can't be told. A verb of a command
 * may be meant too: "record stop" for "stop". */
static const char *guess_command(const char *name)
{
	struct bc_suggestion s = bc_suggestion_start(name);

	for (size_t i = 0; i < COMMANDS; i++)
		bc_suggestion_add(&s, commands[i].usage->name, commands[i].usage->name);
	bc_suggestion_add(&s, help_usage.name, help_usage.name);
	for (size_t i = 0; i < sizeof(synonyms) / sizeof(synonyms[0]); i++)
		bc_suggestion_add(&s, synonyms[i].word, synonyms[i].command);
	for (size_t i = 0; i < COMMANDS; i++) {
		const struct bc_usage *const *verb = commands[i].usage->verbs;
		for (; verb != NULL && *verb != NULL; verb++)
			bc_suggestion_add(&s, strchr((*verb)->name, ' ') + 1, (*verb)->name);
	}
	return s.nearest;
}

static enum bc_exit print_unknown_command(const struct bc_console *console, const char *name)
{
	const char *meant = guess_command(name);
	char err[BC_USAGE_ERROR_MAX];

	if (name[0] == '-') {
		bc_usage_unknown_option(err, "buscap", &usage, name);
		bc_print_error(console, NULL, "%s", err);
	} else if (meant != NULL) {
		bc_print_error(console, NULL,
			"no such command: %.200s; did you mean %s? See buscap --help", name, meant);
	} else {
		bc_print_error(console, NULL, "no such command: %.200s; see buscap --help", name);
	}
	return BC_EXIT_USAGE;
}

/* True if the words before argv[at], a command's name, are options of it or of one of its verbs. */
static bool follows_options(const struct bc_usage *command, int at, char **argv)
{
	if (bc_usage_are_options(command, at, argv))
		return true;
	for (size_t i = 0; command->verbs != NULL && command->verbs[i] != NULL; i++)
		if (bc_usage_are_options(command->verbs[i], at, argv))
			return true;
	return false;
}

/* Moves a command that follows its options to the front: "buscap --socket S status". */
static void move_command(int argc, char **argv)
{
	for (int at = 2; at < argc; at++) {
		for (size_t i = 0; i < COMMANDS; i++) {
			char *word = argv[at];
			if (strcmp(word, commands[i].usage->name) != 0 ||
				!follows_options(commands[i].usage, at, argv))
				continue;
			memmove(argv + 2, argv + 1, (size_t)(at - 1) * sizeof(*argv));
			argv[1] = word;
			return;
		}
	}
}

static enum bc_exit run_command(const struct bc_console *console, int argc, char **argv)
{
	struct bc_console named = *console;
	struct bc_progress progress = {.err = NULL};

	named.command = argv[0];
	named.progress = &progress;
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(argv[0], commands[i].usage->name) == 0)
			return commands[i].run_command(&named, argc, argv);
	return print_unknown_command(console, argv[0]);
}

/* "help record start" is "record start --help". */
static enum bc_exit run_help(const struct bc_console *console, int argc, char **argv)
{
	char dashes[] = "--help";
	char *words[] = {argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : dashes, dashes, NULL};

	if (argc < 2)
		return bc_print_text(console, print_help, NULL);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
		strcmp(argv[1], "help") == 0)
		return bc_print_help(console, &help_usage);
	return run_command(console, argc > 2 ? 3 : 2, words);
}

enum bc_exit bc_commands_run(const struct bc_console *console, int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return bc_print_text(console, print_help, NULL);
	if (strcmp(name, "help") == 0)
		return run_help(console, argc - 1, argv + 1);
	if (strcmp(name, "--options") == 0)
		return bc_print_text(console, list_options, NULL);
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		return bc_print_text(console, print_version, NULL);
	if (name[0] == '-')
		move_command(argc, argv);
	if (argc >= 2)
		return run_command(console, argc - 1, argv + 1);
	bc_print_error(console, NULL, "no command given; see buscap --help");
	return BC_EXIT_USAGE;
}
