/* The inputs of a merge: makes them of the files, and finds the input that comes first. */
#ifndef BC_CLI_TRACE_MERGE_INPUTS_H
#define BC_CLI_TRACE_MERGE_INPUTS_H

#include "cli/io/operands.h"
#include "cli/trace/merge_input.h"

/* Zero-initialised: no inputs. */
struct bc_merge_inputs {
	struct bc_merge_input *all;
	size_t count;
};

/* Makes an input of each group of the files, which must outlive them. Opens nothing. Returns false
 * if out of memory. Close the inputs in either case. */
bool bc_merge_inputs_make(struct bc_merge_inputs *inputs, const struct bc_console *console,
	const struct bc_files *files, uint64_t clock_hz);
void bc_merge_inputs_close(struct bc_merge_inputs *inputs);

/* Returns true if there are several inputs, and each is a different recording in segments. The
 * inputs must be open. */
bool bc_merge_inputs_are_recordings(const struct bc_merge_inputs *inputs);

/* Returns true if the first entry of each input had a time of day. Otherwise prints an error. Call
 * it after bc_merge_input_peek() of each. */
bool bc_merge_inputs_have_clocks(const struct bc_merge_inputs *inputs);

/* Returns the index of the input that comes first, and in *rival that of the second; `count` if
 * there is none. */
size_t bc_merge_inputs_first(const struct bc_merge_inputs *inputs, size_t *rival);

/* Returns true if `first` still comes before `rival`. */
bool bc_merge_inputs_stays_first(const struct bc_merge_inputs *inputs, size_t first, size_t rival);

#endif
