/* buscap mark: a mark at this place of the recording. */
#ifndef BC_CLI_MARK_H
#define BC_CLI_MARK_H

#include "cli/console.h"
#include "formats/usage.h"

extern const struct bc_usage bc_mark_usage;

int bc_cmd_mark(const struct bc_console *console, int argc, char **argv);

#endif
