/* How the commands that search segments open files, and print what is wrong with them. */
#ifndef BC_CLI_IO_SEGMENT_INPUT_H
#define BC_CLI_IO_SEGMENT_INPUT_H

#include "cli/io/operands.h"
#include "formats/recording/segments.h"

struct bc_segment_input {
	struct bc_operands operands; /* that named the files */
	enum bc_exit exit;           /* made worse by what is printed */
};

/* Returns functions that open segment files and print faults. Their context is `input`, which may
 * be the first member of the caller's state. */
struct bc_segment_io bc_segment_input_io(struct bc_segment_input *input);

#endif
