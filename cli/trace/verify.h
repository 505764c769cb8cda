/* buscap verify: checks files: every checksum, the index against the chunks, the ticks, and that no
 * chunk or record is missing. */
#ifndef BC_CLI_TRACE_VERIFY_H
#define BC_CLI_TRACE_VERIFY_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_verify_usage;

int bc_cmd_verify(const struct bc_console *console, int argc, char **argv);

#endif
