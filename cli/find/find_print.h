/* Prints what a search finds: a line of text or a JSON object per entry. */
#ifndef BC_CLI_FIND_FIND_PRINT_H
#define BC_CLI_FIND_FIND_PRINT_H

#include "cli/find/find_state.h"
#include "formats/search/search.h"

/* Prints an entry. If there is context, a line "--" separates entries that do not follow each
 * other.
 */
void bc_find_print(struct bc_find *find, const struct bc_search_hit *hit);

#endif
