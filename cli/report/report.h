/* buscap report. */
#ifndef BC_CLI_REPORT_REPORT_H
#define BC_CLI_REPORT_REPORT_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_report_usage;

int bc_cmd_report(const struct bc_console *console, int argc, char **argv);

#endif
