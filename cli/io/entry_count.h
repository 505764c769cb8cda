/* Counts what is in a trace, by kind of entry: for those who say what a file is and whether it is
 * whole. */
#ifndef BC_CLI_IO_ENTRY_COUNT_H
#define BC_CLI_IO_ENTRY_COUNT_H

#include <stdint.h>

#include "cli/io/file.h"
#include "formats/base/options.h"
#include "formats/trace/entry.h"

struct bc_entry_counts {
	uint64_t kinds[BC_ENTRY_KINDS];
	uint64_t faults; /* what is malformed or torn: each has been told */
};

/* Reads an open file, whose format has these options, to its end. Returns BC_EXIT_OK;
 * BC_EXIT_DAMAGED with what was good counted; or BC_EXIT_FAILED after a complaint. */
enum bc_exit bc_count_entries(struct bc_entry_counts *counts, const struct bc_console *console,
	struct bc_file *file, const struct bc_format_options *format);

#endif
