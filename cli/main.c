/* buscap, the command-line tool: a table of commands. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/client/daemon_command.h"
#include "cli/client/events.h"
#include "cli/client/status.h"
#include "cli/client/tail.h"
#include "cli/diff/diff.h"
#include "cli/diff/diff_options.h"
#include "cli/find/find.h"
#include "cli/find/marks.h"
#include "cli/report/report.h"
#include "cli/stats/stats.h"
#include "cli/term/console.h"
#include "cli/term/safe_text.h"
#include "cli/top/top.h"
#include "cli/trace/archive.h"
#include "cli/trace/convert.h"
#include "cli/trace/cut.h"
#include "cli/trace/dump.h"
#include "cli/trace/formats.h"
#include "cli/trace/info.h"
#include "cli/trace/merge.h"
#include "cli/trace/recover.h"
#include "cli/trace/sim.h"
#include "cli/trace/verify.h"
#include "cli/web/web.h"

static const struct {
	const struct bc_usage *usage;
	int (*run_command)(const struct bc_console *console, int argc, char **argv);
} commands[] = {
	{&bc_info_usage, bc_cmd_info},
	{&bc_dump_usage, bc_cmd_dump},
	{&bc_convert_usage, bc_cmd_convert},
	{&bc_stats_usage, bc_cmd_stats},
	{&bc_find_usage, bc_cmd_find},
	{&bc_marks_usage, bc_cmd_marks},
	{&bc_report_usage, bc_cmd_report},
	{&bc_cut_usage, bc_cmd_cut},
	{&bc_merge_usage, bc_cmd_merge},
	{&bc_diff_usage, bc_cmd_diff},
	{&bc_verify_usage, bc_cmd_verify},
	{&bc_archive_usage, bc_cmd_archive},
	{&bc_recover_usage, bc_cmd_recover},
	{&bc_formats_usage, bc_cmd_formats},
	{&bc_sim_usage, bc_cmd_sim},
	{&bc_status_usage, bc_cmd_status},
	{&bc_top_usage, bc_cmd_top},
	{&bc_web_usage, bc_cmd_web},
	{&bc_record_usage, bc_cmd_daemon},
	{&bc_rotate_usage, bc_cmd_daemon},
	{&bc_mark_usage, bc_cmd_daemon},
	{&bc_snapshot_usage, bc_cmd_daemon},
	{&bc_trigger_usage, bc_cmd_daemon},
	{&bc_replay_usage, bc_cmd_daemon},
	{&bc_tail_usage, bc_cmd_tail},
	{&bc_events_usage, bc_cmd_events},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* Longer words are not compared with the command names. */
#define NAME_MAX_BYTES 15u

enum { OPTION_OPTIONS = 1000 };

/* Flushes stdout and reports a write error. A closed pipe is not an error. */
static int finish_output(void)
{
	if (fflush(stdout) == 0 || errno == EPIPE)
		return BC_EXIT_OK;
	fprintf(stderr, "buscap: write error: %s; the output is incomplete\n", strerror(errno));
	return BC_EXIT_FAILED;
}

static const struct bc_usage_option options[] = {
	{'V', "version", NULL, NULL, "print the version"},
	{OPTION_OPTIONS, "options", NULL, NULL,
		"list the options of all commands, one per line, for scripts"},
	{0},
};

static const struct bc_usage help_usage = {
	.name = "help",
	.operands = "[COMMAND [VERB]]",
	.kind = "command",
	.summary = "show the help of a command",
	.exits = "0 ok, 2 no such command.",
	.example = "buscap help record start",
};

static const struct bc_usage usage = {
	.operands = "COMMAND",
	.kind = "command",
	.summary = "read, check and convert bus traces; control buscapd",
	.options = options,
};

static int print_help(void)
{
	printf("usage: buscap COMMAND [OPTION]... [FILE]...\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  %-9s %s\n", commands[i].usage->name, commands[i].usage->summary);
	putchar('\n');
	bc_usage_print_options(stdout, options);
	printf("\nRun buscap COMMAND --help or buscap help COMMAND for details.\n"
	       "\n"
	       "Example: buscap info *.byu.lz4\n");
	return finish_output();
}

static int list_options(void)
{
	bc_usage_list(stdout, &usage);
	for (size_t i = 0; i < COMMANDS; i++)
		bc_usage_list(stdout, commands[i].usage);
	bc_usage_list(stdout, &help_usage);
	return finish_output();
}

/* The Levenshtein distance of two names: the number of letters to insert, delete or replace. Only
 * one row of the table is kept. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t row[NAME_MAX_BYTES + 1];
	size_t n = strlen(b);

	if (n > NAME_MAX_BYTES)
		return SIZE_MAX;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 0; a[i] != '\0'; i++) {
		size_t corner = row[0];
		row[0] = i + 1;
		for (size_t j = 0; j < n; j++) {
			size_t best = corner + (a[i] != b[j]);
			best = row[j] + 1 < best ? row[j] + 1 : best;
			best = row[j + 1] + 1 < best ? row[j + 1] + 1 : best;
			corner = row[j + 1];
			row[j + 1] = best;
		}
	}
	return row[n];
}

/* Returns the command most similar to `name`, or NULL if none is similar. */
static const char *find_nearest(const char *name)
{
	const char *nearest = NULL;
	size_t best = 3;

	for (size_t i = 0; i < COMMANDS; i++) {
		const char *candidate = commands[i].usage->name;
		bool is_prefix = name[0] != '\0' && strncmp(name, candidate, strlen(name)) == 0;
		size_t edits = is_prefix ? 0 : edit_distance(candidate, name);
		/* Not similar: half of the letters differ, and the first one does too. */
		if (edits >= best || (2 * edits >= strlen(name) && name[0] != candidate[0]))
			continue;
		best = edits;
		nearest = candidate;
	}
	return nearest;
}

static int print_unknown_command(const char *name)
{
	const char *nearest = find_nearest(name);
	char safe[200];

	bc_safe_text(safe, sizeof(safe), name);
	if (name[0] == '-')
		fprintf(stderr, "buscap: unknown option %s; see buscap --help\n", safe);
	else if (nearest != NULL)
		fprintf(stderr, "buscap: no such command: %s; did you mean %s? See buscap --help\n",
			safe, nearest);
	else
		fprintf(stderr, "buscap: no such command: %s; see buscap --help\n", safe);
	return BC_EXIT_USAGE;
}

/* Whether the words before argv[at], a command's name, are options of this command or of one of its
 * verbs. */
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

static int run_command(int argc, char **argv)
{
	struct bc_console console = {
		.in = STDIN_FILENO, .out = STDOUT_FILENO, .err = stderr, .command = argv[0]};

	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(argv[0], commands[i].usage->name) == 0)
			return commands[i].run_command(&console, argc, argv);
	return print_unknown_command(argv[0]);
}

/* "help record start" is "record start --help". */
static int run_help(int argc, char **argv)
{
	char dashes[] = "--help";
	char *words[] = {argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : dashes, dashes, NULL};

	if (argc < 2)
		return print_help();
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
		strcmp(argv[1], "help") == 0) {
		bc_usage_help(stdout, "buscap", &help_usage);
		return finish_output();
	}
	return run_command(argc > 2 ? 3 : 2, words);
}

/* Opens /dev/null for each standard stream that is closed, in the wrong direction so that using it
 * fails. Otherwise a socket or file opened later would get its descriptor. */
static void fill_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	fill_streams();
	signal(SIGPIPE, SIG_IGN); /* writes return EPIPE instead */
	signal(SIGXFSZ, SIG_IGN); /* writes return EFBIG instead */
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return print_help();
	if (strcmp(name, "help") == 0)
		return run_help(argc - 1, argv + 1);
	if (strcmp(name, "--options") == 0)
		return list_options();
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		printf("buscap %s\n", BC_VERSION);
		return finish_output();
	}
	if (name[0] == '-')
		move_command(argc, argv);
	if (argc >= 2)
		return run_command(argc - 1, argv + 1);
	fprintf(stderr, "buscap: no command given; see buscap --help\n");
	return BC_EXIT_USAGE;
}
