/* Dumps segments: records are printed like b2a does. */
#ifndef BC_CLI_TRACE_DUMP_SEGMENTS_H
#define BC_CLI_TRACE_DUMP_SEGMENTS_H

#include "cli/trace/dump_print.h"

/* Prints one file and sets dump->exit. */
void bc_dump_segments(struct bc_dump *dump, struct bc_file *file);

#endif
