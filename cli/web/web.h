/* buscap web. */
#ifndef BC_CLI_WEB_WEB_H
#define BC_CLI_WEB_WEB_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_web_usage;

int bc_cmd_web(const struct bc_console *console, int argc, char **argv);

#endif
