/* buscap find. */
#ifndef BC_CLI_FIND_FIND_H
#define BC_CLI_FIND_FIND_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_find_usage;

int bc_cmd_find(const struct bc_console *console, int argc, char **argv);

#endif
