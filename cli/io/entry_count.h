/* Counts the entries of a trace by kind, for `buscap info` and `buscap verify`. */
#ifndef BC_CLI_IO_ENTRY_COUNT_H
#define BC_CLI_IO_ENTRY_COUNT_H

#include <stdint.h>

#include "cli/io/file.h"
#include "formats/base/options.h"
#include "formats/trace/entry.h"
#include "formats/trace/parser.h"

struct bc_kind_counts {
	uint64_t kinds[BC_ENTRY_KINDS];
	uint64_t faults;             /* malformed or torn entries; each was reported */
	struct bc_parse_notes notes; /* each was reported too */
};

/* Reads an open file to its end. Returns BC_EXIT_OK; BC_EXIT_DAMAGED if there were faults, with the
 * intact entries counted; or prints an error and returns BC_EXIT_FAILED. */
enum bc_exit bc_count_entries(struct bc_kind_counts *counts, const struct bc_console *console,
	struct bc_file *file, const struct bc_format_options *format);

#endif
