/* buscap archive: makes sealed segments smaller. */
#ifndef BC_CLI_TRACE_ARCHIVE_H
#define BC_CLI_TRACE_ARCHIVE_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_archive_usage;

int bc_cmd_archive(const struct bc_console *console, int argc, char **argv);

#endif
