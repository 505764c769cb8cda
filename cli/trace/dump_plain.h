/* Dumps plain files of records or samples (BYU and its dialects, raw6), and bcp1 frames. */
#ifndef BC_CLI_TRACE_DUMP_PLAIN_H
#define BC_CLI_TRACE_DUMP_PLAIN_H

#include "cli/trace/dump_print.h"

/* Print one file and set dump->exit. */
void bc_dump_plain(struct bc_dump *dump, struct bc_file *file);
void bc_dump_frames(struct bc_dump *dump, struct bc_file *file);

#endif
