/* buscap stats: prints statistics of traces. docs/stats.md defines them. */
#ifndef BC_CLI_STATS_STATS_H
#define BC_CLI_STATS_STATS_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_stats_usage;

/* Returns the exit code (enum bc_exit). */
int bc_cmd_stats(const struct bc_console *console, int argc, char **argv);

#endif
