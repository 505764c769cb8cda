/* buscap top: shows the daemon and the bus in a terminal (docs/top.md). */
#ifndef BC_CLI_TOP_TOP_H
#define BC_CLI_TOP_TOP_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_top_usage;

/* Returns enum bc_exit. */
int bc_cmd_top(const struct bc_console *console, int argc, char **argv);

#endif
