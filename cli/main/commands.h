/* buscap's command line: finds the command and runs it. */
#ifndef BC_CLI_MAIN_COMMANDS_H
#define BC_CLI_MAIN_COMMANDS_H

#include "cli/term/console.h"

/* Runs "buscap ARGUMENT...", for example argv = {"buscap", "info", "--json", "x.byu.lz4"}. Permutes
 * argv. The console has no command. Returns the exit code. */
int bc_commands_run(const struct bc_console *console, int argc, char **argv);

#endif
