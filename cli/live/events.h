/* Prints an event of the daemon (docs/api.md) as a line of text. */
#ifndef BC_CLI_LIVE_EVENTS_H
#define BC_CLI_LIVE_EVENTS_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/term/output.h"

/* Prints an event; an unknown one as JSON. Returns false, having printed nothing, if the object is
 * not an event: it has no name. */
bool bc_event_print(struct bc_output *output, const json_t *event);

#endif
