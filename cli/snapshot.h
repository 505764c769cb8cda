/* buscap snapshot: what the flight recorder holds becomes a recording. */
#ifndef BC_CLI_SNAPSHOT_H
#define BC_CLI_SNAPSHOT_H

#include "cli/console.h"
#include "formats/usage.h"

extern const struct bc_usage bc_snapshot_usage;

int bc_cmd_snapshot(const struct bc_console *console, int argc, char **argv);

#endif
