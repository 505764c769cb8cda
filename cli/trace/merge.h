/* buscap merge: combines several traces into one, ordered by time. */
#ifndef BC_CLI_TRACE_MERGE_H
#define BC_CLI_TRACE_MERGE_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_merge_usage;

int bc_cmd_merge(const struct bc_console *console, int argc, char **argv);

#endif
