/* A recording, as the daemon tells of it (docs/api.md), as text. Members that are missing or of
 * another type than they should be are left out. */
#ifndef BC_CLI_RECORDING_TEXT_H
#define BC_CLI_RECORDING_TEXT_H

#include <cjson/cJSON.h>
#include <stdint.h>

#include "cli/ask.h"
#include "cli/output.h"

/* Several lines, with all that is known. */
void bc_recording_print(struct bc_output *output, const cJSON *recording);

/* Its metadata, a line for each. */
void bc_recording_print_notes(struct bc_output *output, const cJSON *recording);

/* A table of several, an array; so many older ones are left out of it. */
void bc_recordings_print(struct bc_output *output, const cJSON *recordings, uint64_t left_out);

/* Prints the recording that is a member of an answer, or with is_json the answer as it came. */
enum bc_exit bc_recording_print_answer(
	const struct bc_console *console, const struct bc_answer *answer, bool is_json);

#endif
