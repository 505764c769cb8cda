/* buscap record delete: a verb that is not a request to the daemon. */
#ifndef BC_CLI_LIVE_RECORD_DELETE_H
#define BC_CLI_LIVE_RECORD_DELETE_H

#include "cli/term/console.h"
#include "formats/base/usage.h"

extern const struct bc_usage bc_record_delete_usage;

enum bc_exit bc_record_delete(const struct bc_console *console, int argc, char **argv);

#endif
