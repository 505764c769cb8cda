/* buscap replay: a file through the running daemon. */
#ifndef BC_CLI_REPLAY_H
#define BC_CLI_REPLAY_H

#include "cli/console.h"
#include "formats/usage.h"

extern const struct bc_usage bc_replay_usage;

int bc_cmd_replay(const struct bc_console *console, int argc, char **argv);

#endif
