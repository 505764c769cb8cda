/* buscap merge: several traces as one, by time. */
#ifndef BC_CLI_MERGE_H
#define BC_CLI_MERGE_H

#include "cli/console.h"

int bc_cmd_merge(const struct bc_console *console, int argc, char **argv);

#endif
