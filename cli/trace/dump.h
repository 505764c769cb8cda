/* buscap dump: traces as text.
 *
 * Samples are printed as the document of their format does, records as b2a does; what the formats
 * do not hold (gaps, marks, triggers) stands between them on lines that begin with "# ". */
#ifndef BC_CLI_TRACE_DUMP_H
#define BC_CLI_TRACE_DUMP_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_dump_usage;

int bc_cmd_dump(const struct bc_console *console, int argc, char **argv);

#endif
