/* Searches segments. Their index says which chunks can contain a match, and only these are read: in
 * order, or from the end for the last matches. */
#ifndef BC_CLI_FIND_FIND_SEGMENTS_H
#define BC_CLI_FIND_FIND_SEGMENTS_H

#include "cli/find/find_state.h"

/* Searches the files in the order given. Counts the matches in find->matches and, unless
 * find->options.is_count, prints them. Prints errors and records them in find->exit. */
void bc_find_segments(struct bc_find *find, char *const *paths, int count);

#endif
