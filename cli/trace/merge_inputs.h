/* The row of a merge's inputs: made of the paths, and which of them comes first. */
#ifndef BC_CLI_TRACE_MERGE_INPUTS_H
#define BC_CLI_TRACE_MERGE_INPUTS_H

#include "cli/trace/merge_input.h"

/* All zero: there are none. */
struct bc_merge_inputs {
	struct bc_merge_input *all;
	size_t count;
	const char **paths; /* of all of them, those of one together */
};

/* Makes the inputs of the paths: the segments of one recording, by their names, become neighbours
 * in `paths`, and one input. None is opened. Returns false when memory ran out; close them in any
 * case. */
bool bc_merge_inputs_make(struct bc_merge_inputs *inputs, const struct bc_console *console,
	const char **paths, int count, uint64_t clock_hz);
void bc_merge_inputs_close(struct bc_merge_inputs *inputs);

/* Whether there are several, all of them open, and segments of as many recordings. */
bool bc_merge_inputs_are_recordings(const struct bc_merge_inputs *inputs);

/* Whether the first entry of each had a time of day, once it was looked at. Complains of one that
 * had none. */
bool bc_merge_inputs_have_clocks(const struct bc_merge_inputs *inputs);

/* The input whose entry comes first, and the one that would be first without it; each is `count`
 * when there is none. */
size_t bc_merge_inputs_first(const struct bc_merge_inputs *inputs, size_t *rival);

/* Whether the input is still the first of both. */
bool bc_merge_inputs_stays_first(const struct bc_merge_inputs *inputs, size_t first, size_t rival);

#endif
