/* buscap convert: converts a trace to another format. */
#ifndef BC_CLI_TRACE_CONVERT_H
#define BC_CLI_TRACE_CONVERT_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_convert_usage;

int bc_cmd_convert(const struct bc_console *console, int argc, char **argv);

#endif
