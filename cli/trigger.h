/* buscap trigger: what is waited for on the bus, and what is done then. */
#ifndef BC_CLI_TRIGGER_H
#define BC_CLI_TRIGGER_H

#include "cli/console.h"
#include "formats/usage.h"

extern const struct bc_usage bc_trigger_usage;

int bc_cmd_trigger(const struct bc_console *console, int argc, char **argv);

#endif
