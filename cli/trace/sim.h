/* buscap sim: writes the stream of the simulated bus, as the board sends it or converted. */
#ifndef BC_CLI_TRACE_SIM_H
#define BC_CLI_TRACE_SIM_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_sim_usage;

int bc_cmd_sim(const struct bc_console *console, int argc, char **argv);

#endif
