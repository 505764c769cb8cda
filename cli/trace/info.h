/* buscap info: prints the format and the contents of files. */
#ifndef BC_CLI_TRACE_INFO_H
#define BC_CLI_TRACE_INFO_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_info_usage;

int bc_cmd_info(const struct bc_console *console, int argc, char **argv);

#endif
