/* Tells what a reader found malformed, torn or missing: the first few of a file one by one, the
 * rest by their number. */
#ifndef BC_CLI_IO_FAULT_H
#define BC_CLI_IO_FAULT_H

#include <stdint.h>

#include "cli/term/console.h"
#include "formats/reader/reader.h"

/* `told`: how many of this file there were before it. */
void bc_print_fault(const struct bc_console *console, const char *file,
	const struct bc_fault *fault, uint64_t reported);

/* At the file's end: how many there were that were not told. */
void bc_print_faults_left(const struct bc_console *console, const char *file, uint64_t faults);

#endif
