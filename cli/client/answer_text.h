/* What the daemon's answers are printed as (docs/api.md): marks, recordings, triggers, replays.
 * Members that are missing or of another type are left out.
 *
 * Each function returns false, having printed nothing, when the answer isn't what it should be. */
#ifndef BC_CLI_CLIENT_ANSWER_TEXT_H
#define BC_CLI_CLIENT_ANSWER_TEXT_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/term/output.h"

bool bc_answer_print_mark(struct bc_output *output, const json_t *answer);
bool bc_answer_print_rotated(struct bc_output *output, const json_t *answer);
bool bc_answer_print_recording(struct bc_output *output, const json_t *answer);
bool bc_answer_print_recordings(struct bc_output *output, const json_t *answer);
bool bc_answer_print_triggers(struct bc_output *output, const json_t *answer);
bool bc_answer_print_replays(struct bc_output *output, const json_t *answer);

#endif
