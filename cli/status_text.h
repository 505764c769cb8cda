/* The daemon's status object (docs/api.md) as a page that a person reads at a glance. */
#ifndef BC_CLI_STATUS_TEXT_H
#define BC_CLI_STATUS_TEXT_H

#include <cjson/cJSON.h>

#include "cli/output.h"

/* Prints it; what it lacks or has of another type than it should is left out. `line_end` is put at
 * the end of each line, before the newline: "" or what clears the rest of a terminal's line. */
void bc_status_print(struct bc_output *output, const cJSON *status, const char *line_end);

#endif
