/* buscap formats: lists the formats and the losses of each conversion. */
#ifndef BC_CLI_TRACE_FORMATS_H
#define BC_CLI_TRACE_FORMATS_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_formats_usage;

int bc_cmd_formats(const struct bc_console *console, int argc, char **argv);

#endif
