/* A replay, as the daemon tells of it (docs/api.md), as text. */
#ifndef BC_CLI_REPLAY_TEXT_H
#define BC_CLI_REPLAY_TEXT_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "cli/ask.h"

/* Prints the replay, or the table of replays, that an answer has; with is_json the answer as it
 * came. */
enum bc_exit bc_replay_print_answer(
	const struct bc_console *console, const struct bc_answer *answer, bool is_json);

/* What went wrong with it, safe to print; empty if it doesn't say. */
void bc_replay_error(const cJSON *replay, char *out, size_t room);

#endif
