/* Prints the daemon's responses and events (docs/api.md) as text. Members that are missing or of
 * another type are omitted. bc_response_print_...() returns false without the main member. */
#ifndef BC_CLI_LIVE_RESPONSE_TEXT_H
#define BC_CLI_LIVE_RESPONSE_TEXT_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/term/output.h"

bool bc_response_print_mark(struct bc_output *output, const json_t *response);
bool bc_response_print_rotated(struct bc_output *output, const json_t *response);
bool bc_response_print_recording(struct bc_output *output, const json_t *response);
bool bc_response_print_recordings(struct bc_output *output, const json_t *response);
bool bc_response_print_triggers(struct bc_output *output, const json_t *response);

/* Prints what was lost in a gap, and why: "17 samples lost (board)". */
void bc_gap_print(struct bc_output *output, const json_t *gap);

/* When what is wrong began, in seconds since 1970, or 0: kept for the event at its end. */
struct bc_event_times {
	double began[4];
};

/* Prints an event as a line; an unknown one as JSON. Returns false, having printed nothing, if the
 * object is not an event: it has no name. */
bool bc_event_print(struct bc_output *output, const json_t *event, struct bc_event_times *times);

#endif
