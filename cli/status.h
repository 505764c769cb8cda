/* buscap status: how things stand. */
#ifndef BC_CLI_STATUS_H
#define BC_CLI_STATUS_H

#include "cli/console.h"
#include "formats/usage.h"

extern const struct bc_usage bc_status_usage;

int bc_cmd_status(const struct bc_console *console, int argc, char **argv);

#endif
