/* Counts of names: opcodes, registers, instruction sets, whatever a trace calls by a word.
 *
 * Memory is bounded: beyond BC_STRING_COUNTER_MAX different names, or BC_STRING_COUNTER_TEXT_MAX
 * bytes of them, what is new is counted together, nameless. */
#ifndef BC_FORMATS_STATS_STRING_COUNTER_H
#define BC_FORMATS_STATS_STRING_COUNTER_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/trace/entry.h"

#define BC_STRING_COUNTER_MAX      (1u << 16)
#define BC_STRING_COUNTER_TEXT_MAX (4u << 20)

struct bc_name {
	struct bc_text text; /* valid until the next name is added */
	uint64_t count;
};

/* Empty when all zero. */
struct bc_string_counter {
	struct bc_name *rows; /* `count` of them; their texts are set by bc_string_counter_sort() */
	size_t count;
	uint64_t total;  /* of all counts, */
	uint64_t others; /* these included, of names that there was no room for */
	/* The names' bytes, and where those of each row begin. */
	char *text;
	size_t text_used;
	size_t text_room;
	uint32_t *starts;
	uint32_t *slots; /* number of a row, plus 1; 0: free */
	size_t slot_count;
};

/* Counts a name once more. Returns 0 or -ENOMEM. */
int bc_string_counter_add(struct bc_string_counter *names, struct bc_text name) BC_MUST_CHECK;

/* Puts the rows in order, the most frequent first, equal ones by their bytes. Nothing can be added
 * afterwards. */
void bc_string_counter_sort(struct bc_string_counter *names);

/* A sorted row's name as a string that the caller frees, or NULL: printable ASCII as it stands, any
 * other byte, and a backslash, as \xNN. */
char *bc_name_text(const struct bc_name *name) BC_MUST_CHECK;

void bc_string_counter_free(struct bc_string_counter *names);

#endif
