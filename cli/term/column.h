/* Cells of the tables that the daemon's lists are printed as: each to its width, two blanks behind
 * it; "-" where nothing is known. Texts are made safe to print. */
#ifndef BC_CLI_TERM_COLUMN_H
#define BC_CLI_TERM_COLUMN_H

#include <jansson.h>

#include "cli/term/output.h"

/* So wide that the longest text of this member in the array fits, up to 128, and `least` at least.
 */
int bc_column_width(const json_t *array, const char *name, int min_width);

/* A text member, to the left. */
void bc_column_text(struct bc_output *output, int width, const json_t *object, const char *name);

/* A number member, to the right, its thousands apart. */
void bc_column_count(struct bc_output *output, int width, const json_t *object, const char *name);

/* A time, as "2026-11-20T09:15:00": whole seconds are enough to look down a column. */
#define BC_COLUMN_TIME 19
void bc_column_time(struct bc_output *output, const json_t *object, const char *name);

#endif
