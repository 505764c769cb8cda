/* Reports the faults that a reader found (malformed, torn, missing): the first 10 of a file
 * individually, then the number of the others. */
#ifndef BC_CLI_IO_FAULT_H
#define BC_CLI_IO_FAULT_H

#include <stdint.h>

#include "cli/term/console.h"
#include "formats/reader/reader.h"
#include "formats/trace/parser.h"

/* Prints a fault, unless `reported`, the number of previous faults of the file, has reached the
 * limit. */
void bc_print_fault(const struct bc_console *console, const char *file,
	const struct bc_fault *fault, uint64_t reported);

/* At the end of the file: prints what its format's parser left out or decided. */
void bc_print_notes(
	const struct bc_console *console, const char *file, const struct bc_parse_notes *notes);

/* At the end of the file: prints how many of its `faults` were not printed, if any. */
void bc_print_faults_left(const struct bc_console *console, const char *file, uint64_t faults);

#endif
