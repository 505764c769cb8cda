/* Searches a trace of any format from its start to its end. */
#ifndef BC_CLI_FIND_FIND_STREAM_H
#define BC_CLI_FIND_FIND_STREAM_H

#include "cli/find/find_state.h"

/* Searches one file, or "-" for the console's input. Prints what it finds, unless only the number
 * is wanted. For the last matches, it reads a file twice. Errors are printed, and set
 * find->exit. */
void bc_find_stream(struct bc_find *find, const char *path);

#endif
