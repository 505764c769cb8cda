/* Counts strings: opcodes, registers, instruction sets and similar names.
 *
 * Memory is bounded: once there are BC_STRING_COUNTER_MAX different strings, or
 * BC_STRING_COUNTER_TEXT_MAX bytes of them, new strings are counted together in `others`. */
#ifndef BC_FORMATS_STATS_STRING_COUNTER_H
#define BC_FORMATS_STATS_STRING_COUNTER_H

#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"
#include "formats/trace/entry.h"

#define BC_STRING_COUNTER_MAX      (1u << 16)
#define BC_STRING_COUNTER_TEXT_MAX (4u << 20)

struct bc_string_count {
	struct bc_text text; /* valid until the next string is added */
	uint64_t count;
};

/* An empty one is all zero. */
struct bc_string_counter {
	struct bc_string_count
		*rows; /* `count` rows; their strings are set by bc_string_counter_sort() */
	size_t count;
	uint64_t total;  /* sum of all counts */
	uint64_t others; /* part of `total`: strings that did not fit */
	/* The bytes of the strings, and the offset of each row's string. */
	char *text;
	size_t text_used;
	size_t text_capacity;
	uint32_t *starts;
	uint32_t *slots; /* index of a row plus 1; 0: free */
	size_t slot_count;
};

/* Counts a string once. Returns 0 or -ENOMEM. */
int bc_string_counter_add(struct bc_string_counter *names, struct bc_text name) BC_MUST_CHECK;

/* Sorts the rows by descending count, then by their bytes. Nothing can be added afterwards. */
void bc_string_counter_sort(struct bc_string_counter *names);

/* The string of a sorted row, with a backslash and any byte that is not printable ASCII as \xNN.
 * The caller frees it. NULL if out of memory. */
char *bc_string_count_text(const struct bc_string_count *name) BC_MUST_CHECK;

void bc_string_counter_free(struct bc_string_counter *names);

#endif
