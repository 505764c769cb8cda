/* The commands that send one request to the daemon and print the response. */
#ifndef BC_CLI_CLIENT_DAEMON_COMMAND_H
#define BC_CLI_CLIENT_DAEMON_COMMAND_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_record_usage;
extern const struct bc_usage bc_rotate_usage;
extern const struct bc_usage bc_mark_usage;
extern const struct bc_usage bc_snapshot_usage;
extern const struct bc_usage bc_trigger_usage;

/* Runs the command named by argv[0]. */
int bc_cmd_daemon(const struct bc_console *console, int argc, char **argv);

#endif
