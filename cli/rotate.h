/* buscap rotate: a new segment. */
#ifndef BC_CLI_ROTATE_H
#define BC_CLI_ROTATE_H

#include "cli/console.h"
#include "formats/usage.h"

extern const struct bc_usage bc_rotate_usage;

int bc_cmd_rotate(const struct bc_console *console, int argc, char **argv);

#endif
