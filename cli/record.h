/* buscap record: recordings on request. */
#ifndef BC_CLI_RECORD_H
#define BC_CLI_RECORD_H

#include "cli/console.h"
#include "formats/usage.h"

extern const struct bc_usage bc_record_usage;

int bc_cmd_record(const struct bc_console *console, int argc, char **argv);

#endif
