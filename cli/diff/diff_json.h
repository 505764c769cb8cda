/* Differences as JSON objects, one a line: docs/diff.md. */
#ifndef BC_CLI_DIFF_DIFF_JSON_H
#define BC_CLI_DIFF_DIFF_JSON_H

#include "cli/diff/diff_state.h"

/* Write the difference at hand, and what it all came to. Return false when memory ran out. */
bool bc_diff_json_difference(struct bc_diff *diff);
bool bc_diff_json_summary(struct bc_diff *diff, bool is_whole);

#endif
