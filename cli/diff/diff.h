/* buscap diff: compares two traces, of one or two formats.
 *
 * formats/diff/match.h finds the differences. diff.c collects them, one at a time, and passes them
 * to cli/diff/diff_text.c or cli/diff/diff_json.c for printing. */
#ifndef BC_CLI_DIFF_DIFF_H
#define BC_CLI_DIFF_DIFF_H

#include "cli/term/console.h"

int bc_cmd_diff(const struct bc_console *console, int argc, char **argv);

#endif
