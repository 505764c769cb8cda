/* buscap recover: writes a whole, sealed segment from a torn or damaged one. */
#ifndef BC_CLI_TRACE_RECOVER_H
#define BC_CLI_TRACE_RECOVER_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_recover_usage;

int bc_cmd_recover(const struct bc_console *console, int argc, char **argv);

#endif
