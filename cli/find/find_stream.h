/* Searches a trace of any format from its start to its end. */
#ifndef BC_CLI_FIND_FIND_STREAM_H
#define BC_CLI_FIND_FIND_STREAM_H

#include "cli/find/find_state.h"

/* Searches a file, or the console's input ("-"). Counts the matches in find->matches and, unless
 * find->options.is_count, prints them. Reads the file twice if find->options.last is set. Prints
 * errors and records them in find->exit. */
void bc_find_stream(struct bc_find *find, const char *path);

#endif
