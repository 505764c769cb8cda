/* Prints differences as JSON objects, one per line: docs/diff.md. */
#ifndef BC_CLI_DIFF_DIFF_JSON_H
#define BC_CLI_DIFF_DIFF_JSON_H

#include "cli/diff/diff_state.h"

/* Print the current difference, what the other side's selection left out, and the summary. Return
 * false if out of memory. */
bool bc_diff_json_difference(struct bc_diff *diff);
bool bc_diff_json_filtered(
	struct bc_diff *diff, const struct bc_diff_side *side, const struct bc_diff_side *other);
bool bc_diff_json_summary(struct bc_diff *diff, bool is_whole);

#endif
