/* buscap dump: prints traces as text.
 *
 * Samples are printed as in the specification of their format, records like b2a. Gaps, marks and
 * triggers are printed between them on lines that start with "# ". */
#ifndef BC_CLI_TRACE_DUMP_H
#define BC_CLI_TRACE_DUMP_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_dump_usage;

int bc_cmd_dump(const struct bc_console *console, int argc, char **argv);

#endif
