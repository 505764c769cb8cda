/* A line, or a JSON object, for each recording of a directory. */
#ifndef BC_CLI_TRACE_RECORDING_INFO_H
#define BC_CLI_TRACE_RECORDING_INFO_H

#include <stdbool.h>

#include "cli/io/operands.h"
#include "cli/term/output.h"

/* Prints the recordings of an operand that is a directory; as text also the sum of several. Each is
 * printed as soon as its files have been read. Reports files that can't be. */
enum bc_exit bc_recording_info_print(struct bc_output *output, const struct bc_operands *operands,
	const struct bc_operand *operand, bool is_json);

#endif
