/* An event of the daemon (docs/api.md) as a line that a person reads. */
#ifndef BC_CLI_CLIENT_EVENT_TEXT_H
#define BC_CLI_CLIENT_EVENT_TEXT_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/term/output.h"

/* Prints it. Returns false when it has no name and so is no event. One that isn't known is printed
 * as its JSON. */
bool bc_event_print(struct bc_output *output, const json_t *event);

#endif
