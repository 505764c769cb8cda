/* Prints differences as text. */
#ifndef BC_CLI_DIFF_DIFF_PRINT_H
#define BC_CLI_DIFF_DIFF_PRINT_H

#include "cli/diff/diff_state.h"

/* Print the names of the traces; the current difference, which must be complete; a matching entry
 * after it; what the other side's selection left out; the summary. */
void bc_diff_text_start(struct bc_diff *diff);
void bc_diff_text_difference(struct bc_diff *diff);
void bc_diff_text_context(struct bc_diff *diff, const struct bc_diff_line *line);
void bc_diff_text_filtered(
	struct bc_diff *diff, const struct bc_diff_side *side, const struct bc_diff_side *other);
void bc_diff_text_summary(struct bc_diff *diff, bool is_whole);

/* ---- JSON objects, one per line: docs/diff.md. */

/* Print the current difference, what the other side's selection left out, and the summary. Return
 * false if out of memory. */
bool bc_diff_json_difference(struct bc_diff *diff);
bool bc_diff_json_filtered(
	struct bc_diff *diff, const struct bc_diff_side *side, const struct bc_diff_side *other);
bool bc_diff_json_summary(struct bc_diff *diff, bool is_whole);

#endif
