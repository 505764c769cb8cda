/* buscap status: prints the status of the daemon. */
#ifndef BC_CLI_CLIENT_STATUS_H
#define BC_CLI_CLIENT_STATUS_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_status_usage;

int bc_cmd_status(const struct bc_console *console, int argc, char **argv);

#endif
