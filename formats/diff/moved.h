/* Recognizes blocks that are missing at one place and additional at another: they were moved. It
 * remembers the last entries of each trace that had no partner. */
#ifndef BC_FORMATS_DIFF_MOVED_H
#define BC_FORMATS_DIFF_MOVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "formats/base/must_check.h"

/* The shortest block that is recognized. */
#define BC_MOVED_MIN 8u

struct bc_moved;

/* Returns 0 or -ENOMEM. */
int bc_moved_open(struct bc_moved **moved) BC_MUST_CHECK;
void bc_moved_close(struct bc_moved *moved);

/* Adds an entry of trace 0 or 1 that has no partner: its position in the trace, which must
 * increase, the number to report, and its key. */
void bc_moved_add(
	struct bc_moved *moved, unsigned trace, uint64_t position, uint64_t number, uint64_t key);

/* Searches the other trace's entries for the block of keys[0, n). Returns the length of its start
 * that was found, at least BC_MOVED_MIN, with the number of the first entry there; or 0. */
size_t bc_moved_find(const struct bc_moved *moved, unsigned trace, const uint64_t *keys, size_t n,
	uint64_t *number);

#endif
