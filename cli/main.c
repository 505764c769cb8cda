/* buscap, the hand tool: a table of commands. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/console.h"
#include "cli/convert.h"
#include "cli/cut.h"
#include "cli/diff.h"
#include "cli/dump.h"
#include "cli/formats.h"
#include "cli/info.h"
#include "cli/merge.h"
#include "cli/recover.h"
#include "cli/sim.h"
#include "cli/stats.h"
#include "cli/verify.h"

static const struct {
	const char *name;
	const char *summary;
	int (*run)(const struct bc_console *console, int argc, char **argv);
} commands[] = {
	{"info", "say what a file is", bc_cmd_info},
	{"dump", "print a trace as text", bc_cmd_dump},
	{"convert", "write a trace in another format", bc_cmd_convert},
	{"stats", "summarise a trace: totals, mix, footprint, reuse, time", bc_cmd_stats},
	{"cut", "write the part of a trace that is wanted", bc_cmd_cut},
	{"merge", "write several traces as one, by time", bc_cmd_merge},
	{"diff", "compare two traces", bc_cmd_diff},
	{"verify", "check that files are whole", bc_cmd_verify},
	{"recover", "make a whole segment out of a torn or damaged one", bc_cmd_recover},
	{"formats", "list the formats of traces", bc_cmd_formats},
	{"sim", "write the stream of a simulated bus", bc_cmd_sim},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* Says what of standard output could not be written. */
static int end_output(void)
{
	if (fflush(stdout) == 0 || errno == EPIPE)
		return BC_EXIT_OK;
	fprintf(stderr, "buscap: can't write the output: %s; it is cut off\n", strerror(errno));
	return BC_EXIT_FAILED;
}

static int print_help(void)
{
	printf("usage: buscap COMMAND [OPTION]... [FILE]...\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  %-9s %s\n", commands[i].name, commands[i].summary);
	printf("\nbuscap COMMAND --help tells more; buscap --version the version.\n");
	return end_output();
}

int main(int argc, char **argv)
{
	struct bc_console console = {.in = STDIN_FILENO, .out = STDOUT_FILENO, .err = stderr};
	const char *name = argc > 1 ? argv[1] : "";

	signal(SIGPIPE, SIG_IGN); /* a write then says EPIPE */
	signal(SIGXFSZ, SIG_IGN); /* and EFBIG */
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
		return print_help();
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		printf("buscap %s\n", BC_VERSION);
		return end_output();
	}
	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(name, commands[i].name) != 0)
			continue;
		console.command = name;
		return commands[i].run(&console, argc - 1, argv + 1);
	}
	if (argc < 2)
		fprintf(stderr, "buscap: no command is given; see buscap --help\n");
	else
		fprintf(stderr, "buscap: there is no command %s; see buscap --help\n", name);
	return BC_EXIT_USAGE;
}
