/* Prints the daemon's responses (docs/api.md) as text: marks, recordings, triggers.
 * Members that are missing or of another type are omitted.
 *
 * If the response lacks its main member, the functions print nothing and return false. */
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

/* Returns why a recording ended: "limit reached" for "limit". Unknown reasons are returned as they
 * are. */
const char *bc_recording_reason_text(const char *reason);

#endif
