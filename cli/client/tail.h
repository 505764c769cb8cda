/* buscap tail: prints live records. */
#ifndef BC_CLI_CLIENT_TAIL_H
#define BC_CLI_CLIENT_TAIL_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_tail_usage;

int bc_cmd_tail(const struct bc_console *console, int argc, char **argv);

#endif
