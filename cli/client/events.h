/* buscap events: prints events of the daemon as they happen. */
#ifndef BC_CLI_CLIENT_EVENTS_H
#define BC_CLI_CLIENT_EVENTS_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_events_usage;

int bc_cmd_events(const struct bc_console *console, int argc, char **argv);

#endif
