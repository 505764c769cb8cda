/* buscap tail: live records. */
#ifndef BC_CLI_TAIL_H
#define BC_CLI_TAIL_H

#include "cli/console.h"
#include "formats/usage.h"

extern const struct bc_usage bc_tail_usage;

int bc_cmd_tail(const struct bc_console *console, int argc, char **argv);

#endif
