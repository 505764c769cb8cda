/* buscap cut: writes a selected part of a trace. docs/cut-merge.md describes the selection. */
#ifndef BC_CLI_TRACE_CUT_H
#define BC_CLI_TRACE_CUT_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_cut_usage;

int bc_cmd_cut(const struct bc_console *console, int argc, char **argv);

#endif
