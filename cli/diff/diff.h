/* buscap diff: what two traces, of one format or two, have in common and where they part.
 *
 * formats/diff/match.h does the comparing. Here its differences are gathered, one at a time, and
 * handed to what writes them: cli/diff/diff_text.c for a person, cli/diff/diff_json.c for a
 * program. */
#ifndef BC_CLI_DIFF_DIFF_H
#define BC_CLI_DIFF_DIFF_H

#include "cli/term/console.h"

int bc_cmd_diff(const struct bc_console *console, int argc, char **argv);

#endif
