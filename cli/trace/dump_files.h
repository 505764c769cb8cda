/* Dumps segments: records are printed like b2a does. */
#ifndef BC_CLI_TRACE_DUMP_FILES_H
#define BC_CLI_TRACE_DUMP_FILES_H

#include "cli/trace/dump_print.h"

/* Prints one file and sets dump->exit. */
void bc_dump_segments(struct bc_dump *dump, struct bc_file *file);

/* ---- Plain files of records or samples (BYU and its dialects, raw6), and bcp1 frames. */

/* Print one file and set dump->exit. */
void bc_dump_plain(struct bc_dump *dump, struct bc_file *file);
void bc_dump_frames(struct bc_dump *dump, struct bc_file *file);

#endif
