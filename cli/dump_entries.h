/* Dumps files of other formats, as their own text. */
#ifndef BC_CLI_DUMP_ENTRIES_H
#define BC_CLI_DUMP_ENTRIES_H

#include "cli/dump_print.h"

/* Prints one file, and sets dump->exit. */
void bc_dump_entries(struct bc_dump *dump, struct bc_file *file);

#endif
