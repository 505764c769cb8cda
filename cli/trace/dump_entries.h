/* Dumps files of all formats other than segments and bus formats, in their own text form. */
#ifndef BC_CLI_TRACE_DUMP_ENTRIES_H
#define BC_CLI_TRACE_DUMP_ENTRIES_H

#include "cli/trace/dump_print.h"

/* Prints one file and sets dump->exit. */
void bc_dump_entries(struct bc_dump *dump, struct bc_file *file);

#endif
