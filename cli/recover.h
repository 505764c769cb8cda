/* buscap recover: a whole, sealed segment out of a torn or damaged one. */
#ifndef BC_CLI_RECOVER_H
#define BC_CLI_RECOVER_H

#include "cli/console.h"

int bc_cmd_recover(const struct bc_console *console, int argc, char **argv);

#endif
