/* buscap marks. */
#ifndef BC_CLI_FIND_MARKS_H
#define BC_CLI_FIND_MARKS_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_marks_usage;

int bc_cmd_marks(const struct bc_console *console, int argc, char **argv);

#endif
