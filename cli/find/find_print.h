/* Prints what a search finds: a line of text or a JSON object per entry. */
#ifndef BC_CLI_FIND_FIND_PRINT_H
#define BC_CLI_FIND_FIND_PRINT_H

#include "cli/find/find_state.h"
#include "formats/trace/entry_text.h"

/* An entry and where it was found. */
struct bc_find_hit {
	struct bc_entry entry; /* without its texts, which may no longer be there */
	char text[BC_ENTRY_TEXT_MAX];
	const char *file; /* its name */
	bool is_segment;
	uint32_t segment;      /* its number */
	const char *recording; /* NULL: not known */
	bool has_wall;
	int64_t wall_ns;
	bool is_context; /* only a neighbour of a match */
};

/* Prints an entry. `follows`: it is the next one after the last one printed; otherwise a line "--"
 * separates them if there is context. */
void bc_find_print(struct bc_find *find, const struct bc_find_hit *hit, bool follows);

#endif
